//! Between the contract's words and the wire's. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use stockade::exec::{
    Background, EndReason, ExecStatus, NotStarted, NotStartedWhy, OutputChunk, ProcessExit,
    Program, StreamName, TtySize,
};
use stockade::{ExecRequest, Stdin};
use stockade_wire::message::{self, Exit, Start, Status};
use stockade_wire::{Text, frame};

use crate::plan::Environment;

/// The message that asks PID 1 for a command.
pub(super) fn request(request: &ExecRequest, environment: &Environment) -> Start {
    let program = match request.program() {
        Program::Argv(argv) => {
            message::Program::Argv(argv.iter().map(|word| word.as_slice().into()).collect())
        }
        Program::Shell(line) => message::Program::Shell(line.as_slice().into()),
    };
    Start {
        program,
        env: variables(request, environment),
        cwd: request.cwd().map(Into::into),
        stdin: !matches!(request.stdin(), Stdin::Closed),
        tty: request.tty().map(tty),
        timeout_ms: Some(millis(request.timeout())),
        output_limit: request.ends_after(),
        background: request.background() == Background::Keep,
    }
}

/// The sandbox's variables, and the command's own over them.
fn variables(request: &ExecRequest, environment: &Environment) -> Vec<(Text, Text)> {
    let sandboxes = environment
        .pairs()
        .map(|(name, value)| (name, value.as_bytes()));
    let merged: BTreeMap<&str, &[u8]> = sandboxes.chain(request.env()).collect();
    merged
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// What PID 1 says about the end of a command.
pub(super) fn exit(exit: Exit, queued: Duration) -> ProcessExit {
    let mut report = ProcessExit::new(status(exit.status));
    report.out_of_memory = exit.out_of_memory;
    report.times.queued = queued;
    report.times.wall = Duration::from_millis(exit.wall_ms);
    report.times.cpu_user = Duration::from_micros(exit.cpu_user_us);
    report.times.cpu_system = Duration::from_micros(exit.cpu_system_us);
    report.peak_memory = exit.peak_memory;
    report.left_running = exit.left_running;
    report.tree_ended = exit.tree_ended;
    report
}

/// The end of a command of which nothing was reported, its tree being dead.
pub(super) fn without_report(status: ExecStatus, queued: Duration) -> ProcessExit {
    let mut report = ProcessExit::new(status);
    report.times.queued = queued;
    report
}

/// The status of a command that was ended for a reason of ours.
pub(super) fn ended(reason: EndReason) -> ExecStatus {
    match reason {
        EndReason::TimedOut => ExecStatus::TimedOut,
        EndReason::OutputLimit => ExecStatus::OutputLimit,
        _ => ExecStatus::Cancelled,
    }
}

pub(super) fn to_wire(reason: EndReason) -> frame::EndReason {
    match reason {
        EndReason::TimedOut => frame::EndReason::TimedOut,
        EndReason::OutputLimit => frame::EndReason::OutputLimit,
        _ => frame::EndReason::Cancelled,
    }
}

pub(super) fn tty(size: TtySize) -> message::TtySize {
    message::TtySize {
        rows: size.rows,
        columns: size.columns,
    }
}

pub(super) fn chunk(stream: frame::StreamName, bytes: Bytes) -> OutputChunk {
    let stream = match stream {
        frame::StreamName::Stderr => StreamName::Stderr,
        _ => StreamName::Stdout,
    };
    OutputChunk { stream, bytes }
}

pub(crate) fn status(status: Status) -> ExecStatus {
    match status {
        Status::Exited(code) => ExecStatus::Exited(code),
        Status::Signaled(signal) => ExecStatus::Signaled(signal),
        Status::NotStarted(not_started) => {
            ExecStatus::NotStarted(NotStarted::new(why(not_started.why), not_started.errno))
        }
        Status::TimedOut => ExecStatus::TimedOut,
        Status::OutputLimit => ExecStatus::OutputLimit,
        Status::Cancelled => ExecStatus::Cancelled,
        _ => ExecStatus::SupervisorLost,
    }
}

fn why(why: message::NotStartedWhy) -> NotStartedWhy {
    use message::NotStartedWhy as Wire;
    match why {
        Wire::NotFound => NotStartedWhy::NotFound,
        Wire::NotExecutable => NotStartedWhy::NotExecutable,
        Wire::BadFormat => NotStartedWhy::BadFormat,
        Wire::WorkingDirectory => NotStartedWhy::WorkingDirectory,
        Wire::NoShell => NotStartedWhy::NoShell,
        Wire::TooLong => NotStartedWhy::TooLong,
        Wire::Resources => NotStartedWhy::Resources,
        Wire::Terminal => NotStartedWhy::Terminal,
        Wire::Busy => NotStartedWhy::Busy,
        Wire::Invalid => NotStartedWhy::Invalid,
        _ => NotStartedWhy::Other,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
