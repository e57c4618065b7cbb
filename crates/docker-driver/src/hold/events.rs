//! What happens to a container, as it happens.

use crate::error::CallError;

/// What has happened to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContainerEvent {
    /// It was paused.
    Paused,
    /// It was thawed.
    Unpaused,
}

/// A stream of events of one container, which is live: whatever happens after
/// it was opened is in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Events {}

impl Events {
    /// The next event, however long it takes.
    ///
    /// # Errors
    ///
    /// The stream has ended, for instance with the engine.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<ContainerEvent, CallError> {
        todo!()
    }
}
