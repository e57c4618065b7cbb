//! Runs a program of the backend in memory as a command.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::guest::{Children, Guest, OutputLimit};
use super::instance::{State, User, gone};
use super::{Flaw, GuestFiles, Program, Programs};
use crate::backend::BoxFuture;
use crate::error::{Operation, Result};
use crate::exec::{
    self, Background, EndReason, ExecRequest, ExecStatus, NotStarted, NotStartedWhy, OutputChunk,
    Process, ProcessControl, ProcessExit, ProcessParts, TtySize,
};

/// Pieces of output, and bytes of input, that may be under way.
const PIECES: usize = 16;
const INPUT: usize = 64 * 1024;

/// Bytes of standard input that one of the lies lets through.
const CUT_INPUT: u64 = 64 * 1024;

/// Signals that end no program by default: SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
const HARMLESS: [i32; 4] = [17, 18, 23, 28];

/// The signal of a program that aborts itself.
const SIGABRT: i32 = 6;

/// `ENOENT` and `ENOTTY`.
const NO_ENTRY: i32 = 2;
const NO_TERMINAL: i32 = 25;

/// What was asked of a command from outside; the first demand counts.
#[derive(Default)]
struct Control {
    demand: Mutex<Option<Demand>>,
    asked: CancellationToken,
}

#[derive(Clone, Copy)]
enum Demand {
    End(EndReason),
    Signal(i32),
}

/// One command while it runs.
struct Run {
    user: User,
    program: AbortOnDropHandle<i32>,
    children: Children,
    background: Background,
    timeout: Duration,
    over_limit: CancellationToken,
    control: Arc<Control>,
}

/// Starts a command; one that cannot start is a process that never ran.
pub(super) fn start(state: &Arc<State>, programs: &Programs, request: ExecRequest) -> Process {
    let found = find(programs, &request);
    let placed = found.and_then(|(program, args)| Ok((program, args, place(state, &request)?)));
    match placed {
        Ok((program, args, files)) => {
            let args = lied(args, state.flaw());
            Process::new(started(state, program, args, files, request))
        }
        Err(why) if why.why == NotStartedWhy::NotFound => match state.flaw() {
            Some(Flaw::ExecFakesMissingProgram) => Process::new(never_ran(ExecStatus::Exited(127))),
            _ => Process::new(never_ran(ExecStatus::NotStarted(why))),
        },
        Err(why) => Process::new(never_ran(ExecStatus::NotStarted(why))),
    }
}

/// The program of a request and its arguments.
fn find<'p>(
    programs: &'p Programs,
    request: &ExecRequest,
) -> Result<(&'p Program, Vec<Vec<u8>>), NotStarted> {
    if request.tty().is_some() {
        return Err(NotStarted::new(NotStartedWhy::Terminal, NO_TERMINAL));
    }
    let (name, args, missing) = match request.program() {
        exec::Program::Argv(argv) => {
            let (name, args) = argv
                .split_first()
                .ok_or(NotStarted::new(NotStartedWhy::Invalid, 0))?;
            (name.as_slice(), args.to_vec(), NotStartedWhy::NotFound)
        }
        exec::Program::Shell(line) => {
            let args = vec![b"-c".to_vec(), line.clone()];
            (&b"sh"[..], args, NotStartedWhy::NoShell)
        }
    };
    let program = programs.get(name);
    program
        .map(|program| (program, args))
        .ok_or(NotStarted::new(missing, NO_ENTRY))
}

/// The files, from the directory of the request.
fn place(state: &State, request: &ExecRequest) -> Result<GuestFiles, NotStarted> {
    let files = state.guest_files();
    match request.cwd() {
        Some(cwd) if state.flaw() != Some(Flaw::ExecIgnoresDirectory) => {
            let place = files.in_directory(cwd);
            place.map_err(|_| NotStarted::new(NotStartedWhy::WorkingDirectory, NO_ENTRY))
        }
        _ => Ok(files),
    }
}

/// Arguments as they arrive, lies included.
fn lied(args: Vec<Vec<u8>>, flaw: Option<Flaw>) -> Vec<Vec<u8>> {
    match flaw {
        Some(Flaw::ExecSplitsArguments) => {
            let words = args.iter().flat_map(|arg| arg.split(|&byte| byte == b' '));
            words.map(<[u8]>::to_vec).collect()
        }
        Some(Flaw::ExecDropsEmptyArguments) => {
            args.into_iter().filter(|arg| !arg.is_empty()).collect()
        }
        _ => args,
    }
}

fn started(
    state: &Arc<State>,
    program: &Program,
    args: Vec<Vec<u8>>,
    files: GuestFiles,
    request: ExecRequest,
) -> ProcessParts {
    static NEXT_PID: AtomicU32 = AtomicU32::new(2);
    let (output, mut chunks) = mpsc::channel(PIECES);
    let (host_end, guest_end) = tokio::io::duplex(INPUT);
    let (stdin, guest_stdin) = if request.stdin().is_open() {
        (Some(Box::new(host_end) as _), Some(guest_end))
    } else {
        (None, None)
    };
    let children = Children::default();
    let over_limit = CancellationToken::new();
    let guest = Guest {
        args,
        env: environment(state, &request),
        cwd: request.cwd().map(<[u8]>::to_vec),
        stdin: guest_stdin.map(|stdin| stdin.take(input_limit(state.flaw()))),
        output,
        limit: OutputLimit {
            left: request
                .ends_after()
                .filter(|_| state.flaw() != Some(Flaw::ExecIgnoresOutputLimit))
                .unwrap_or(u64::MAX),
            spent: over_limit.clone(),
        },
        children: Arc::clone(&children),
        files,
        flaw: state.flaw(),
    };
    let control = Arc::<Control>::default();
    let run = Run {
        user: User::of(state),
        program: AbortOnDropHandle::new(tokio::spawn(program(guest))),
        children,
        background: request.background(),
        timeout: request.timeout(),
        over_limit,
        control: Arc::clone(&control),
    };
    let run = tokio::spawn(run.finish());
    ProcessParts {
        pid: NEXT_PID.fetch_add(1, Ordering::Relaxed),
        stdin,
        output: Box::pin(futures_util::stream::poll_fn(move |context| {
            chunks.poll_recv(context)
        })),
        exit: Box::pin(async move {
            let ended = run.await;
            // Only with its runtime can the task end early.
            ended.unwrap_or_else(|_| Err(gone(Operation::Wait)))
        }),
        control,
    }
}

/// How much of standard input arrives.
fn input_limit(flaw: Option<Flaw>) -> u64 {
    match flaw {
        Some(Flaw::ExecCutsInput) => CUT_INPUT,
        _ => u64::MAX,
    }
}

fn never_ran(status: ExecStatus) -> ProcessParts {
    let exit = ProcessExit::new(status);
    ProcessParts {
        pid: 0,
        stdin: None,
        output: Box::pin(futures_util::stream::empty::<OutputChunk>()),
        exit: Box::pin(async move { Ok(exit) }),
        control: Arc::<Control>::default(),
    }
}

/// The sandbox's variables, with the command's on top.
fn environment(state: &State, request: &ExecRequest) -> BTreeMap<String, Vec<u8>> {
    let of_sandbox = state.spec().env().iter();
    let of_sandbox = of_sandbox.map(|(name, value)| (name.clone(), value.clone().into_bytes()));
    let dropped = state.flaw() == Some(Flaw::ExecDropsVariables);
    let own = request.env().filter(|_| !dropped);
    let own = own.map(|(name, value)| (name.to_owned(), value.to_vec()));
    of_sandbox.chain(own).collect()
}

impl Run {
    /// Runs the program until it, or something else, ends it.
    async fn finish(mut self) -> Result<ProcessExit> {
        let started = Instant::now();
        let status = self.status().await;
        if !self.program.is_finished() {
            self.program.abort();
            // Its future is dropped, and its end proved, when this returns.
            let _ = (&mut self.program).await;
        }
        let (left_running, tree_ended) = self.end_children().await;
        let Some(status) = status else {
            return Err(gone(Operation::Wait));
        };
        let mut exit = ProcessExit::new(status);
        exit.times.wall = started.elapsed();
        exit.left_running = left_running;
        exit.tree_ended = tree_ended;
        Ok(exit)
    }

    /// How it ended; nothing when the sandbox did.
    async fn status(&mut self) -> Option<ExecStatus> {
        let flaw = self.user.state().flaw();
        tokio::select! {
            biased;
            () = self.control.asked.cancelled(), if flaw != Some(Flaw::ExecIgnoresCancel) => {
                Some(self.control.status())
            }
            () = self.user.state().ended() => None,
            () = self.over_limit.cancelled() => Some(ExecStatus::OutputLimit),
            ended = &mut self.program => Some(match ended {
                Ok(_) if flaw == Some(Flaw::ExecLosesExitCode) => ExecStatus::Exited(0),
                Ok(code) => ExecStatus::Exited(code & 0xff),
                Err(_panicked) => ExecStatus::Signaled(SIGABRT),
            }),
            () = sleep(self.timeout), if flaw != Some(Flaw::ExecIgnoresTimeout) => {
                Some(ExecStatus::TimedOut)
            }
        }
    }

    /// Ends what the program left running, or lets it go on until the sandbox
    /// ends; how much there is of it, and whether nothing is left.
    async fn end_children(&self) -> (u32, bool) {
        let mut children = {
            let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *children)
        };
        while children.try_join_next().is_some() {}
        if children.is_empty() || self.background == Background::Kill {
            children.shutdown().await;
            return (0, true);
        }
        let left_running = u32::try_from(children.len()).unwrap_or(u32::MAX);
        let state = Arc::clone(self.user.state());
        tokio::spawn(async move {
            tokio::select! {
                () = state.ended() => {}
                () = async { while children.join_next().await.is_some() {} } => {}
            }
        });
        (left_running, false)
    }
}

impl Control {
    fn ask(&self, demand: Demand) {
        let mut first = self.demand.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(demand);
        self.asked.cancel();
    }

    fn status(&self) -> ExecStatus {
        let demand = self.demand.lock().unwrap_or_else(PoisonError::into_inner);
        match *demand {
            Some(Demand::Signal(signal)) => ExecStatus::Signaled(signal),
            Some(Demand::End(EndReason::TimedOut)) => ExecStatus::TimedOut,
            Some(Demand::End(EndReason::OutputLimit)) => ExecStatus::OutputLimit,
            Some(Demand::End(EndReason::Cancelled | EndReason::Dropped)) | None => {
                ExecStatus::Cancelled
            }
        }
    }
}

impl ProcessControl for Control {
    fn signal(&self, signal: i32) -> BoxFuture<'_, Result<()>> {
        if !HARMLESS.contains(&signal) {
            self.ask(Demand::Signal(signal));
        }
        Box::pin(async { Ok(()) })
    }

    fn resize(&self, _size: TtySize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn end(&self, reason: EndReason) {
        self.ask(Demand::End(reason));
    }

    fn detach(&self) {
        // The task of the run needs no handle to go on.
    }
}
