//! The engine itself.

use std::time::SystemTime;

use serde::Deserialize;

use super::json;
use crate::argv::Argv;
use crate::time::parse_time;
use crate::verb::{Output, ParseError, Query, Verb};

/// `docker version`. Fails when no engine answers.
#[derive(Debug)]
pub(crate) struct Version;

/// `docker info`. Fails when no engine answers.
#[derive(Debug)]
pub(crate) struct Info;

/// `docker info`: what the engine's own clock says. Whatever is to be told from
/// the engine's times, such as an age, is told by this and never by the clock
/// of this machine, which may be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to ask for")]
pub struct EngineTime;

/// What an engine's clock said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineNow {
    /// Which engine it is, by the id that it made for itself.
    pub id: String,
    /// When it answered; earlier than now by as long as the answer took.
    pub time: SystemTime,
}

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

impl Verb for EngineTime {
    type Answer = EngineNow;
    const NAME: &'static str = Info::NAME;

    fn argv(&self) -> Argv {
        Info.argv()
    }

    fn parse(&self, output: &Output) -> Result<EngineNow, ParseError> {
        let clock: Clock = json::one("the time of an engine", &output.stdout)?;
        Ok(EngineNow {
            id: clock.id,
            time: parse_time(&clock.system_time)?,
        })
    }
}

impl Query for EngineTime {}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Clock {
    #[serde(rename = "ID")]
    id: String,
    system_time: String,
}
