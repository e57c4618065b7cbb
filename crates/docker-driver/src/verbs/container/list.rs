//! Finding containers.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::argv::{Argv, ContainerId, ContainerRef, Label};
use crate::verb::{Output, ParseError, Query, Verb};
use crate::verbs::json;

const EXPECTED: &str = "a list of containers";

/// `docker ps --all`: the containers that meet every filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListContainers {
    labels: Vec<Label>,
    label_keys: Vec<String>,
    only: Option<ContainerRef>,
    among: Option<BTreeSet<ContainerId>>,
}

/// One container of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerRow {
    /// Its id.
    pub id: ContainerId,
    /// Its own name.
    pub name: String,
    /// Names that links of other containers give it: `other/alias`.
    pub aliases: Vec<String>,
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

    /// Demands one of these containers. With several thousand of them, the
    /// words may become longer than the system allows.
    #[must_use]
    pub fn among(mut self, containers: impl IntoIterator<Item = ContainerId>) -> Self {
        self.among = Some(containers.into_iter().collect());
        self
    }

    fn wants(&self, row: &ContainerRow) -> bool {
        let is_it = match &self.only {
            Some(ContainerRef::Name(name)) => row.has_name(name.as_str()),
            Some(ContainerRef::Id(id)) => row.id == *id,
            None => true,
        };
        let among = self.among.as_ref();
        is_it && among.is_none_or(|among| among.contains(&row.id))
    }
}

impl ContainerRow {
    fn read(raw: Raw) -> Result<Self, ParseError> {
        let id = ContainerId::new(raw.id).map_err(|error| ParseError::new(EXPECTED, error))?;
        // A name of its own holds neither of these signs.
        let (aliases, own): (Vec<_>, Vec<_>) =
            raw.names.split(',').partition(|name| name.contains('/'));
        let [name] = own[..] else {
            return Err(ParseError::new(EXPECTED, "a container has no name"));
        };
        Ok(Self {
            id,
            name: name.to_owned(),
            aliases: aliases.into_iter().map(str::to_owned).collect(),
            state: raw.state,
        })
    }

    fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
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
        // These narrow the list; `parse` then compares exactly.
        let argv = match &self.only {
            Some(ContainerRef::Name(name)) => argv.option("filter", format!("name={name}")),
            Some(ContainerRef::Id(id)) => argv.option("filter", format!("id={id}")),
            None => argv,
        };
        let among = self.among.iter().flatten();
        argv.options("filter", among.map(|id| format!("id={id}")))
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        let rows: Vec<Raw> = json::lines(EXPECTED, &output.stdout)?;
        let rows: Result<Vec<_>, _> = rows.into_iter().map(ContainerRow::read).collect();
        Ok(rows?.into_iter().filter(|row| self.wants(row)).collect())
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
