//! Containers that are paused: by us, by others, and not any more.

use std::time::Duration;

use docker_driver::{CallErrorKind, ContainerId, Events, Hold, HoldRequest, UnpauseContainer};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal, Result};

use super::{Asked, Engine, lift, lost, unfit};
use crate::hold::{LONGEST, Lock, LockFolder, no_lock};

/// How often a pause is tried.
const TRIES: u32 = 8;

/// Between the first two tries; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// Who has paused a container.
#[derive(Debug)]
pub(crate) enum Paused {
    ByUs(Hold),
    BySomebody,
}

impl Engine {
    /// Pauses a container, unless somebody else has. The lock stays locked,
    /// and its file there, until the container is thawed.
    ///
    /// Tried again when it fails for no reason that is known: a runtime gives
    /// up freezing a guest that makes processes all the time.
    pub(crate) async fn hold(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
        lock: &Lock,
    ) -> Result<Paused> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            match self.try_hold(call, operation, id, lock).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    let waited = call.bound(tokio::time::sleep(pause)).await;
                    if waited.is_err() {
                        return Err(error);
                    }
                    pause *= 2;
                }
                held => return held,
            }
        }
        self.try_hold(call, operation, id, lock).await
    }

    async fn try_hold(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
        lock: &Lock,
    ) -> Result<Paused> {
        let file = lock.share().map_err(|error| no_lock(operation, error))?;
        let request = HoldRequest::new(ContainerId::new(id).map_err(unfit)?)
            .limit(LONGEST)
            .lock(file, lock.path());
        let bounds = self.bounds(call);
        let held = call.bound(self.inner.docker.hold(&bounds, request)).await;
        match held.map_or_else(Asked::Interrupted, Asked::from) {
            Asked::Answered(hold) => Ok(Paused::ByUs(hold)),
            Asked::Failed(error) => match error.kind() {
                CallErrorKind::AlreadyPaused => Ok(Paused::BySomebody),
                CallErrorKind::PauseUnsupported => {
                    let why = "the engine cannot pause containers".to_owned();
                    Err(Error::refused(operation, Refusal::FilePlane { why }))
                }
                CallErrorKind::NoSuchContainer | CallErrorKind::NotRunning => {
                    Err(lost(id, "its container has ended"))
                }
                _ => Err(lift::call(operation, Phase::Transfer, error)),
            },
            Asked::Interrupted(why) => Err(Error::interrupted(operation, why)
                .phase(Phase::Transfer)
                .build()),
        }
    }

    /// Thaws a container that somebody else has paused. One that runs by now
    /// is thawed.
    pub(crate) async fn thaw(&self, call: &Call, operation: Operation, id: &str) -> Result<()> {
        let verb = UnpauseContainer::new(ContainerId::new(id).map_err(unfit)?);
        match self.mutate(call, verb).await {
            Asked::Failed(error) if error.kind() == CallErrorKind::NotPaused => Ok(()),
            thawed => thawed.or_error(operation, Phase::Undo).map(drop),
        }
    }

    /// Whether a container is paused; one that is gone is not.
    pub(crate) async fn is_paused(&self, call: &Call, id: &str) -> Result<bool> {
        let id = ContainerId::new(id).map_err(unfit)?;
        let found = self.look(call, Operation::Exec, id).await?;
        Ok(found.is_some_and(|facts| facts.state.status == "paused"))
    }

    /// What happens to a container from now on.
    pub(crate) async fn events(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
    ) -> Result<Events> {
        let id = ContainerId::new(id).map_err(unfit)?;
        let bounds = self.bounds(call);
        let events = call.bound(self.inner.docker.events(&bounds, &id)).await;
        events
            .map_or_else(Asked::Interrupted, Asked::from)
            .or_error(operation, Phase::Observe)
    }

    /// Where the locks of this engine's containers are.
    pub(crate) fn locks(&self) -> &LockFolder {
        &self.inner.locks
    }
}
