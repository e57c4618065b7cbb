//! The bound client.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bind::{BindConfig, BindError, Endpoint, EngineFacts};
use crate::error::CallError;
use crate::log::InvocationLog;
use crate::stream::Stream;
use crate::undo::Undo;
use crate::verb::{Mutation, Query};
use crate::verbs::ExecStream;

/// A docker client that is bound to one engine for its whole life. Clones are
/// the same client.
#[derive(Debug, Clone)]
pub struct Docker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Endpoint,
    engine: EngineFacts,
    log: InvocationLog,
}

/// How long a caller waits: until the deadline, or until it cancels.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "both parts must be given")]
pub struct Bounds {
    /// When the caller gives up.
    pub deadline: Instant,
    /// Cancels the call.
    pub cancel: CancellationToken,
}

/// What [`Docker::settle`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Work that goes on, as the deadline came first.
    pub unfinished: usize,
    /// What could not be taken back since the last time, and why.
    pub failed: Vec<(Undo, String)>,
}

impl Docker {
    /// Finds the engine that docker's own settings name, and pins it.
    pub async fn bind(config: BindConfig) -> Result<Self, BindError> {
        let _ = config;
        todo!("skeleton")
    }

    /// The engine's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// What the engine says of itself.
    pub fn engine(&self) -> &EngineFacts {
        &self.0.engine
    }

    /// Every process that was started.
    pub fn log(&self) -> &InvocationLog {
        &self.0.log
    }

    /// Asks. Dropping the future ends the process.
    pub async fn query<V: Query>(&self, bounds: &Bounds, verb: V) -> Result<V::Answer, CallError> {
        let _ = (bounds, verb);
        todo!("skeleton")
    }

    /// Changes. Dropping the future has the change undone once it is done.
    pub async fn mutate<V: Mutation>(
        &self,
        bounds: &Bounds,
        verb: V,
    ) -> Result<V::Answer, CallError> {
        let _ = (bounds, verb);
        todo!("skeleton")
    }

    /// Opens a program's standard streams. Dropping them ends the client.
    pub async fn open_stream(
        &self,
        bounds: &Bounds,
        verb: ExecStream,
    ) -> Result<Stream, CallError> {
        let _ = (bounds, verb);
        todo!("skeleton")
    }

    /// Waits for work that goes on without a caller: mutations, undos, and
    /// processes that are being ended.
    pub async fn settle(&self, deadline: Instant) -> Settled {
        let _ = deadline;
        todo!("skeleton")
    }
}
