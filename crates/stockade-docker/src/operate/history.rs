//! What has happened to a sandbox, and why it ended.

use std::fmt;
use std::time::{Duration, SystemTime};

use stockade::exec::ExecStatus;
use stockade::{Call, InstanceId, Kind, Result, SandboxKey};

use crate::backend::DockerBackend;

/// Whose history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryOf {
    /// One physical sandbox.
    #[non_exhaustive]
    Instance(InstanceId),
    /// Every sandbox that had this key and kind, one after the other.
    #[non_exhaustive]
    Sandbox {
        /// The key.
        key: SandboxKey,
        /// The kind.
        kind: Kind,
    },
}

/// What is known of a sandbox's past, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct History {
    /// What happened, oldest first.
    pub events: Vec<Event>,
    /// Why the last of them ended; `None` while it exists, and when nothing is
    /// known of its end.
    pub death: Option<Death>,
    /// Whether it exists now, running or not.
    pub exists: bool,
    /// Whether the engine may have forgotten what came first: it keeps its
    /// last 256 events of all containers, and none of before its own start.
    pub engine_forgot: bool,
    /// How many entries the guest runtime has let go of: it keeps its last 256.
    pub guest_forgot: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// When, by the engine's clock.
    pub at: SystemTime,
    /// To which container.
    pub instance: InstanceId,
    /// What.
    pub what: Happening,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// It was made.
    Created,
    /// It was started.
    Started,
    /// It was frozen.
    Paused,
    /// It was thawed.
    Thawed,
    /// It was sent a signal from outside.
    #[non_exhaustive]
    Signalled {
        /// The number.
        signal: u8,
    },
    /// The kernel ended a process of it, since the memory limit was reached.
    OutOfMemory,
    /// It ended.
    #[non_exhaustive]
    Ended {
        /// Why.
        death: Death,
    },
    /// It was removed.
    Removed,
    /// A host attached to it.
    #[non_exhaustive]
    Attached {
        /// The channel's number in the sandbox.
        channel: u64,
    },
    /// A host's channel ended.
    #[non_exhaustive]
    Detached {
        /// The channel's number in the sandbox.
        channel: u64,
        /// Why, in a word: `closed`, `silent`, `protocol`, `other`.
        why: &'static str,
    },
    /// A command's program runs.
    #[non_exhaustive]
    CommandStarted {
        /// Its number in the sandbox.
        number: u64,
        /// The first word of what runs; see
        /// [`CommandActivity::program`](super::CommandActivity::program).
        program: String,
        /// Whether it outlives its host.
        background: bool,
    },
    /// A command's outcome is known. One that never ran has no start.
    CommandEnded(CommandEnd),
    /// Everything in it was killed, on a host's demand.
    #[non_exhaustive]
    EverythingKilled {
        /// How many times that makes.
        times: u64,
        /// Processes that were still there when the bound ran out.
        left: u32,
    },
    /// Something that this version has no word for, in the words of who
    /// reported it.
    #[non_exhaustive]
    Other {
        /// The report, shortened.
        what: String,
    },
}

/// How a command ended, with its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandEnd {
    /// Its number in the sandbox.
    pub number: u64,
    /// The first word of what ran.
    pub program: String,
    /// How it ended; `None` when this version does not know the way.
    pub status: Option<ExecStatus>,
    /// From leaving the queue to the end.
    pub wall: Duration,
    /// CPU time of everything that it started and reaped.
    pub cpu: Duration,
    /// Largest resident set of one reaped process, in bytes.
    pub peak_memory: u64,
    /// Whether the kernel killed a process of it for want of memory.
    pub out_of_memory: bool,
    /// Processes that it left running.
    pub left_running: u32,
}

/// Why a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Death {
    /// No host was heard for the idle limit.
    IdleLimit,
    /// It reached its maximum age.
    MaximumAge,
    /// It was not in use, and was asked to make room: by a reap, or by an
    /// acquire with another definition.
    Retired,
    /// The engine was asked to stop it, or was itself stopped.
    Stopped,
    /// It was removed while it ran: disposed of, reaped, or by hand.
    Removed,
    /// It was killed from outside.
    #[non_exhaustive]
    Killed {
        /// The signal's number.
        signal: u8,
    },
    /// The kernel killed its PID 1 for want of memory.
    OutOfMemory,
    /// Its guest runtime gave up, or was never started.
    #[non_exhaustive]
    RuntimeFailed {
        /// The exit code.
        code: i64,
    },
    /// It ended, and nothing says why.
    Unknown,
}

impl HistoryOf {
    /// That of one physical sandbox.
    #[must_use]
    pub fn instance(id: InstanceId) -> Self {
        Self::Instance(id)
    }

    /// That of every sandbox that had this key and kind.
    #[must_use]
    pub fn sandbox(key: SandboxKey, kind: Kind) -> Self {
        Self::Sandbox { key, kind }
    }
}

impl Death {
    /// A stable word for programs and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdleLimit => "idle_limit",
            Self::MaximumAge => "maximum_age",
            Self::Retired => "retired",
            Self::Stopped => "stopped",
            Self::Removed => "removed",
            Self::Killed { .. } => "killed",
            Self::OutOfMemory => "out_of_memory",
            Self::RuntimeFailed { .. } => "runtime_failed",
            Self::Unknown => "unknown",
        }
    }
}

/// As the end of a sentence about the sandbox: "it is gone: …".
impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdleLimit => f.write_str("no host was heard for the idle limit"),
            Self::MaximumAge => f.write_str("the maximum age was reached"),
            Self::Retired => f.write_str("it was not in use, and was retired"),
            Self::Stopped => f.write_str("the engine stopped it"),
            Self::Removed => f.write_str("it was removed"),
            Self::Killed { signal } => write!(f, "it was killed from outside by signal {signal}"),
            Self::OutOfMemory => f.write_str("it ran out of memory"),
            Self::RuntimeFailed { code } => {
                write!(f, "its guest runtime failed with exit code {code}")
            }
            Self::Unknown => f.write_str("nothing is known of its end"),
        }
    }
}

impl DockerBackend {
    /// What is known of a sandbox's past: what its own runtime keeps while it
    /// lives, and what the engine remembers, also of one that is gone. Three
    /// docker commands at most.
    ///
    /// Nobody keeps it on purpose: the engine remembers its last 256 events of
    /// all containers, and the runtime its own last 256. An empty history of
    /// what does not exist is no error.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or the call is over.
    ///
    /// Cancel safe: nothing is changed.
    pub async fn history(&self, call: &Call, of: &HistoryOf) -> Result<History> {
        let _ = (call, of);
        Err(super::unready())
    }
}
