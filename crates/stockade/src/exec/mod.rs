//! Commands: what to run, how it ends, and the handle in between.

mod check;
mod collect;
mod feed;
mod keep;
mod outcome;
mod process;
mod request;

pub use self::check::REQUEST_BYTES;
pub use self::collect::COLLECT_CEILING;
pub(crate) use self::collect::{Bounds, collect};
pub use self::outcome::{
    ExecOutcome, ExecStatus, ExecTimes, Gap, NotStarted, NotStartedWhy, ProcessExit,
};
pub use self::process::{
    EndReason, OutputChunk, Process, ProcessControl, ProcessOutput, ProcessParts, ProcessStdin,
    StreamName,
};
pub use self::request::{
    AtOutputLimit, Background, ExecBuilder, ExecRequest, OUTPUT_LIMIT, Program, Stdin, TIMEOUT,
    TIMEOUT_CEILING, TtySize,
};
