//! What has happened, as far as the engine remembers.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use super::json;
use crate::argv::{Argv, ContainerRef, Label};
use crate::registry::Streamed;
use crate::time::unix;
use crate::verb::{Output, ParseError, Query, Verb};

/// `docker events` of a span of time: what the engine remembers of it, the
/// oldest first.
///
/// An engine remembers its last 256 events, of whatever kind, and none from
/// before it was started. What it has forgotten is not in the answer, and
/// nothing in the answer says so. More than 8 MiB of events, which 256 can be
/// by their labels alone, are
/// [`OutputTooLarge`](crate::CallErrorKind::OutputTooLarge): ask for less.
///
/// Both times are the engine's ([`EngineTime`](crate::EngineTime)). Where the
/// span ends in the future, the call lasts until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastEvents {
    since: SystemTime,
    until: SystemTime,
    labels: Vec<Label>,
    kinds: Vec<String>,
    actions: Vec<String>,
    container: Option<ContainerRef>,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastEvent {
    /// What happened, in one word, such as `die`. What an engine adds to it
    /// after a colon, such as the words of an `exec_start`, is left out: it may
    /// hold what nobody else may read.
    pub action: String,
    /// The kind of object that it happened to, such as `container`.
    pub kind: String,
    /// That object: the id of a container, the name of a volume.
    pub id: String,
    /// When, by the engine's clock.
    pub time: SystemTime,
    /// What else the engine says of it: of a container its labels, its `name`
    /// and its `image`, with a `die` also its `exitCode`.
    pub attributes: BTreeMap<String, String>,
}

impl PastEvents {
    /// Everything from `since` to `until`.
    pub fn between(since: SystemTime, until: SystemTime) -> Self {
        Self {
            since,
            until,
            labels: Vec::new(),
            kinds: Vec::new(),
            actions: Vec::new(),
            container: None,
        }
    }

    /// Demands objects that have all of these labels with these values. Events
    /// of volumes and networks tell no labels.
    #[must_use]
    pub fn labelled(mut self, labels: impl IntoIterator<Item = Label>) -> Self {
        self.labels.extend(labels);
        self
    }

    /// Demands one of the kinds that this was called with, such as `volume`.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kinds.push(kind.into());
        self
    }

    /// Demands one of the actions that this was called with, such as `die`.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.actions.push(action.into());
        self
    }

    /// Demands what happened to this very container.
    #[must_use]
    pub fn container(mut self, container: impl Into<ContainerRef>) -> Self {
        self.container = Some(container.into());
        self
    }

    /// The engine's own filter also lets names through that only begin so.
    fn wants(&self, event: &PastEvent) -> bool {
        match &self.container {
            Some(ContainerRef::Id(id)) => event.id == id.as_str(),
            Some(ContainerRef::Name(name)) => {
                let found = event.attributes.get("name");
                found.is_some_and(|found| found == name.as_str())
            }
            None => true,
        }
    }
}

impl Verb for PastEvents {
    type Answer = Vec<PastEvent>;
    const NAME: &'static str = Streamed::EVENTS.name();

    fn argv(&self) -> Argv {
        let filter = |key: &'static str| move |value: &String| format!("{key}={value}");
        let labels = self.labels.iter().map(|label| format!("label={label}"));
        let container = self.container.iter().map(|id| format!("container={id}"));
        Argv::new(&["events"])
            .option("since", unix(self.since))
            .option("until", unix(self.until))
            .json()
            .options("filter", labels)
            .options("filter", self.kinds.iter().map(filter("type")))
            .options("filter", self.actions.iter().map(filter("event")))
            .options("filter", container)
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        let raw: Vec<Raw> = json::lines("a list of events", &output.stdout)?;
        let all = raw.into_iter().map(PastEvent::from);
        Ok(all.filter(|event| self.wants(event)).collect())
    }
}

impl Query for PastEvents {}

impl From<Raw> for PastEvent {
    fn from(raw: Raw) -> Self {
        let action = raw.action.split(':').next().unwrap_or_default();
        Self {
            action: action.to_owned(),
            kind: raw.kind,
            id: raw.actor.id,
            time: SystemTime::UNIX_EPOCH + Duration::from_nanos(raw.time_nano),
            attributes: raw.actor.attributes.unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    #[serde(rename = "Type")]
    kind: String,
    action: String,
    actor: Actor,
    #[serde(rename = "timeNano")]
    time_nano: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
    attributes: Option<BTreeMap<String, String>>,
}
