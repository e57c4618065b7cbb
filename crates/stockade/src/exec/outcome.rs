//! How a command ended.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::words::words;

/// How a command ended, and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOutcome {
    /// How the program ended, or why it was ended.
    pub status: ExecStatus,
    /// Whether the kernel killed a process of this command for want of
    /// memory. Stands beside the status: a shell may exit 0 although its
    /// child was killed.
    pub out_of_memory: bool,
    /// What it wrote to standard output, as far as it was kept.
    pub stdout: Bytes,
    /// What it wrote to standard error, as far as it was kept.
    pub stderr: Bytes,
    /// Where bytes of standard output were left out.
    pub stdout_gap: Option<Gap>,
    /// Where bytes of standard error were left out.
    pub stderr_gap: Option<Gap>,
    /// Whether output was left out. A command that was ended at its limit may
    /// have written more than a gap tells, or than was ever sent.
    pub truncated: bool,
    /// How long it took.
    pub times: ExecTimes,
    /// Largest resident set of one process of the command, in bytes; 0 when
    /// it is not known.
    pub peak_memory: u64,
    /// Processes of its tree that were alive when it was reported.
    pub left_running: u32,
    /// Whether every process of its tree is proved dead.
    pub tree_ended: bool,
}

/// How a command ended, without what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessExit {
    /// How the program ended, or why it was ended.
    pub status: ExecStatus,
    /// As [`ExecOutcome::out_of_memory`].
    pub out_of_memory: bool,
    /// How long it took.
    pub times: ExecTimes,
    /// As [`ExecOutcome::peak_memory`].
    pub peak_memory: u64,
    /// As [`ExecOutcome::left_running`].
    pub left_running: u32,
    /// As [`ExecOutcome::tree_ended`].
    pub tree_ended: bool,
}

/// How a program ended, or why it was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It never ran.
    NotStarted(NotStarted),
    /// Its own timeout passed, and it was ended.
    TimedOut,
    /// It wrote more than its limit, and was ended.
    OutputLimit,
    /// It was ended because the call was cancelled or its deadline passed,
    /// or because its handle was dropped.
    Cancelled,
    /// Its own status is lost, since guest code killed what watched it; its
    /// tree was ended.
    SupervisorLost,
}

/// Why a program never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NotStarted {
    /// The reason.
    pub why: NotStartedWhy,
    /// The system's error number; 0 when there is none.
    pub errno: i32,
}

words! { unranked "reason"
    /// The sort of reason why a program never ran.
    NotStartedWhy {
        /// No such program, or its interpreter is missing.
        NotFound = "not_found",
        /// It exists, and may not be executed.
        NotExecutable = "not_executable",
        /// It exists, and is of no format that the kernel runs.
        BadFormat = "bad_format",
        /// The working directory does not exist or cannot be entered.
        WorkingDirectory = "working_directory",
        /// A shell line was asked for and the image has no `/bin/sh`.
        NoShell = "no_shell",
        /// Arguments and environment are longer than the kernel takes.
        TooLong = "too_long",
        /// No process could be made: the limit on processes or memory is reached.
        Resources = "resources",
        /// No terminal could be made.
        Terminal = "terminal",
        /// Too many commands are waiting.
        Busy = "busy",
        /// The request was not understood.
        Invalid = "invalid",
        /// Anything else; the error number tells.
        Other = "other",
    }
}

/// How long a command took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExecTimes {
    /// Time spent waiting for a free place before the start.
    pub queued: Duration,
    /// Time from start to end.
    pub wall: Duration,
    /// User time of all its processes that ended.
    pub cpu_user: Duration,
    /// System time of all its processes that ended.
    pub cpu_system: Duration,
}

/// A place in an output where bytes were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// Bytes kept before it.
    pub at: usize,
    /// Bytes left out, as far as they are known.
    pub bytes: u64,
}

impl ExecOutcome {
    /// Whether the program exited with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// The exit code, if the program exited.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Standard output as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn stdout_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// Standard error as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn stderr_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }
}

impl ProcessExit {
    /// An end of this status, with its tree ended and nothing measured.
    #[must_use]
    pub fn new(status: ExecStatus) -> Self {
        Self {
            status,
            out_of_memory: false,
            times: ExecTimes::default(),
            peak_memory: 0,
            left_running: 0,
            tree_ended: true,
        }
    }
}

impl ExecStatus {
    /// Whether the program exited with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The exit code, if the program exited.
    #[must_use]
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }
}

impl NotStarted {
    /// A reason, with the system's error number or 0.
    #[must_use]
    pub fn new(why: NotStartedWhy, errno: i32) -> Self {
        Self { why, errno }
    }
}

/// A lower-case fragment, such as `exited with code 3`.
impl fmt::Display for ExecStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signaled(signal) => write!(f, "ended by signal {signal}"),
            Self::NotStarted(not) => write!(f, "not started: {not}"),
            Self::TimedOut => f.write_str("ended at its timeout"),
            Self::OutputLimit => f.write_str("ended at its output limit"),
            Self::Cancelled => f.write_str("ended by a cancel"),
            Self::SupervisorLost => f.write_str("ended, its own status lost with what watched it"),
        }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            NotStartedWhy::NotFound => "no such program, or its interpreter is missing",
            NotStartedWhy::NotExecutable => "the program may not be executed",
            NotStartedWhy::BadFormat => "the kernel does not run this format",
            NotStartedWhy::WorkingDirectory => {
                "the working directory does not exist or cannot be entered"
            }
            NotStartedWhy::NoShell => "the image has no /bin/sh; give a program and arguments",
            NotStartedWhy::TooLong => {
                "arguments and environment are longer than the kernel takes; use standard input"
            }
            NotStartedWhy::Resources => "no process could be made: processes or memory are used up",
            NotStartedWhy::Terminal => "no terminal could be made",
            NotStartedWhy::Busy => "too many commands are waiting",
            NotStartedWhy::Invalid => "the request was not understood",
            NotStartedWhy::Other => "the system refused",
        })?;
        match self.errno {
            0 => Ok(()),
            errno => write!(f, " (errno {errno})"),
        }
    }
}
