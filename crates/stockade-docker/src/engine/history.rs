//! What the engine remembers of containers.

use std::time::SystemTime;

use docker_driver::{ContainerRef, Label, PastEvent, PastEvents};
use stockade::{Call, Operation, Phase, Result};

use super::{Engine, unfit};
use crate::names::label;

impl Engine {
    /// What the engine remembers of a container of this owner, oldest first:
    /// one docker command. `until` is a time of the engine's that has passed.
    pub(crate) async fn remembered(
        &self,
        call: &Call,
        operation: Operation,
        container: ContainerRef,
        until: SystemTime,
    ) -> Result<Vec<PastEvent>> {
        let owner = Label::new(label::OWNER, self.owner()).map_err(unfit)?;
        let ask = PastEvents::between(SystemTime::UNIX_EPOCH, until)
            .kind("container")
            .labelled([owner])
            .container(container);
        let events = self.query(call, ask).await;
        events.or_error(operation, Phase::Observe)
    }
}
