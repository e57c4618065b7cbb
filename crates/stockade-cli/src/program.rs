//! One program in a sandbox: its streams are ours, or its outcome is one object.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stockade::exec::{EndReason, ExecStatus, Process, ProcessExit};
use stockade::{Call, Error, ExecRequest, Interruption, Sandbox};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::report::Echo;
use crate::{args, exit, report, say, streams, terminal};

/// How long output that nobody reads is offered after the program's end.
const UNREAD: Duration = Duration::from_secs(10);

/// How a program ended, for whoever asked for it.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Our own exit code for it.
    pub(crate) code: u8,
    /// Its report, with `--json`.
    pub(crate) report: Option<serde_json::Value>,
}

/// Runs the program to its end.
pub(crate) async fn run(
    program: &args::Program,
    call: &Call,
    sandbox: &Sandbox,
    command: ExecRequest,
) -> Result<Ran, Failure> {
    let echo = Echo::of(&command);
    if program.json {
        let outcome = sandbox.exec(call, command).await?;
        let report = report::outcome(&outcome, &echo, call, sandbox.id().as_str());
        return Ok(Ran {
            code: exit::of_status(&outcome.status),
            report: Some(report),
        });
    }
    let raw = if program.tty {
        let set = terminal::raw();
        Some(set.map_err(|error| Failure::Host(format!("the terminal cannot be set up: {error}")))?)
    } else {
        None
    };
    let mut process = sandbox.spawn(call, command).await?;
    let passed = passed_through(program.tty, call, &mut process).await;
    drop(raw);
    let ended = passed.ended?;
    explain(&ended, &echo, call);
    let code = match passed.broken {
        None => exit::of_status(&ended.status),
        Some(Broken::NobodyReads) => exit::BROKEN_PIPE,
        Some(Broken::Failed(why)) => return Err(Failure::Host(why)),
    };
    Ok(Ran { code, report: None })
}

/// What became of a program and of the streams between.
struct Passed {
    ended: Result<ProcessExit, Error>,
    broken: Option<Broken>,
}

/// Why our own streams could not be kept.
enum Broken {
    /// The reader of our output went away, which ends the program.
    NobodyReads,
    /// Anything else, which must not look like success.
    Failed(String),
}

impl Broken {
    fn output(result: Result<io::Result<()>, tokio::task::JoinError>) -> Option<Self> {
        match result {
            Ok(Ok(())) => None,
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Some(Self::NobodyReads),
            Ok(Err(error)) => Some(Self::Failed(format!(
                "the program's output cannot be written: {error}; the program was ended"
            ))),
            Err(_) => Some(Self::Failed("the program's output was lost".to_owned())),
        }
    }

    fn input(result: Result<io::Result<()>, tokio::task::JoinError>) -> Option<Self> {
        let error = result.ok()?.err()?;
        Some(Self::Failed(format!(
            "standard input cannot be read: {error}; the program was ended"
        )))
    }
}

async fn passed_through(tty: bool, call: &Call, process: &mut Process) -> Passed {
    let stdin = process.take_stdin();
    let mut feeding = tokio::spawn(async move {
        match stdin {
            Some(stdin) => streams::feed(stdin).await,
            None => Ok(()),
        }
    });
    let output = process.take_output();
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let mut passing = tokio::spawn(async move {
        match output {
            Some(output) => streams::pass_on(output, counted).await,
            None => Ok(()),
        }
    });
    let mut resized = signal(SignalKind::window_change()).ok();
    let mut broken = None;
    let (mut passed, mut fed, mut cancelled) = (false, false, false);
    let ended = loop {
        tokio::select! {
            ended = process.wait() => break ended,
            result = &mut passing, if !passed => {
                passed = true;
                if let Some(why) = Broken::output(result) {
                    broken.get_or_insert(why);
                    process.end(EndReason::Cancelled);
                }
            }
            result = &mut feeding, if !fed => {
                fed = true;
                if let Some(why) = Broken::input(result) {
                    broken.get_or_insert(why);
                    process.end(EndReason::Cancelled);
                }
            }
            _ = call.interrupted(), if !cancelled => {
                cancelled = true;
                process.end(EndReason::Cancelled);
            }
            Some(()) = next_resize(&mut resized), if tty => {
                // A sandbox that is gone is told by the wait.
                let _ = process.resize(terminal::size()).await;
            }
        }
    };
    if !passed {
        let last = last_output(call, &mut passing, &taken).await;
        broken = broken.or(last);
    }
    feeding.abort();
    Passed { ended, broken }
}

/// Waits for what the program had written when it ended, as long as somebody
/// takes it: a reader that does not must not keep the sandbox.
async fn last_output(
    call: &Call,
    passing: &mut JoinHandle<io::Result<()>>,
    taken: &AtomicU64,
) -> Option<Broken> {
    let mut before = taken.load(Ordering::Relaxed);
    loop {
        tokio::select! {
            passed = &mut *passing => return Broken::output(passed),
            _ = call.interrupted() => break,
            () = tokio::time::sleep(UNREAD) => {}
        }
        let now = taken.load(Ordering::Relaxed);
        if now == before {
            break;
        }
        before = now;
    }
    passing.abort();
    say::line("the last of the program's output was not read, and is given up");
    Some(Broken::NobodyReads)
}

async fn next_resize(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// One line for what an exit code alone does not say.
fn explain(exit: &ProcessExit, echo: &Echo, call: &Call) {
    match &exit.status {
        ExecStatus::Exited(_) | ExecStatus::Signaled(_) => {}
        ExecStatus::NotStarted(not_started) => {
            say::line(&format!("the program did not start: {not_started}"));
        }
        ExecStatus::TimedOut => {
            say::line(&format!(
                "the program was ended after {} s; give it more with --timeout",
                echo.timeout_seconds()
            ));
        }
        ExecStatus::OutputLimit => {
            say::line("the program was ended because it wrote more than --max-output");
        }
        ExecStatus::Cancelled if call.interruption() == Some(Interruption::DeadlinePassed) => {
            say::line("the program was ended because --deadline passed");
        }
        ExecStatus::Cancelled => say::line("the program was ended"),
        _ => say::line("the program ended what watched over it, so that its exit code is lost"),
    }
    if exit.out_of_memory {
        say::line(
            "a process of the program was killed for want of memory; give it more with --memory",
        );
    }
}
