//! Every number of the channel, once.

use std::time::Duration;

/// Largest payload of one frame, in bytes.
pub const FRAME_PAYLOAD: usize = 64 * 1024;

/// Bytes that may be under way in one direction of one stream before the
/// receiver grants more.
pub const STREAM_CREDIT: u32 = 256 * 1024;

/// Each side sends something at least this often.
pub const HEARTBEAT: Duration = Duration::from_secs(20);

/// Silence for this long counts as the end of the stream.
///
/// A daemon restart with live-restore, or a half-open remote connection, ends
/// nothing by itself.
pub const SILENCE: Duration = Duration::from_secs(75);

/// Largest encoded start request, in bytes, over all its frames.
///
/// Linux gives a program at most a quarter of its stack limit for arguments
/// and environment, 2 MiB by default; half of that leaves room for the
/// image's own environment and for JSON escapes.
pub const START_REQUEST: usize = 1024 * 1024;

/// Largest single argument or `NAME=value` pair, in bytes.
///
/// Linux: `MAX_ARG_STRLEN`, 32 pages of 4 KiB, less the terminating NUL.
pub const ARGUMENT: usize = 131_071;

/// Commands that run in one sandbox at the same time; more wait their turn.
pub const RUNNING: usize = 64;

/// Commands that may wait for a turn; more are not started.
pub const WAITING: usize = 1024;

/// How long the guest runtime repeats killing a command's processes before it
/// reports that some are left.
pub const KILL_BOUND: Duration = Duration::from_secs(5);

/// Largest JSON answer of the one-shot `facts` command, in bytes.
pub const FACTS: usize = 64 * 1024;
