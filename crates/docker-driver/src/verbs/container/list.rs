//! Finding containers.

use serde::Deserialize;

use crate::argv::{Argv, ContainerId, ContainerRef, Label};
use crate::verb::{Output, ParseError, Query, Verb};
use crate::verbs::json;

/// `docker ps --all`: the containers that meet every filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListContainers {
    labels: Vec<Label>,
    label_keys: Vec<String>,
    only: Option<ContainerRef>,
}

/// One container of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerRow {
    /// Its id.
    pub id: ContainerId,
    /// Its name.
    pub name: String,
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or
    /// `dead`.
    pub state: String,
}

impl ListContainers {
    /// Every container that has all of these labels with these values.
    pub fn labelled(labels: impl IntoIterator<Item = Label>) -> Self {
        Self {
            labels: labels.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Demands a label, whatever its value; only its key counts.
    #[must_use]
    pub fn having(mut self, label: &Label) -> Self {
        self.label_keys.push(label.key().to_owned());
        self
    }

    /// Demands this very container.
    #[must_use]
    pub fn only(mut self, container: impl Into<ContainerRef>) -> Self {
        self.only = Some(container.into());
        self
    }
}

impl Verb for ListContainers {
    type Answer = Vec<ContainerRow>;
    const NAME: &'static str = "ps";

    fn argv(&self) -> Argv {
        let argv = Argv::new(&["ps"])
            .flag("all")
            .flag("no-trunc")
            .json()
            .options(
                "filter",
                self.labels.iter().map(|label| format!("label={label}")),
            )
            .options(
                "filter",
                self.label_keys.iter().map(|key| format!("label={key}")),
            );
        match &self.only {
            // Narrows the list; `parse` then compares exactly.
            Some(ContainerRef::Name(name)) => argv.option("filter", format!("name={name}")),
            Some(ContainerRef::Id(id)) => argv.option("filter", format!("id={id}")),
            None => argv,
        }
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        const EXPECTED: &str = "a list of containers";
        let rows: Vec<Raw> = json::lines(EXPECTED, &output.stdout)?;
        let rows = rows.into_iter().map(|row| {
            let id = ContainerId::new(row.id).map_err(|error| ParseError::new(EXPECTED, error))?;
            Ok(ContainerRow {
                id,
                name: row.names,
                state: row.state,
            })
        });
        let rows: Vec<_> = rows.collect::<Result<_, ParseError>>()?;
        let wanted = |row: &ContainerRow| match &self.only {
            Some(ContainerRef::Name(name)) => row.name.split(',').any(|one| one == name.as_str()),
            Some(ContainerRef::Id(id)) => row.id == *id,
            None => true,
        };
        Ok(rows.into_iter().filter(wanted).collect())
    }
}

impl Query for ListContainers {}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    #[serde(rename = "ID")]
    id: String,
    names: String,
    state: String,
}
