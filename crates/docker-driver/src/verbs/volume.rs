//! Volumes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Deserialize;

use super::{Removal, echo, json};
use crate::argv::{Argv, CreationMark, Label, VolumeName};
use crate::time::maybe_time;
use crate::undo::Undo;
use crate::verb::{Effect, Mutation, Output, ParseError, Query, Subject, Verb};

/// `docker volume create` with the local driver. One that exists is kept, and
/// keeps its labels: look at the mark to learn who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVolume {
    name: VolumeName,
    mark: CreationMark,
    labels: Vec<Label>,
}

/// `docker volume inspect`. A volume that does not exist is an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectVolume {
    name: VolumeName,
}

/// `docker volume ls`: the volumes that have all of these labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListVolumes {
    labels: Vec<Label>,
    only: Option<VolumeName>,
}

/// `docker volume rm`. A volume that does not exist is an answer; one that a
/// container uses is not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveVolume {
    name: VolumeName,
}

/// What the engine says of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeFacts {
    /// Its name.
    pub name: String,
    /// The driver that keeps it.
    pub driver: String,
    /// When it was created, by the engine's clock, in whole seconds.
    pub created: Option<SystemTime>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The driver's options.
    pub options: BTreeMap<String, String>,
}

impl CreateVolume {
    /// Creates a volume of this name.
    pub fn new(name: VolumeName, mark: CreationMark) -> Self {
        Self {
            name,
            mark,
            labels: Vec::new(),
        }
    }

    /// Adds labels.
    #[must_use]
    pub fn labels(mut self, labels: impl IntoIterator<Item = Label>) -> Self {
        self.labels.extend(labels);
        self
    }
}

impl InspectVolume {
    /// Looks at this volume.
    pub fn new(name: VolumeName) -> Self {
        Self { name }
    }
}

impl ListVolumes {
    /// Every volume that has all of these labels with these values.
    pub fn labelled(labels: impl IntoIterator<Item = Label>) -> Self {
        Self {
            labels: labels.into_iter().collect(),
            only: None,
        }
    }

    /// Demands this very volume.
    #[must_use]
    pub fn only(mut self, name: VolumeName) -> Self {
        self.only = Some(name);
        self
    }
}

impl RemoveVolume {
    /// Removes this volume.
    pub fn new(name: VolumeName) -> Self {
        Self { name }
    }
}

impl Verb for CreateVolume {
    type Answer = ();
    const NAME: &'static str = "volume create";

    fn argv(&self) -> Argv {
        let marked = std::iter::once(self.mark.label()).chain(&self.labels);
        Argv::new(&["volume", "create"])
            .option("driver", "local")
            .options("label", marked)
            .positional(&self.name)
    }

    fn parse(&self, output: &Output) -> Result<(), ParseError> {
        echo::parse("the name of the volume", self.name.as_str(), output)
    }
}

impl Mutation for CreateVolume {
    fn undo(&self, effect: Effect<'_, ()>) -> Undo {
        match effect {
            Effect::Nothing => Undo::Nothing,
            _ => Undo::RemoveMarkedVolume(self.name.clone(), self.mark.clone()),
        }
    }
}

impl Verb for InspectVolume {
    type Answer = Option<VolumeFacts>;
    const NAME: &'static str = "volume inspect";

    fn argv(&self) -> Argv {
        Argv::new(&["volume", "inspect"]).positional(&self.name)
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        let [found]: [Raw; 1] = json::one("a list of one volume", &output.stdout)?;
        Ok(Some(VolumeFacts {
            name: found.name,
            driver: found.driver,
            created: maybe_time(&found.created_at)?,
            labels: found.labels.unwrap_or_default(),
            options: found.options.unwrap_or_default(),
        }))
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Volume(self.name.clone()))
    }

    fn when_absent(&self) -> Option<Self::Answer> {
        Some(None)
    }
}

impl Query for InspectVolume {}

impl Verb for ListVolumes {
    type Answer = Vec<String>;
    const NAME: &'static str = "volume ls";

    fn argv(&self) -> Argv {
        let labels = self.labels.iter().map(|label| format!("label={label}"));
        // Narrows the list; `parse` then compares exactly.
        let name = self.only.as_ref().map(|name| format!("name={name}"));
        Argv::new(&["volume", "ls"])
            .json()
            .options("filter", labels)
            .maybe("filter", name)
    }

    fn parse(&self, output: &Output) -> Result<Vec<String>, ParseError> {
        let rows: Vec<RawRow> = json::lines("a list of volumes", &output.stdout)?;
        let names = rows.into_iter().map(|row| row.name);
        let wanted = |name: &String| self.only.as_ref().is_none_or(|only| only.as_str() == name);
        Ok(names.filter(wanted).collect())
    }
}

impl Query for ListVolumes {}

impl Verb for RemoveVolume {
    type Answer = Removal;
    const NAME: &'static str = "volume rm";

    fn argv(&self) -> Argv {
        Argv::new(&["volume", "rm"]).positional(&self.name)
    }

    fn parse(&self, output: &Output) -> Result<Removal, ParseError> {
        echo::parse("the name of the volume", self.name.as_str(), output).map(|()| Removal::Removed)
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Volume(self.name.clone()))
    }

    fn when_absent(&self) -> Option<Removal> {
        Some(Removal::Absent)
    }
}

impl Mutation for RemoveVolume {
    fn undo(&self, _: Effect<'_, Removal>) -> Undo {
        Undo::Nothing
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    name: String,
    driver: String,
    #[serde(default)]
    created_at: String,
    labels: Option<BTreeMap<String, String>>,
    options: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawRow {
    name: String,
}
