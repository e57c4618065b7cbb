//! One sandbox, and the handle to it.

use std::fmt;
use std::sync::Arc;

use crate::backend::BoxFuture;
use crate::call::{Call, Phase};
use crate::error::{Error, Operation, Result};
use crate::exec::{self, Bounds, ExecOutcome, ExecRequest, Process, Stdin};
use crate::fault::Fault;
use crate::files::{Download, FileStat, GuestPath, ListRequest, Listing, ReadFile, Upload};
use crate::key::InstanceId;
use crate::refusal::Refusal;
use crate::spec::SandboxSpec;
use crate::vocabulary::{Capability, Feature};
use crate::words::Words;

/// One physical sandbox, as a backend implements it.
///
/// Dropping it closes the way to the sandbox, never the sandbox itself.
/// Callers use [`Sandbox`], which adds what is the same for every backend.
pub trait Instance: Send + Sync + 'static {
    /// Its name.
    ///
    /// - Behaviour: the same for the life of the sandbox, and never that of
    ///   another one, before or after.
    fn id(&self) -> &InstanceId;

    /// Whether the acquire that returned it made it.
    ///
    /// - Behaviour: truthful. A sandbox that was replaced, or lost its work
    ///   directory, is fresh; one that was found as it was left is not.
    fn freshly_created(&self) -> bool;

    /// What it was acquired as; its limits are those of every transfer.
    fn spec(&self) -> &SandboxSpec;

    /// Starts a command.
    ///
    /// - Requires: the request's standard input is
    ///   [`Stdin::Closed`] or
    ///   [`Stdin::Piped`]; [`Sandbox::spawn`] feeds what
    ///   else there is.
    /// - Behaviour: answers once the command runs, after any wait for a free
    ///   place, which is [`ExecTimes::queued`](exec::ExecTimes::queued).
    /// - Behaviour: a program that cannot be started is no error, but a
    ///   process whose status is [`NotStarted`](exec::ExecStatus::NotStarted).
    /// - Behaviour: the call bounds the start, not the command; when the call
    ///   must end first, or the future is dropped, no command is left.
    /// - Behaviour: the command's own timeout and
    ///   [`ends_after`](ExecRequest::ends_after) are enforced in the sandbox.
    /// - Behaviour: a sandbox that is gone is [`ErrorKind::Lost`](crate::ErrorKind::Lost).
    fn spawn<'a>(&'a self, call: &'a Call, request: ExecRequest) -> BoxFuture<'a, Result<Process>>;

    /// Writes a batch, which is checked and has its content at hand.
    ///
    /// - Requires: [`Capability::FilesIn`]; without it, the default refuses.
    /// - Behaviour: whatever race the guest wins, nothing is written that the
    ///   guest could not have written by itself; a link is never followed.
    /// - Behaviour: files are the guest's own, and so are directories that are
    ///   made; directories that exist are not touched.
    /// - Behaviour: what could not be written is refused, and
    ///   [`Error::arrived`] names what was written all the same.
    fn write_files<'a>(&'a self, call: &'a Call, upload: Upload) -> BoxFuture<'a, Result<()>> {
        let _ = (call, upload);
        lacks(Operation::WriteFiles, Capability::FilesIn)
    }

    /// Reads files, in the order in which they were asked for.
    ///
    /// - Requires: [`Capability::FilesOut`]; without it, the default refuses.
    /// - Behaviour: regular files only, sizes before bodies
    ///   ([`Download::check_sizes`]), whole or not at all; a link is never
    ///   followed.
    fn read_files<'a>(
        &'a self,
        call: &'a Call,
        download: Download,
    ) -> BoxFuture<'a, Result<Vec<ReadFile>>> {
        let _ = (call, download);
        lacks(Operation::ReadFiles, Capability::FilesOut)
    }

    /// What is at a path.
    ///
    /// - Requires: [`Capability::FilesOut`]; without it, the default refuses.
    /// - Behaviour: nothing there is no error; a link is named a link, and one
    ///   on the way is refused.
    fn stat<'a>(
        &'a self,
        call: &'a Call,
        path: &'a GuestPath,
    ) -> BoxFuture<'a, Result<Option<FileStat>>> {
        let _ = (call, path);
        lacks(Operation::Stat, Capability::FilesOut)
    }

    /// What a directory holds.
    ///
    /// - Requires: [`Capability::FilesList`]; without it, the default refuses.
    /// - Behaviour: bounded in entries, and says when there is more.
    fn list_dir<'a>(
        &'a self,
        call: &'a Call,
        request: &'a ListRequest,
    ) -> BoxFuture<'a, Result<Listing>> {
        let _ = (call, request);
        lacks(Operation::ListDir, Capability::FilesList)
    }

    /// Removes what is at a path.
    ///
    /// - Requires: [`Capability::FilesDelete`]; without it, the default refuses.
    /// - Behaviour: with the rights of the guest's own user; nothing there is
    ///   success; links are removed and not followed; a directory needs
    ///   `recursive`; the work directory itself is refused.
    fn remove<'a>(
        &'a self,
        call: &'a Call,
        path: &'a GuestPath,
        recursive: bool,
    ) -> BoxFuture<'a, Result<()>> {
        let _ = (call, path, recursive);
        lacks(Operation::Remove, Capability::FilesDelete)
    }

    /// Removes a directory of the host's own, and makes sure that it is gone.
    ///
    /// - Requires: [`Capability::Reclaim`]; without it, the default refuses.
    fn reclaim<'a>(&'a self, call: &'a Call, path: &'a GuestPath) -> BoxFuture<'a, Result<()>> {
        let _ = (call, path);
        lacks(Operation::Reclaim, Capability::Reclaim)
    }

    /// Brings it back to a known state, which makes it another sandbox.
    ///
    /// - Requires: [`Capability::Snapshot`]; without it, the default refuses.
    /// - Behaviour: what ran is ended, and the answer has another name.
    fn reset<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Sandbox>> {
        let _ = call;
        lacks(Operation::Reset, Capability::Snapshot)
    }
}

/// The answer to an operation that needs what a backend does not have.
fn lacks<'a, T: Send + 'a>(
    operation: Operation,
    capability: Capability,
) -> BoxFuture<'a, Result<T>> {
    let refusal = Refusal::CapabilityMissing {
        missing: Words::from([capability]),
    };
    Box::pin(async move { Err(Error::refused(operation, refusal)) })
}

/// A handle to a sandbox. Clones are the same handle.
///
/// Dropping the last clone closes the way to the sandbox and ends the commands
/// that are not kept in the background; the sandbox stays until it is
/// disposed of, reaped, or ends at its idle limit or maximum age.
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

    pub(crate) fn instance(&self) -> &dyn Instance {
        self.instance.as_ref()
    }

    /// What it was acquired as.
    #[must_use]
    pub fn spec(&self) -> &SandboxSpec {
        self.instance.spec()
    }

    /// Its name; another after it was replaced or reset.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        self.instance.id()
    }

    /// Whether the acquire that returned it made it, so that nothing of an
    /// earlier use can be in it.
    #[must_use]
    pub fn freshly_created(&self) -> bool {
        self.instance.freshly_created()
    }

    /// Starts a command, and feeds its standard input when the request holds
    /// it. The call bounds the start, not the command.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut) and [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the call
    ///   must end before the command started,
    /// - [`ErrorKind::Refused`](crate::ErrorKind::Refused) for a request that may call the host's tools,
    ///   which no sandbox serves yet,
    /// - [`ErrorKind::Lost`](crate::ErrorKind::Lost) when the sandbox or the way to it is gone,
    /// - [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) when the engine does not answer.
    ///
    /// A program that cannot be started is no error; see
    /// [`ExecStatus::NotStarted`](exec::ExecStatus::NotStarted).
    ///
    /// Cancel safety: safe; a command whose start is not awaited to its end
    /// is ended.
    pub async fn spawn(&self, call: &Call, request: ExecRequest) -> Result<Process> {
        self.start(Operation::Spawn, call, request).await
    }

    /// Runs a command to its end and collects its output.
    ///
    /// When the call must end first, the command is ended with its whole tree
    /// and the outcome says [`Cancelled`](exec::ExecStatus::Cancelled): a
    /// deadline of the call is not the command's own timeout. What it wrote
    /// up to then is kept, as it is at its timeout and at its output limit.
    /// An end that the sandbox does not confirm within 10 seconds is reported
    /// with [`tree_ended`](ExecOutcome::tree_ended) false.
    ///
    /// # Errors
    ///
    /// As of [`Sandbox::spawn`] until the command started, as of
    /// [`Process::wait`] after that, and [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) for
    /// [`Stdin::Piped`] and for an output limit above
    /// [`COLLECT_CEILING`](exec::COLLECT_CEILING), which need `spawn`.
    ///
    /// Cancel safety: safe; dropped, it ends the command with its whole tree.
    pub async fn exec(&self, call: &Call, request: ExecRequest) -> Result<ExecOutcome> {
        let faults = needs_spawn(&request);
        if !faults.is_empty() {
            return Err(Error::invalid(Operation::Exec, faults));
        }
        let bounds = Bounds::of(&request);
        let process = self.start(Operation::Exec, call, request).await?;
        exec::collect(call, process, bounds).await
    }

    /// Brings it back to a known state; the answer is the handle to what it
    /// is then, and this one is of no more use.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) without [`Capability::Snapshot`].
    ///
    /// Cancel safety: not safe; the sandbox may be in either state.
    pub async fn reset(&self, call: &Call) -> Result<Self> {
        self.instance.reset(call).await
    }

    async fn start(
        &self,
        operation: Operation,
        call: &Call,
        mut request: ExecRequest,
    ) -> Result<Process> {
        if request.tools() {
            let feature = Feature::HostToolCalls;
            return Err(Error::refused(operation, Refusal::NotYetServed { feature }));
        }
        if let Some(why) = call.interruption() {
            return Err(Error::interrupted(operation, why)
                .phase(Phase::Start)
                .into());
        }
        let _phase = call.enter(Phase::Start);
        let stdin = request.take_stdin();
        let mut process = self.instance.spawn(call, request).await?;
        process.feed(stdin);
        Ok(process)
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

/// What keeps a request from being collected.
fn needs_spawn(request: &ExecRequest) -> Vec<Fault> {
    let mut faults = Vec::new();
    if request.output_limit() > exec::COLLECT_CEILING {
        faults.push(Fault::new(
            "output_limit",
            request.output_limit(),
            format!(
                "more than {} bytes are not collected in memory",
                exec::COLLECT_CEILING
            ),
            "lower it, or stream the output with `spawn`",
        ));
    }
    if matches!(request.stdin(), Stdin::Piped) {
        faults.push(Fault::new(
            "stdin",
            "piped",
            "nobody could write to it while the command runs",
            "give bytes or a reader, or use `spawn`",
        ));
    }
    faults
}
