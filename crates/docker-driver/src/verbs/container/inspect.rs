//! Looking at containers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use serde::Deserialize;

use crate::argv::{Argv, ContainerId, ContainerRef};
use crate::time::maybe_time;
use crate::verb::{Exit, Output, ParseError, Query, STDOUT_LIMIT, Subject, Verb};
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

/// `docker container inspect` of many containers at once: the facts of those
/// that exist, in no order. One that does not exist is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectContainers {
    containers: BTreeSet<ContainerId>,
}

impl InspectContainers {
    /// Most containers of one call: their words are 6.5 KiB, and their answers
    /// stay within the 16 MiB that one answer may have.
    pub const MOST: usize = 100;

    /// The calls that look at all of these containers: one for each
    /// [`MOST`](Self::MOST) of them, none for none.
    pub fn of(containers: impl IntoIterator<Item = ContainerId>) -> Vec<Self> {
        let all: BTreeSet<_> = containers.into_iter().collect();
        let all: Vec<_> = all.into_iter().collect();
        let one = |chunk: &[ContainerId]| Self {
            containers: chunk.iter().cloned().collect(),
        };
        all.chunks(Self::MOST).map(one).collect()
    }

    fn missing(&self, found: &[ContainerFacts]) -> Vec<ContainerId> {
        let found: BTreeSet<_> = found.iter().map(|facts| &facts.id).collect();
        let missing = self.containers.iter().filter(|id| !found.contains(id));
        missing.cloned().collect()
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
    /// Its image as its creation named it.
    pub image_name: String,
    /// When it was created, by the engine's clock.
    pub created: Option<SystemTime>,
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
    /// Whether its last run was ended for want of memory; a kill within a
    /// container that went on is no such end, but old engines may count it.
    pub oom_killed: bool,
    /// When it was last started, if ever.
    pub started_at: Option<SystemTime>,
    /// When it last ended, if ever.
    pub finished_at: Option<SystemTime>,
}

impl ContainerFacts {
    fn read(raw: Raw, expected: &'static str) -> Result<Self, ParseError> {
        let id = ContainerId::new(raw.id).map_err(|error| ParseError::new(expected, error))?;
        Ok(Self {
            id,
            name: raw.name.trim_start_matches('/').to_owned(),
            image: raw.image,
            image_name: raw.config.image,
            created: maybe_time(&raw.created)?,
            labels: raw.config.labels.unwrap_or_default(),
            state: ContainerState {
                status: raw.state.status,
                running: raw.state.running,
                paused: raw.state.paused,
                exit_code: raw.state.exit_code,
                error: raw.state.error,
                oom_killed: raw.state.oom_killed,
                started_at: maybe_time(&raw.state.started_at)?,
                finished_at: maybe_time(&raw.state.finished_at)?,
            },
            remove_at_end: raw.host_config.auto_remove,
            memory: raw.host_config.memory,
        })
    }
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
        ContainerFacts::read(found, EXPECTED).map(Some)
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Container(self.container.clone()))
    }

    fn when_absent(&self) -> Option<Self::Answer> {
        Some(None)
    }
}

impl Query for InspectContainer {}

impl Verb for InspectContainers {
    type Answer = Vec<ContainerFacts>;
    const NAME: &'static str = InspectContainer::NAME;

    fn argv(&self) -> Argv {
        let argv = Argv::new(&["container", "inspect"]);
        let positional = |argv: Argv, id| argv.positional(id);
        self.containers.iter().fold(argv, positional)
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        const EXPECTED: &str = "a list of the containers that were asked for";
        let raw: Vec<Raw> = json::one(EXPECTED, &output.stdout)?;
        let found: Result<Vec<_>, _> = raw
            .into_iter()
            .map(|raw| ContainerFacts::read(raw, EXPECTED))
            .collect();
        let found = found?;
        let distinct: BTreeSet<_> = found.iter().map(|facts| &facts.id).collect();
        if distinct.len() < found.len() || !distinct.iter().all(|id| self.containers.contains(*id))
        {
            return Err(ParseError::new(EXPECTED, "there is another one in it"));
        }
        if output.exit.is_success() && !self.missing(&found).is_empty() {
            return Err(ParseError::new(EXPECTED, "one is missing"));
        }
        Ok(found)
    }

    /// 160 KiB for each container that one call may ask for: ordinary facts are
    /// 8 KiB, and labels and variables come on top.
    fn stdout_limit(&self) -> usize {
        2 * STDOUT_LIMIT
    }

    /// Docker prints those that it found, and fails when it did not find all.
    fn without(&self, output: &Output) -> Option<(Self::Answer, Vec<ContainerId>)> {
        let printed = output.exit == Exit::Code(1);
        let found = printed.then(|| self.parse(output).ok()).flatten()?;
        let missing = self.missing(&found);
        (!missing.is_empty()).then_some((found, missing))
    }
}

impl Query for InspectContainers {}

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
    #[serde(default)]
    image: String,
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
    #[serde(rename = "OOMKilled", default)]
    oom_killed: bool,
    #[serde(default)]
    started_at: String,
    #[serde(default)]
    finished_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawHostConfig {
    #[serde(default)]
    auto_remove: bool,
    #[serde(default)]
    memory: u64,
}
