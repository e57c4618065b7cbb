//! Running calls: queue, start, watch, record, conclude, undo.

mod conclude;
mod files;
mod hold;
mod mutate;
mod open;
mod undo;

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::files::{CallFiles, Made};
use crate::argv::Argv;
use crate::bind::{BindConfig, PrivateFolder, Timeouts};
use crate::bounds::Bounds;
use crate::error::{CallError, CallErrorKind, Called};
use crate::log::{Invocation, InvocationLog, Outcome};
use crate::process::{Fate, Finished, Group, Limits, Process, Program, Sink, Start, supervise};
use crate::undo::FailedUndo;
use crate::verb::{Input, LineSink, Query, Verb};

/// Everything that calls of one bound client share.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

struct Shared {
    program: Program,
    /// Where docker's configuration and the files of single calls are; it
    /// goes with the last one who may start a process.
    folder: Arc<PrivateFolder>,
    timeouts: Timeouts,
    slots: Arc<Semaphore>,
    log: Arc<InvocationLog>,
    /// The runtime that the client was made in: work without a caller runs
    /// there.
    runtime: Handle,
    tasks: TaskTracker,
    failed_undos: Mutex<Vec<FailedUndo>>,
}

/// A place among the processes in flight, and how long it was waited for.
struct Slot {
    permit: OwnedSemaphorePermit,
    queued: Duration,
}

/// A call without its verb.
struct Request {
    verb: &'static str,
    argv: Argv,
    input: Input,
    timeout: Duration,
    stdout_limit: usize,
    progress: Option<LineSink>,
    progress_is_on_both: bool,
    prompt: Option<&'static str>,
}

/// A call whose process was reaped.
struct Done {
    finished: Finished,
    made: Made,
}

impl Client {
    /// Runs `program` from now on, and work without a caller on the runtime
    /// that this is called in.
    pub(crate) fn new(
        program: Program,
        folder: Arc<PrivateFolder>,
        log: Arc<InvocationLog>,
        config: &BindConfig,
    ) -> Self {
        let tasks = TaskTracker::new();
        // A closed tracker still takes tasks; it is what lets a wait for all
        // of them end.
        tasks.close();
        Self(Arc::new(Shared {
            program,
            folder,
            timeouts: config.timeouts,
            slots: Arc::new(Semaphore::new(
                config.in_flight.clamp(1, Semaphore::MAX_PERMITS),
            )),
            log,
            runtime: Handle::current(),
            tasks,
            failed_undos: Mutex::default(),
        }))
    }

    /// How long an ordinary command may run.
    pub(crate) fn longest(&self) -> Duration {
        self.0.timeouts.short
    }

    pub(crate) fn log(&self) -> &InvocationLog {
        &self.0.log
    }

    /// Asks. The process is ended when this future is dropped.
    pub(crate) async fn query<V: Query>(
        &self,
        bounds: &Bounds,
        verb: &V,
    ) -> Result<V::Answer, CallError> {
        let call = Called::new(V::NAME, &verb.argv());
        let done = self.ask(bounds, verb, &call).await?;
        self.conclude(bounds, verb, done, &call).await
    }

    /// Runs a query's process to its end, whatever that says.
    async fn ask<V: Verb>(
        &self,
        bounds: &Bounds,
        verb: &V,
        call: &Called,
    ) -> Result<Done, CallError> {
        let request = self.request(verb);
        let slot = self.slot(bounds, call).await?;
        let stop = CancellationToken::new();
        // Dropped with this future, whatever drops it.
        let _stops = stop.clone().drop_guard();
        let client = self.clone();
        let run = self.spawn(async move { client.run(request, slot, Fate::Ends, stop).await });
        match bounds.limit(run).await {
            Ok(Ok(done)) => done.map_err(|error| call.not_started(error)),
            Ok(Err(_)) => Err(call.failed(CallErrorKind::Closed)),
            Err(kind) => Err(call.failed(kind)),
        }
    }

    fn request<V: Verb>(&self, verb: &V) -> Request {
        Request {
            verb: V::NAME,
            argv: verb.argv(),
            input: verb.stdin(),
            timeout: self.0.timeouts.of(verb.timeout_class()),
            stdout_limit: verb.stdout_limit(),
            progress: verb.progress().cloned(),
            progress_is_on_both: verb.progress_is_on_both(),
            prompt: verb.prompt(),
        }
    }

    /// Waits for a place among the processes in flight. Nothing is started
    /// for a caller who has given up.
    async fn slot(&self, bounds: &Bounds, call: &Called) -> Result<Slot, CallError> {
        let asked = Instant::now();
        let permit = tokio::select! {
            biased;
            kind = bounds.passed() => return Err(call.failed(kind)),
            permit = Arc::clone(&self.0.slots).acquire_owned() => permit,
        };
        // The semaphore is never closed.
        let permit = permit.map_err(|_| call.failed(CallErrorKind::Closed))?;
        Ok(Slot {
            permit,
            queued: asked.elapsed(),
        })
    }

    /// Starts the process of a call and watches it to its end.
    async fn run(
        &self,
        request: Request,
        slot: Slot,
        fate: Fate,
        stop: CancellationToken,
    ) -> io::Result<Done> {
        let files = CallFiles::make(self.0.folder.calls(), &request.argv).await?;
        let stdin = !matches!(request.input, Input::Nothing);
        let process = self.start(request.verb, &request.argv, &files, stdin, Group::Own, fate)?;
        let sink = match request.progress {
            Some(progress) => Sink::told(progress, request.prompt, request.progress_is_on_both),
            None => Sink::whole(request.stdout_limit),
        };
        let limits = Limits {
            timeout: request.timeout,
            grace: self.0.timeouts.grace,
            leak: self.0.timeouts.leak,
        };
        let finished = supervise(process, request.input, sink, limits, stop).await?;
        self.0.log.ended(Invocation {
            verb: request.verb,
            queued: slot.queued,
            ran: finished.ran,
            outcome: Outcome::of(finished.exit, finished.ended),
        });
        drop(slot.permit);
        Ok(Done {
            finished,
            made: files.finish().await,
        })
    }

    fn start(
        &self,
        verb: &'static str,
        argv: &Argv,
        files: &CallFiles,
        stdin: bool,
        group: Group,
        fate: Fate,
    ) -> io::Result<Process> {
        let words = files.words(argv);
        let environment = argv.client_environment().collect();
        let start = Start {
            program: &self.0.program,
            words: &words,
            environment,
            stdin,
            group,
            fate,
        };
        let process = start.spawn()?;
        self.0.log.started(verb);
        Ok(process)
    }

    /// Runs a task that outlives its caller.
    fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.tasks.spawn_on(task, &self.0.runtime)
    }
}
