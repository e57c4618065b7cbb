//! The JSON messages of the channel.
//!
//! Unknown fields are ignored, so that a minor addition needs no new protocol
//! version; a field that a reader cannot do without is required.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frame::{FrameError, Kind};
use crate::limits::FRAME_PAYLOAD;
use crate::text::Text;

/// An inclusive range of protocol versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a range has two ends")]
pub struct ProtocolRange {
    /// Lowest version spoken.
    pub min: u32,
    /// Highest version spoken.
    pub max: u32,
}

/// What the sandbox really has, read by PID 1 before any guest code ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Hello {
    /// Protocol versions that PID 1 speaks.
    pub protocol: ProtocolRange,
    /// Content of the runtime volume's marker file; empty when it has none.
    pub digest: String,
    /// User id of every process.
    pub uid: u32,
    /// Group id of every process.
    pub gid: u32,
    /// Milliseconds since PID 1 started.
    pub age_ms: u64,
    /// How often everything was killed on the host's demand so far.
    pub kill_generation: u64,
    /// Commands that are alive now, over all connections.
    pub live_runs: u32,
    /// Limits as they are in force.
    pub limits: LimitsInForce,
    /// Mount points of the sandbox, without the engine's own under /proc, /sys and /dev.
    pub mounts: Vec<MountInForce>,
    /// Whether any network interface but loopback is up. (Some kernels put
    /// tunnels into every namespace that are down, and stay so.)
    pub network: bool,
    /// Whether PID 1 is non-dumpable, so that guest code cannot trace it.
    pub shielded: bool,
}

/// Limits that PID 1 found in force; `None` where it is unlimited or unreadable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct LimitsInForce {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Thousandths of one CPU.
    pub milli_cpus: Option<u64>,
    /// Soft limit of open files.
    pub open_files_soft: Option<u64>,
    /// Hard limit of open files.
    pub open_files_hard: Option<u64>,
    /// Largest core dump, in bytes.
    pub core: Option<u64>,
    /// Whether `no_new_privs` is set.
    pub no_new_privileges: bool,
    /// The bounding set of capabilities as a bit mask.
    pub capability_bounds: u64,
    /// Version of the control groups that the sandbox sees, 1 or 2; 0 when none is visible.
    pub cgroup_version: u8,
}

/// One mount point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct MountInForce {
    /// Where.
    pub path: Text,
    /// Type of file system.
    pub kind: String,
    /// Whether it cannot be written.
    pub read_only: bool,
    /// Size in bytes of a tmpfs.
    pub size: Option<u64>,
}

/// The host's answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub protocol: u32,
}

/// Why PID 1 ends, the last thing that it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Goodbye {
    /// No host was heard for the idle limit.
    Idle,
    /// The maximum age was reached.
    MaximumAge,
    /// The engine asked for it.
    Stopped,
    /// The peer is not of this protocol, or broke it.
    Protocol,
}

/// The answer to [`Kind::KillAll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct KilledAll {
    /// The count after it, as in [`Hello::kill_generation`].
    pub generation: u64,
    /// Processes that were still there when the bound ran out.
    pub left: u32,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Start {
    /// What to run.
    pub program: Program,
    /// Variables that are set on top of the sandbox's own environment.
    pub env: Vec<(Text, Text)>,
    /// Working directory; relative to the sandbox's, which is the default.
    pub cwd: Option<Text>,
    /// Whether standard input comes over the channel; otherwise it is `/dev/null`.
    pub stdin: bool,
    /// A terminal instead of pipes.
    pub tty: Option<TtySize>,
    /// The command is ended after this many milliseconds of running.
    pub timeout_ms: Option<u64>,
    /// The command is ended when it has written this many bytes to both streams together.
    pub output_limit: Option<u64>,
    /// Whether processes that outlive the program go on, and the command
    /// outlives the connection.
    pub background: bool,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "both ends of the wire construct it"
)]
pub enum Program {
    /// A program and its arguments; looked up in the command's own `PATH`
    /// unless it holds a slash.
    Argv(Vec<Text>),
    /// A line for the image's `/bin/sh -c`.
    Shell(Text),
    /// The guest runtime itself, which reads, writes and removes files as
    /// [`crate::files`] says. Needs [`Start::stdin`], and nothing of the image.
    Files,
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a terminal has two sizes")]
pub struct TtySize {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// The program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Started {
    /// Process id inside the sandbox.
    pub pid: u32,
    /// Milliseconds that the request waited for a free place.
    pub waited_ms: u64,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Exit {
    /// How the program itself ended, or why it was ended.
    pub status: Status,
    /// Whether every process of its tree is proved dead. False with
    /// `background`, or when the kill bound ran out.
    pub tree_ended: bool,
    /// Processes of its tree that were alive when this was sent.
    pub left_running: u32,
    /// The kernel killed a process of this command for want of memory: the
    /// control group's kill counter rose while it ran, and it was the only
    /// command at the time, or one of its reaped processes died of a SIGKILL
    /// that the runtime did not send, or its program exited with 137, which is
    /// what a shell makes of such a death of its child.
    pub out_of_memory: bool,
    /// Milliseconds from start to end.
    pub wall_ms: u64,
    /// User time of all reaped processes of the command, in microseconds.
    pub cpu_user_us: u64,
    /// System time of all reaped processes of the command, in microseconds.
    pub cpu_system_us: u64,
    /// Largest resident set of one reaped process, in bytes.
    pub peak_memory: u64,
}

/// How the program ended, or why it was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It never ran.
    NotStarted(NotStarted),
    /// Its time ran out and it was ended.
    TimedOut,
    /// It wrote more than was allowed and was ended.
    OutputLimit,
    /// The host asked for its end, or the host went away.
    Cancelled,
    /// Its supervisor was killed from inside the sandbox, so that its own
    /// status is lost; the tree was ended.
    SupervisorLost,
}

/// Why a program never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct NotStarted {
    /// The kind.
    pub why: NotStartedWhy,
    /// The system's error number, 0 when there is none.
    pub errno: i32,
}

/// The kind of reason why a program never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotStartedWhy {
    /// No such program (or its interpreter is missing).
    NotFound,
    /// It exists, and may not be executed.
    NotExecutable,
    /// It exists, and is of no format that the kernel runs.
    BadFormat,
    /// The working directory does not exist or cannot be entered.
    WorkingDirectory,
    /// A shell line was asked for and the image has no `/bin/sh`.
    NoShell,
    /// Arguments and environment are longer than the kernel takes.
    TooLong,
    /// No process could be made: the limit on processes or memory is reached.
    Resources,
    /// No terminal could be made.
    Terminal,
    /// Too many commands are waiting.
    Busy,
    /// The request was not understood.
    Invalid,
    /// Anything else; the error number tells.
    Other,
}

/// What `guest facts` says about an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Facts {
    /// Protocol versions that this guest runtime speaks.
    pub protocol: ProtocolRange,
    /// Content of the runtime volume's marker file; empty when it has none.
    pub digest: String,
    /// The user asked about, or why it cannot be resolved.
    pub user: Result<UserFacts, String>,
    /// Whether `/bin/sh` is an executable file.
    pub shell: bool,
    /// What the image has at each path asked about, in that order.
    pub paths: Vec<PathFacts>,
}

/// A user of the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct UserFacts {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Other groups that list the user.
    pub groups: Vec<u32>,
    /// Name, when the image's `/etc/passwd` has one for the id.
    pub name: Option<Text>,
    /// Home directory from `/etc/passwd`.
    pub home: Option<Text>,
}

/// What the image has at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct PathFacts {
    /// The path.
    pub path: Text,
    /// What is there; links are not followed at any level.
    pub what: PathKind,
    /// Owner, when there is something.
    pub uid: u32,
    /// Group, when there is something.
    pub gid: u32,
    /// Permission bits, when there is something.
    pub mode: u32,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathKind {
    /// Nothing.
    Absent,
    /// A directory without entries.
    EmptyDirectory,
    /// A directory with entries, or one that may not be looked into.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, at the path itself or at one of its parents.
    Link,
    /// Anything else, or unreadable.
    Other,
}

/// Encodes a message that fits in one frame.
///
/// # Errors
///
/// [`FrameError::Payload`] when it does not fit.
pub fn to_payload<T: Serialize>(kind: Kind, message: &T) -> Result<Vec<u8>, FrameError> {
    let payload = serde_json::to_vec(message).map_err(|error| FrameError::Payload {
        kind,
        what: error.to_string(),
    })?;
    if payload.len() > FRAME_PAYLOAD {
        return Err(FrameError::Payload {
            kind,
            what: format!("{} bytes", payload.len()),
        });
    }
    Ok(payload)
}

/// Decodes a message.
///
/// # Errors
///
/// [`FrameError::Payload`] when the payload is not that message.
pub fn from_payload<T: DeserializeOwned>(kind: Kind, payload: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(payload).map_err(|error| FrameError::Payload {
        kind,
        what: error.to_string(),
    })
}

impl ProtocolRange {
    /// The highest version that both ranges hold.
    #[must_use]
    pub fn highest_common(self, other: Self) -> Option<u32> {
        let highest = self.max.min(other.max);
        (highest >= self.min && highest >= other.min).then_some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_not_text_survive_json() {
        let start = Start {
            program: Program::Argv(vec!["echo".into(), Text::from(&[0xff, 0x00, b'a'][..])]),
            env: vec![("A".into(), "b=c\nd".into())],
            cwd: None,
            stdin: false,
            tty: None,
            timeout_ms: Some(1),
            output_limit: None,
            background: false,
        };
        let payload = to_payload(Kind::Start, &start).unwrap();
        assert_eq!(from_payload::<Start>(Kind::Start, &payload), Ok(start));
    }

    #[test]
    fn ranges_meet_at_their_highest_common_version() {
        let range = |min, max| ProtocolRange { min, max };
        assert_eq!(range(1, 3).highest_common(range(2, 5)), Some(3));
        assert_eq!(range(1, 1).highest_common(range(2, 5)), None);
        assert_eq!(range(4, 5).highest_common(range(1, 3)), None);
    }

    #[test]
    fn a_message_that_fits_no_frame_is_an_error() {
        let long = "x".repeat(FRAME_PAYLOAD);
        assert!(matches!(
            to_payload(Kind::Start, &long),
            Err(FrameError::Payload { .. })
        ));
    }
}
