//! `stockade run`: one program in a fresh sandbox, which is removed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stockade::exec::{EndReason, ExecStatus, Process, ProcessExit};
use stockade::{Backend as _, Call, Error, ExecRequest, Interruption, Sandbox, SandboxKey, Which};
use stockade_docker::DockerBackend;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::interrupt::Interrupted;
use crate::report::Echo;
use crate::{args, exit, interrupt, progress, report, request, say, streams, terminal};

/// How long output that nobody reads is offered after the program's end.
const UNREAD: std::time::Duration = std::time::Duration::from_secs(10);

/// How long the removal may take when the call's own time is over.
const CLEANUP: std::time::Duration = std::time::Duration::from_secs(30);

/// Runs the command; the answer is our own exit code.
pub(crate) async fn run(args: &args::Run) -> u8 {
    let (spec, command) = match (request::spec(args), request::command(args)) {
        (Ok(spec), Ok(command)) => (spec, command),
        (spec, command) => {
            let mut faults = spec.err().unwrap_or_default();
            faults.extend(command.err().map(|error| error.to_string()));
            return usage(args, &faults);
        }
    };
    if args.tty && !terminal::is_terminal() {
        let fault = "--tty: standard input is no terminal; leave --tty out".to_owned();
        return usage(args, &[fault]);
    }
    let call = Call::with_timeout(args.deadline());
    let interrupted = match interrupt::watch(&call) {
        Ok(interrupted) => interrupted,
        Err(error) => {
            say::line(&format!("signals cannot be watched: {error}"));
            return exit::FAILED;
        }
    };
    let backend =
        match DockerBackend::connect(&call, progress::config(&args.engine, args.json)).await {
            Ok(backend) => backend,
            Err(error) => return failed(args, &error, &call, &interrupted),
        };
    let key = SandboxKey::new("cli", "run", "run").with_call(call.id().as_str());
    let result = match backend.acquire(&call, &key, &spec).await {
        Ok(sandbox) => in_sandbox(args, &call, &sandbox, command).await,
        Err(error) => Err(error),
    };
    let left = remove(&backend, &key).await;
    let code = match result {
        Ok(_) if interrupted.is_set() => exit::INTERRUPTED,
        Ok(code) => code,
        Err(error) => failed(args, &error, &call, &interrupted),
    };
    if left { exit::FAILED } else { code }
}

async fn in_sandbox(
    args: &args::Run,
    call: &Call,
    sandbox: &Sandbox,
    command: ExecRequest,
) -> Result<u8, Error> {
    let echo = Echo::of(&command);
    if args.json {
        return collected(call, sandbox, command, &echo).await;
    }
    let raw = if args.tty {
        Some(terminal::raw().map_err(|error| failure("the terminal cannot be set up", error))?)
    } else {
        None
    };
    let mut process = sandbox.spawn(call, command).await?;
    let (ended, broken) = passed_through(args, call, &mut process).await;
    drop(raw);
    let ended = ended?;
    explain(&ended, &echo, call);
    Ok(if broken {
        exit::BROKEN_PIPE
    } else {
        exit::of_status(&ended.status)
    })
}

/// The whole outcome as one object.
async fn collected(
    call: &Call,
    sandbox: &Sandbox,
    command: ExecRequest,
    echo: &Echo,
) -> Result<u8, Error> {
    let outcome = sandbox.exec(call, command).await?;
    print(&report::outcome(
        &outcome,
        echo,
        call,
        sandbox.id().as_str(),
    ));
    Ok(exit::of_status(&outcome.status))
}

/// The program's streams are ours. Also says whether our output broke.
async fn passed_through(
    args: &args::Run,
    call: &Call,
    process: &mut Process,
) -> (Result<ProcessExit, Error>, bool) {
    let feeder = process
        .take_stdin()
        .map(|stdin| tokio::spawn(streams::feed(stdin)));
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
    let mut broken = false;
    let mut passed = false;
    let mut cancelled = false;
    let ended = loop {
        tokio::select! {
            ended = process.wait() => break ended,
            result = &mut passing, if !passed => {
                passed = true;
                if !matches!(result, Ok(Ok(()))) {
                    broken = true;
                    process.end(EndReason::Cancelled);
                }
            }
            _ = call.interrupted(), if !cancelled => {
                cancelled = true;
                process.end(EndReason::Cancelled);
            }
            Some(()) = next_resize(&mut resized), if args.tty => {
                // A sandbox that is gone is told by the wait.
                let _ = process.resize(terminal::size()).await;
            }
        }
    };
    if !passed {
        broken |= !last_output(call, &mut passing, &taken).await;
    }
    if let Some(feeder) = feeder {
        feeder.abort();
    }
    (ended, broken)
}

/// Waits for what the program had written when it ended, as long as somebody
/// takes it: a reader that does not must not keep the sandbox. Whether it was
/// passed on whole.
async fn last_output(
    call: &Call,
    passing: &mut JoinHandle<std::io::Result<()>>,
    taken: &AtomicU64,
) -> bool {
    let mut before = taken.load(Ordering::Relaxed);
    loop {
        tokio::select! {
            passed = &mut *passing => return matches!(passed, Ok(Ok(()))),
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
    false
}

async fn next_resize(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
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

/// Removes the sandbox, whatever happened. Also says whether something is left.
async fn remove(backend: &DockerBackend, key: &SandboxKey) -> bool {
    let call = Call::with_timeout(CLEANUP);
    let disposed = backend.dispose(&call, key, Which::All).await;
    let closed = backend.close(&call).await;
    let mut left = false;
    for result in [disposed, closed] {
        match result {
            Ok(removed) => {
                for failure in &removed.failures {
                    left = true;
                    say::line(&format!("not removed: {failure}"));
                }
            }
            Err(error) => {
                left = true;
                say::error(&error);
            }
        }
    }
    left
}

fn failed(args: &args::Run, error: &Error, call: &Call, interrupted: &Interrupted) -> u8 {
    if args.json {
        print(&report::error(error, Some(call)));
    } else {
        say::error(error);
    }
    if interrupted.is_set() {
        exit::INTERRUPTED
    } else {
        exit::of_error(error)
    }
}

fn usage(args: &args::Run, faults: &[String]) -> u8 {
    if args.json {
        print(&report::usage(faults));
    } else {
        for fault in faults {
            say::line(fault);
        }
        say::line("`stockade run --help` lists the options");
    }
    exit::USAGE
}

fn failure(what: &str, error: std::io::Error) -> Error {
    Error::new(stockade::ErrorKind::Internal, stockade::Operation::Exec)
        .message(what)
        .source(error)
        .build()
}

/// One object on standard output.
pub(crate) fn print(object: &serde_json::Value) {
    use std::io::Write as _;
    // Nobody is left to tell when standard output is closed.
    let _ = writeln!(std::io::stdout().lock(), "{object:#}");
}
