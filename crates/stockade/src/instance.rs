//! One sandbox, and the handle to it.

use std::fmt;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::exec::{self, ExecOutcome, ExecRequest, Process};
use crate::key::InstanceId;
use crate::refusal::Refusal;
use crate::vocabulary::Capability;
use crate::words::Words;

/// One physical sandbox, as a backend implements it.
pub trait Instance: Send + Sync + 'static {
    /// Its name; never that of another sandbox, before or after.
    fn id(&self) -> &InstanceId;

    /// Whether the acquire that returned it made it. Truthful: a sandbox that
    /// was replaced is fresh, one that was found is not.
    fn freshly_created(&self) -> bool;

    /// Starts a command.
    fn spawn<'a>(&'a self, call: &'a Call, request: ExecRequest) -> BoxFuture<'a, Result<Process>>;

    /// Brings it back to a known state, which makes it another sandbox.
    fn reset<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Sandbox>> {
        let _ = call;
        let refusal = Refusal::CapabilityMissing {
            missing: Words::from([Capability::Snapshot]),
        };
        Box::pin(async move { Err(Error::refused(Operation::Reset, refusal)) })
    }
}

/// A handle to a sandbox. Clones are the same handle; dropping the last one
/// closes the way to the sandbox, not the sandbox.
#[derive(Clone)]
pub struct Sandbox {
    instance: Arc<dyn Instance>,
}

impl Sandbox {
    /// The handle to an instance.
    #[must_use]
    pub fn new(instance: Arc<dyn Instance>) -> Self {
        Self { instance }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        self.instance.id()
    }

    /// Whether the acquire that returned it made it.
    #[must_use]
    pub fn freshly_created(&self) -> bool {
        self.instance.freshly_created()
    }

    /// Starts a command, and feeds its standard input when the request holds it.
    pub async fn spawn(&self, call: &Call, mut request: ExecRequest) -> Result<Process> {
        if let Some(why) = call.interruption() {
            return Err(Error::interrupted(Operation::Spawn, why).into());
        }
        let stdin = request.take_stdin();
        let mut process = self.instance.spawn(call, request).await?;
        process.feed(stdin);
        Ok(process)
    }

    /// Runs a command to its end and collects its output.
    pub async fn exec(&self, call: &Call, request: ExecRequest) -> Result<ExecOutcome> {
        if request.output_limit() > exec::COLLECT_CEILING {
            return Err(Error::new(ErrorKind::InvalidRequest, Operation::Exec).into());
        }
        let process = self.spawn(call, request).await?;
        exec::collect(call, process).await
    }

    /// Brings it back to a known state; the handle to what it is then.
    pub async fn reset(&self, call: &Call) -> Result<Self> {
        self.instance.reset(call).await
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("id", self.id())
            .field("freshly_created", &self.freshly_created())
            .finish_non_exhaustive()
    }
}
