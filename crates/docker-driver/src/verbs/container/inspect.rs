//! Looking at one container.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::argv::{Argv, ContainerId, ContainerRef};
use crate::verb::{Output, ParseError, Query, Subject, Verb};
use crate::verbs::json;

/// `docker container inspect`. A container that does not exist is an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectContainer {
    container: ContainerRef,
}

impl InspectContainer {
    /// Looks at this container.
    pub fn new(container: impl Into<ContainerRef>) -> Self {
        Self {
            container: container.into(),
        }
    }
}

/// What the engine says of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerFacts {
    /// Its id.
    pub id: ContainerId,
    /// Its name, without the engine's leading slash.
    pub name: String,
    /// The id of its image.
    pub image: String,
    /// When it was created, as RFC 3339.
    pub created: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it is doing.
    pub state: ContainerState,
    /// Whether the engine removes it when it ends.
    pub remove_at_end: bool,
    /// Its own memory limit in bytes; 0 is none.
    pub memory: u64,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerState {
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or
    /// `dead`.
    pub status: String,
    /// Whether its processes exist; also true while it is paused.
    pub running: bool,
    /// Whether its processes are frozen.
    pub paused: bool,
    /// Exit code of its last run; meaningless while it runs.
    pub exit_code: i64,
    /// Why its last start failed; empty if it did not.
    pub error: String,
}

impl Verb for InspectContainer {
    type Answer = Option<ContainerFacts>;
    const NAME: &'static str = "container inspect";

    fn argv(&self) -> Argv {
        Argv::new(&["container", "inspect"]).positional(&self.container)
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        const EXPECTED: &str = "a list of one container";
        let [found]: [Raw; 1] = json::one(EXPECTED, &output.stdout)?;
        let id = ContainerId::new(found.id).map_err(|error| ParseError::new(EXPECTED, error))?;
        Ok(Some(ContainerFacts {
            id,
            name: found.name.trim_start_matches('/').to_owned(),
            image: found.image,
            created: found.created,
            labels: found.config.labels.unwrap_or_default(),
            state: ContainerState {
                status: found.state.status,
                running: found.state.running,
                paused: found.state.paused,
                exit_code: found.state.exit_code,
                error: found.state.error,
            },
            remove_at_end: found.host_config.auto_remove,
            memory: found.host_config.memory,
        }))
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Container(self.container.clone()))
    }

    fn when_absent(&self) -> Option<Self::Answer> {
        Some(None)
    }
}

impl Query for InspectContainer {}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    id: String,
    name: String,
    image: String,
    created: String,
    config: RawConfig,
    state: RawState,
    host_config: RawHostConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawConfig {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawState {
    status: String,
    running: bool,
    paused: bool,
    exit_code: i64,
    #[serde(default)]
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawHostConfig {
    #[serde(default)]
    auto_remove: bool,
    #[serde(default)]
    memory: u64,
}
