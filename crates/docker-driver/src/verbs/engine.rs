//! The engine itself; for binding.

use serde::Deserialize;

use super::json;
use crate::argv::Argv;
use crate::verb::{Output, ParseError, Query, Verb};

/// `docker version`. Fails when no engine answers.
#[derive(Debug)]
pub(crate) struct Version;

/// `docker info`. Fails when no engine answers.
#[derive(Debug)]
pub(crate) struct Info;

/// Client and engine.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct VersionAnswer {
    pub(crate) client: Option<ClientPart>,
    pub(crate) server: Option<ServerPart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ClientPart {
    pub(crate) version: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ServerPart {
    pub(crate) version: String,
    pub(crate) api_version: String,
    #[serde(rename = "MinAPIVersion", default)]
    pub(crate) min_api_version: String,
    pub(crate) os: String,
    pub(crate) arch: String,
    #[serde(default)]
    pub(crate) kernel_version: String,
    #[serde(default)]
    components: Vec<Component>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Component {
    name: String,
}

/// What an engine says of itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct EngineDescription {
    #[serde(rename = "ID")]
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) driver: String,
    pub(crate) memory_limit: bool,
    pub(crate) swap_limit: bool,
    #[serde(default)]
    pub(crate) pids_limit: bool,
    pub(crate) cpu_cfs_period: bool,
    pub(crate) cpu_cfs_quota: bool,
    #[serde(default)]
    pub(crate) cgroup_driver: String,
    #[serde(default)]
    pub(crate) cgroup_version: String,
    #[serde(rename = "NCPU")]
    pub(crate) ncpu: u64,
    pub(crate) mem_total: u64,
    #[serde(default)]
    pub(crate) live_restore_enabled: bool,
    pub(crate) security_options: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) operating_system: String,
}

impl ServerPart {
    /// What it is, if it is not Docker Engine.
    pub(crate) fn other_product(&self) -> Option<String> {
        let own = self
            .components
            .iter()
            .any(|component| component.name == "Engine");
        let first = self.components.first().filter(|_| !own)?;
        Some(first.name.chars().take(80).collect())
    }
}

impl Verb for Version {
    type Answer = VersionAnswer;
    const NAME: &'static str = "version";

    fn argv(&self) -> Argv {
        Argv::new(&["version"]).json()
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        json::one("a version", &output.stdout)
    }
}

impl Query for Version {}

impl Verb for Info {
    type Answer = EngineDescription;
    const NAME: &'static str = "info";

    fn argv(&self) -> Argv {
        Argv::new(&["info"]).json()
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        json::one("a description of the engine", &output.stdout)
    }
}

impl Query for Info {}
