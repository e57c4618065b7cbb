//! The bound client.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::argv::ContainerId;
use crate::bind::{self, BindConfig, BindError, Bound, Endpoint, EngineFacts};
use crate::bounds::Bounds;
use crate::error::CallError;
use crate::hold::{Events, Hold, HoldRequest};
use crate::log::InvocationLog;
use crate::process::Group;
use crate::registry::Streamed;
use crate::stream::Stream;
use crate::undo::Settled;
use crate::verb::{Mutation, Query};
use crate::verbs::ExecStream;

/// A docker client that is bound to one engine for its whole life. Clones are
/// the same client.
///
/// Work that outlives its caller runs on the runtime that it was bound in.
#[derive(Clone)]
pub struct Docker(Arc<Bound>);

impl Docker {
    /// Finds the engine that docker's own settings name, and pins it by
    /// value: nothing that changes in the environment or in docker's
    /// configuration afterwards moves it. Three docker processes at most.
    ///
    /// # Errors
    ///
    /// Each [`BindError`] says what to do about it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what was started and removes what was made.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time.
    pub async fn bind(config: BindConfig) -> Result<Self, BindError> {
        bind::bind(config).await.map(Arc::new).map(Self)
    }

    /// Where the engine is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// What the engine said of itself when it was bound.
    pub fn engine(&self) -> &EngineFacts {
        &self.0.engine
    }

    /// Every docker process that was started, binding included.
    pub fn log(&self) -> &InvocationLog {
        self.0.client.log()
    }

    /// Asks.
    ///
    /// # Errors
    ///
    /// [`CallError`]; what the verb's answer covers, such as absence, is none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the process, in the background.
    pub async fn query<V: Query>(&self, bounds: &Bounds, verb: V) -> Result<V::Answer, CallError> {
        self.0.client.query(bounds, &verb).await
    }

    /// Changes.
    ///
    /// # Errors
    ///
    /// [`CallError`]. A change that failed by itself has been taken back, as
    /// [`CallError::aftermath`] says. When the caller's bounds were the
    /// reason, the change goes on, and is taken back later.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends nothing: the change goes on in the
    /// background, and is taken back once it has been made. [`settle`](Self::settle)
    /// waits for that.
    pub async fn mutate<V: Mutation>(
        &self,
        bounds: &Bounds,
        verb: V,
    ) -> Result<V::Answer, CallError> {
        self.0.client.mutate(bounds, verb).await
    }

    /// Starts a program in a container, and gives its standard streams. The
    /// bounds are for the start only. Once it has spoken, or after two
    /// seconds, it counts no more among the processes in flight.
    ///
    /// # Errors
    ///
    /// [`CallError`], when the docker client cannot be started. What docker
    /// says after that, such as that the container is gone, is the stream's
    /// end: see [`StreamEnd::complaint`](crate::StreamEnd::complaint).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no process.
    pub async fn open_stream(
        &self,
        bounds: &Bounds,
        verb: ExecStream,
    ) -> Result<Stream, CallError> {
        self.0
            .client
            .open(bounds, Streamed::EXEC, &verb.argv(), true, Group::Own)
            .await
    }

    /// Pauses a container until the hold is released or over. Two docker
    /// processes in all: one that pauses, one that thaws.
    ///
    /// # Errors
    ///
    /// [`CallError`]; [`CallErrorKind::AlreadyPaused`] when somebody else has
    /// paused it, who alone may thaw it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future thaws what it has paused, in the background.
    ///
    /// [`CallErrorKind::AlreadyPaused`]: crate::CallErrorKind::AlreadyPaused
    pub async fn hold(&self, bounds: &Bounds, request: HoldRequest) -> Result<Hold, CallError> {
        self.0.client.hold(bounds, request).await
    }

    /// Opens a stream of what happens to a container: when it is paused and
    /// when it is thawed. It is live when this returns.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no process.
    pub async fn events(
        &self,
        bounds: &Bounds,
        container: &ContainerId,
    ) -> Result<Events, CallError> {
        Events::open(&self.0.client, bounds, container).await
    }

    /// Waits for work that goes on without a caller: changes that were
    /// abandoned, undos, and processes and streams that are being ended. Calls
    /// with a caller count too; streams that a caller keeps open do not.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn settle(&self, deadline: Instant) -> Settled {
        self.0.client.settle(deadline).await
    }
}

impl fmt::Debug for Docker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Docker")
            .field("endpoint", self.endpoint())
            .finish_non_exhaustive()
    }
}
