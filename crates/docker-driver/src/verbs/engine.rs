//! The engine itself.

use serde::Deserialize;

use super::json;
use crate::argv::Argv;
use crate::verb::{Output, ParseError, Query, Verb};

/// `docker version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Version;

/// `docker info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Info;

/// What `docker version` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct VersionAnswer {
    pub(crate) client: Option<RawClient>,
    pub(crate) server: Option<RawServer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RawClient {
    pub(crate) version: String,
    pub(crate) api_version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RawServer {
    pub(crate) version: String,
    pub(crate) api_version: String,
    #[serde(rename = "MinAPIVersion", default)]
    pub(crate) min_api_version: String,
    pub(crate) os: String,
    pub(crate) arch: String,
    #[serde(default)]
    pub(crate) kernel_version: String,
    #[serde(default)]
    pub(crate) components: Vec<RawComponent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RawComponent {
    pub(crate) name: String,
}

/// What `docker info` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
#[non_exhaustive]
pub struct InfoAnswer {
    #[serde(rename = "ID")]
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) server_version: String,
    pub(crate) driver: String,
    pub(crate) memory_limit: bool,
    pub(crate) swap_limit: bool,
    pub(crate) pids_limit: bool,
    pub(crate) cpu_cfs_period: bool,
    pub(crate) cpu_cfs_quota: bool,
    pub(crate) cgroup_driver: String,
    pub(crate) cgroup_version: String,
    #[serde(rename = "NCPU")]
    pub(crate) ncpu: u64,
    pub(crate) mem_total: u64,
    pub(crate) live_restore_enabled: bool,
    pub(crate) security_options: Option<Vec<String>>,
    pub(crate) operating_system: String,
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
    type Answer = InfoAnswer;
    const NAME: &'static str = "info";

    fn argv(&self) -> Argv {
        Argv::new(&["info"]).json()
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        json::one("a description of the engine", &output.stdout)
    }
}

impl Query for Info {}
