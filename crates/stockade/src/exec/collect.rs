//! A command's whole run: its output, kept within its bound, and its end.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::keep::Kept;
use super::outcome::{ExecOutcome, ExecStatus, ExecTimes, ProcessExit};
use super::process::{EndReason, OutputChunk, Process, ProcessOutput};
use super::request::{AtOutputLimit, ExecRequest};
use crate::call::{Call, Phase};
use crate::error::Result;

/// Most bytes of output that are collected in memory.
pub const COLLECT_CEILING: u64 = 256 * 1024 * 1024;

/// Time that the sandbox has to end a command at its own timeout before the
/// host asks for it.
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// Time within which the end of a command that is being ended must be
/// reported: the 5 seconds that killing may take, and as much for the way.
const CONFIRMATION: Duration = Duration::from_secs(10);

/// Time for the last output after the end was reported.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// The bounds of a run, taken from its request before that is handed over.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    timeout: Duration,
    output_limit: u64,
    at_output_limit: AtOutputLimit,
}

/// What happened next.
enum Event {
    Output(OutputChunk),
    OutputEnded,
    Exit(Result<ProcessExit>),
    MustEnd(EndReason),
    Unconfirmed(EndReason),
}

impl Bounds {
    pub(crate) fn of(request: &ExecRequest) -> Self {
        Self {
            timeout: request.timeout(),
            output_limit: request.output_limit(),
            at_output_limit: request.at_output_limit(),
        }
    }
}

/// Runs a process to its end.
pub(crate) async fn collect(
    call: &Call,
    mut process: Process,
    bounds: Bounds,
) -> Result<ExecOutcome> {
    let _phase = call.enter(Phase::Run);
    let started = Instant::now();
    let mut output = process.take_output();
    let mut kept = Kept::new(bounds.output_limit, bounds.at_output_limit);
    let mut ending: Option<(EndReason, Instant)> = None;
    let mut over_limit = false;
    let mut interrupted = pin!(call.interrupted());
    let mut timeout = pin!(sleep_until(started + bounds.timeout + TIMEOUT_GRACE));
    let exit = loop {
        // What bounds the run comes first: output alone can be always ready.
        let event = tokio::select! {
            biased;
            _ = &mut interrupted, if ending.is_none() => Event::MustEnd(EndReason::Cancelled),
            () = &mut timeout, if ending.is_none() => Event::MustEnd(EndReason::TimedOut),
            reason = unconfirmed(ending) => Event::Unconfirmed(reason),
            chunk = next(&mut output) => chunk.map_or(Event::OutputEnded, Event::Output),
            exit = process.wait() => Event::Exit(exit),
        };
        match event {
            Event::Output(chunk) => {
                let fits = kept.push(&chunk);
                if !fits && bounds.at_output_limit == AtOutputLimit::End {
                    over_limit = true;
                    end(&process, EndReason::OutputLimit, &mut ending);
                }
            }
            Event::OutputEnded => output = None,
            Event::Exit(exit) => {
                let exit = exit?;
                last_output(&mut output, &mut kept, &mut over_limit, bounds).await;
                break exit;
            }
            Event::MustEnd(reason) => end(&process, reason, &mut ending),
            Event::Unconfirmed(reason) => break unknown_end(reason, started.elapsed()),
        }
    };
    Ok(outcome(exit, kept, over_limit))
}

/// Has the process ended, once; the first reason counts.
fn end(process: &Process, reason: EndReason, ending: &mut Option<(EndReason, Instant)>) {
    if ending.is_none() {
        process.end(reason);
        *ending = Some((reason, Instant::now() + CONFIRMATION));
    }
}

/// Resolves when an end that was asked for was not reported in time.
async fn unconfirmed(ending: Option<(EndReason, Instant)>) -> EndReason {
    match ending {
        Some((reason, until)) => {
            sleep_until(until).await;
            reason
        }
        None => std::future::pending().await,
    }
}

async fn next(output: &mut Option<ProcessOutput>) -> Option<OutputChunk> {
    match output {
        Some(output) => output.next().await,
        None => std::future::pending().await,
    }
}

/// Takes what was under way when the end was reported.
async fn last_output(
    output: &mut Option<ProcessOutput>,
    kept: &mut Kept,
    over_limit: &mut bool,
    bounds: Bounds,
) {
    let Some(output) = output else {
        return;
    };
    let rest = async {
        while let Some(chunk) = output.next().await {
            let fits = kept.push(&chunk);
            *over_limit |= !fits && bounds.at_output_limit == AtOutputLimit::End;
        }
    };
    // Processes that outlive the program may hold its outputs open.
    let _ = tokio::time::timeout(LAST_OUTPUT, rest).await;
}

/// The end of a command that was asked for and never reported.
fn unknown_end(reason: EndReason, wall: Duration) -> ProcessExit {
    let mut exit = ProcessExit::new(match reason {
        EndReason::TimedOut => ExecStatus::TimedOut,
        EndReason::OutputLimit => ExecStatus::OutputLimit,
        EndReason::Cancelled | EndReason::Dropped => ExecStatus::Cancelled,
    });
    exit.tree_ended = false;
    exit.times = ExecTimes {
        wall,
        ..ExecTimes::default()
    };
    exit
}

fn outcome(exit: ProcessExit, kept: Kept, over_limit: bool) -> ExecOutcome {
    let (stdout, stderr) = kept.finish();
    // A program may exit by itself between its last byte and its end.
    let exited = matches!(exit.status, ExecStatus::Exited(_) | ExecStatus::Signaled(_));
    let status = if over_limit && exited {
        ExecStatus::OutputLimit
    } else {
        exit.status
    };
    // A sandbox that ends a command at its limit need not send what is above it.
    let cut = status == ExecStatus::OutputLimit;
    ExecOutcome {
        status,
        out_of_memory: exit.out_of_memory,
        truncated: cut || stdout.gap.is_some() || stderr.gap.is_some(),
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        stdout_gap: stdout.gap,
        stderr_gap: stderr.gap,
        times: exit.times,
        peak_memory: exit.peak_memory,
        left_running: exit.left_running,
        tree_ended: exit.tree_ended,
    }
}
