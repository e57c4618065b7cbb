//! What the engine remembers of containers.

use std::collections::BTreeMap;
use std::time::SystemTime;

use docker_driver::{ContainerRef, Label, PastEvent, PastEvents};
use stockade::{Call, Operation, Phase, Result};

use super::{Engine, unfit};
use crate::names::{self, Role, label};

/// Something that happened to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) at: SystemTime,
    /// The full id of the container.
    pub(crate) id: String,
    /// The engine's word for it, such as `die`.
    pub(crate) action: String,
    /// The container's labels, its `name`, and what the event itself tells.
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Engine {
    /// What the engine remembers of sandboxes of this owner that have this
    /// name or this id, oldest first: one docker command. `until` is a time of
    /// the engine's that has passed.
    pub(crate) async fn remembered(
        &self,
        call: &Call,
        operation: Operation,
        container: ContainerRef,
        until: SystemTime,
    ) -> Result<Vec<Remembered>> {
        let owner = Label::new(label::OWNER, self.owner()).map_err(unfit)?;
        let ask = PastEvents::between(SystemTime::UNIX_EPOCH, until)
            .kind("container")
            .labelled([owner])
            .container(container);
        let events = self.query(call, ask).await;
        let events = events.or_error(operation, Phase::Observe)?;
        let remembered = events.into_iter().map(Remembered::from);
        Ok(remembered
            .filter(|event| event.is_of_a_sandbox(self.owner()))
            .collect())
    }
}

impl Remembered {
    /// The number of the signal that it tells of.
    pub(crate) fn signal(&self) -> Option<u8> {
        let signal = self.attributes.get("signal")?;
        (self.action == "kill")
            .then(|| signal.parse().ok())
            .flatten()
    }

    /// Labels prove nothing; a name that they lead to does.
    fn is_of_a_sandbox(&self, owner: &str) -> bool {
        let name = self.attributes.get("name");
        name.is_some_and(|name| names::role(owner, name, &self.attributes) == Some(Role::Guest))
    }
}

impl From<PastEvent> for Remembered {
    fn from(event: PastEvent) -> Self {
        Self {
            at: event.time,
            id: event.id,
            action: event.action,
            attributes: event.attributes,
        }
    }
}
