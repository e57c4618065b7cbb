//! A container that is held: paused, and certain to be thawed.

mod copy;
mod events;

use std::fs::File;
use std::time::Duration;

use crate::argv::{ContainerId, ContainerPath};
use crate::error::CallError;

pub use self::copy::{TarIn, TarOut};
pub use self::events::{ContainerEvent, Events};

/// Longest time that a container is held, unless the request says less.
const LONGEST: Duration = Duration::from_secs(30);

/// Longest time that a copy may go without progress, unless the request says
/// otherwise.
const NO_PROGRESS: Duration = Duration::from_secs(5);

/// What is to be held, and how long.
#[derive(Debug)]
pub struct HoldRequest {
    container: ContainerId,
    limit: Duration,
    no_progress: Duration,
    lock: Option<File>,
}

impl HoldRequest {
    /// Holds this container, for 30 s at most, with copies that make progress
    /// every 5 s.
    pub fn new(container: ContainerId) -> Self {
        Self {
            container,
            limit: LONGEST,
            no_progress: NO_PROGRESS,
            lock: None,
        }
    }

    /// Thaws it after this time at the latest. Whole seconds, rounded down;
    /// at least one.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Ends a copy that makes no progress for this time.
    #[must_use]
    pub fn no_progress(mut self, limit: Duration) -> Self {
        self.no_progress = limit;
        self
    }

    /// A file that is locked (`flock`) and stays so until the hold is over:
    /// who thaws inherits it, so that the death of this process does not
    /// unlock it early.
    #[must_use]
    pub fn lock(mut self, lock: File) -> Self {
        self.lock = Some(lock);
        self
    }
}

/// A container that is paused.
///
/// It is thawed by a process of its own (the guard) when this is released or
/// dropped, when its time is over, or when this process ends, however it
/// ends.
#[derive(Debug)]
pub struct Hold {
    request: HoldRequest,
}

impl Hold {
    /// Whether the container is certain to be paused still. It costs no docker
    /// call.
    pub fn is_in_force(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How much time is left; zero when the hold is over.
    pub fn remaining(&self) -> Duration {
        self.request.limit
    }

    /// Starts unpacking a tar stream into a directory of the container.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`](crate::CallErrorKind::HoldEnded), or that
    /// docker could not be started. What docker says after that comes from the
    /// copy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no process.
    pub async fn copy_in(&self, directory: &ContainerPath) -> Result<TarIn<'_>, CallError> {
        let _ = directory;
        todo!()
    }

    /// Starts a tar stream of what is at a path of the container, without
    /// following a link at its end.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`](crate::CallErrorKind::HoldEnded), or that
    /// docker could not be started. What docker says after that, such as that
    /// there is no such path, comes from the copy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no process.
    pub async fn copy_out(&self, path: &ContainerPath) -> Result<TarOut<'_>, CallError> {
        let _ = path;
        todo!()
    }

    /// Thaws the container, and waits until it is thawed.
    ///
    /// # Errors
    ///
    /// Docker's words of the last attempt. One that is not paused any more is
    /// a success.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the container is thawed in the
    /// background, which [`Docker::settle`](crate::Docker::settle) waits for.
    pub async fn release(self) -> Result<(), CallError> {
        todo!()
    }
}
