//! What PID 1 can be asked from outside, and what it answers.
//!
//! `guest status` and `guest retire` inside the sandbox carry one [`Inquiry`]
//! to PID 1 and print its answer, one JSON document, for the host to read. The
//! stream between them is not the channel: it has a socket of its own, holds
//! one [`Kind::Inquiry`](crate::Kind::Inquiry) frame one way and the answer in
//! frames the other, and its two ends are the same binary. So an inquiry is
//! never taken for a host, and no version of the channel's protocol is about
//! it.
//!
//! The host that reads the JSON may be older or newer than the runtime that
//! wrote it: unknown fields are ignored, a happening that this build does not
//! know is [`Happening::Other`], an outcome that it does not know is `None`.
//! What is written is of a sandbox, which is hostile: PID 1 writes nothing
//! that guest code chose, and of what a host chose only the first word of a
//! command, bounded and without control characters. A reader that does not
//! trust the runtime either bounds what it reads by [`ANSWER`].

use serde::{Deserialize, Deserializer, Serialize};

use crate::message::{ProtocolRange, Status};

/// Longest answer in bytes, of either inquiry.
///
/// A journal of [`JOURNAL`] entries of at most 500 bytes and
/// [`crate::limits::RUNNING`] commands of at most 400, with as much to spare.
pub const ANSWER: usize = 320 * 1024;

/// How many happenings PID 1 remembers.
pub const JOURNAL: usize = 256;

/// Longest name of a program, in bytes.
pub const PROGRAM: usize = 64;

/// What is asked; the payload of [`Kind::Inquiry`](crate::Kind::Inquiry) as
/// JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Inquiry {
    /// What goes on? The answer is an [`Activity`].
    Status {
        /// With the journal.
        journal: bool,
    },
    /// End, if nobody uses the sandbox. The answer is a [`Retired`].
    ///
    /// Decided and begun in one turn of PID 1's loop: no host is attached (one
    /// that is being greeted is), no command waits or is alive, and the last
    /// use is at least so long ago. From that turn on nobody is let in. What a
    /// command left in the background is no use, and ends with PID 1.
    Retire {
        /// Milliseconds; 0 asks only that nobody uses it now.
        idle_for_ms: u64,
    },
}

/// The answer to [`Inquiry::Retire`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Retired {
    /// Whether PID 1 ends now. If not, nothing has changed.
    pub retired: bool,
    /// What it is busy with; `None` when it ends.
    pub busy: Option<Busy>,
}

/// Why a sandbox does not retire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Busy {
    /// Hosts that are attached, or being greeted.
    pub channels: u32,
    /// Commands that wait or are alive. One that is being ended without
    /// anybody to tell is not among them.
    pub runs: u32,
    /// As [`Activity::idle_ms`]; with no channel and no run the reason.
    pub idle_ms: u64,
}

/// The answer to [`Inquiry::Status`].
///
/// Durations are in milliseconds, sizes in bytes. What is `None` cannot be
/// read, or is not limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Activity {
    /// Protocol versions that PID 1 speaks.
    pub protocol: ProtocolRange,
    /// Version of the runtime, for people.
    pub version: String,
    /// Content of the runtime volume's marker file; empty when it has none.
    pub digest: String,
    /// Since PID 1 started.
    pub age_ms: u64,
    /// Since the last use: 0 while a host is attached or a command waits or is
    /// alive, and counted from the end of the last of them.
    pub idle_ms: u64,
    /// Since a host was last heard, which is what the idle limit is about.
    pub unheard_ms: u64,
    /// PID 1 ends when no host was heard for so long.
    pub idle_limit_ms: u64,
    /// PID 1 ends at this age.
    pub maximum_age_ms: u64,
    /// Hosts that are attached, or being greeted.
    pub channels: u32,
    /// Commands with processes, file operations among them; at most
    /// [`crate::limits::RUNNING`], in the order in which they were asked for.
    pub runs: Vec<RunActivity>,
    /// Commands that wait for a turn.
    pub waiting: u32,
    /// Living processes; PID 1, supervisors, relays and whoever asks included.
    /// At most 4096 are looked at, for this and for every figure of a command.
    pub processes: u32,
    /// Those of them that outlived the program that they came from: in the
    /// background, or because they could not be killed in time.
    pub leftovers: u32,
    /// Memory of the control group, which is the whole sandbox.
    pub memory: MemoryUse,
    /// Processes and threads of the control group.
    pub tasks: TaskUse,
    /// Processes that the kernel killed for want of memory.
    pub oom_kills: Option<u64>,
    /// The work directory's file system.
    pub work: Option<FileSystemUse>,
    /// That of `/tmp`.
    pub tmp: Option<FileSystemUse>,
    /// How often everything was killed on the host's demand.
    pub kill_generation: u64,
    /// The last [`JOURNAL`] happenings, oldest first, if they were asked for.
    pub journal: Option<Vec<Entry>>,
    /// Happenings before those that are not remembered any more.
    pub journal_lost: u64,
}

/// A command with processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct RunActivity {
    /// PID 1's own number of it, the same in the journal; hosts have others.
    pub id: u64,
    /// The first word of its arguments; `sh -c` for a shell line, `files` for
    /// a file operation. At most [`PROGRAM`] bytes, no control characters, and
    /// never anything of its other arguments or its environment.
    pub program: String,
    /// Whether it outlives its host, and its processes their program.
    pub background: bool,
    /// Its program has ended, and left the processes that are counted here.
    pub ended: bool,
    /// Since it left the queue.
    pub running_ms: u64,
    /// The program's process id inside the sandbox; 0 while it is not known.
    pub pid: u32,
    /// CPU time of its processes, those that are gone included.
    pub cpu_ms: u64,
    /// Resident memory of its living processes together, shared pages counted
    /// for each.
    pub memory: u64,
    /// Its living processes, without the supervisor.
    pub processes: u32,
}

/// Memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct MemoryUse {
    /// Charged now: processes, and files of a tmpfs.
    pub current: Option<u64>,
    /// The most so far; unknown before Linux 5.19 with control groups of
    /// version 2.
    pub peak: Option<u64>,
    /// The limit.
    pub limit: Option<u64>,
}

/// Processes and threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct TaskUse {
    /// How many there are now.
    pub current: Option<u64>,
    /// How many there may be.
    pub limit: Option<u64>,
}

/// What `statfs(2)` says of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct FileSystemUse {
    /// Whether it is a part of a larger one (the engine's disk), whose figures
    /// these then are; otherwise a tmpfs of its own.
    pub shared: bool,
    /// Bytes in use.
    pub used: u64,
    /// Bytes in all.
    pub size: u64,
    /// Inodes in use.
    pub inodes_used: u64,
    /// Inodes in all; 0 where there is no such bound.
    pub inodes: u64,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Entry {
    /// Milliseconds from the start of PID 1 to it.
    pub at_ms: u64,
    /// What happened.
    pub what: Happening,
}

/// What PID 1 remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happening {
    /// A host was greeted and chose a version.
    Attached {
        /// PID 1's number of the channel.
        channel: u64,
    },
    /// An attached host is gone.
    Detached {
        /// PID 1's number of the channel.
        channel: u64,
        /// Why.
        why: Detachment,
    },
    /// A program runs.
    Started {
        /// As [`RunActivity::id`].
        run: u64,
        /// As [`RunActivity::program`].
        program: String,
        /// As [`RunActivity::background`].
        background: bool,
    },
    /// A command's outcome is settled; one that never ran has no start.
    Ended {
        /// As [`RunActivity::id`].
        run: u64,
        /// As [`RunActivity::program`].
        program: String,
        /// How; `None` when this build does not know the way.
        #[serde(default, deserialize_with = "known")]
        status: Option<Status>,
        /// From leaving the queue to the end.
        wall_ms: u64,
        /// User and system time of its reaped processes.
        cpu_ms: u64,
        /// Largest resident set of one reaped process, in bytes.
        peak_memory: u64,
        /// As [`Exit::out_of_memory`](crate::message::Exit::out_of_memory).
        out_of_memory: bool,
        /// As [`Exit::left_running`](crate::message::Exit::left_running).
        left_running: u32,
    },
    /// Everything was killed on a host's demand.
    KilledAll {
        /// How many times that makes.
        generation: u64,
        /// Processes that were still there when the bound ran out.
        left: u32,
    },
    /// Something that this build does not know.
    #[serde(other)]
    Other,
}

/// Why a host is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Detachment {
    /// It, or its relay, ended the stream.
    Closed,
    /// It was not heard for [`crate::limits::SILENCE`].
    Silent,
    /// It broke the protocol.
    Protocol,
    /// Something that this build does not know.
    #[serde(other)]
    Other,
}

/// A value of a kind that may have got more variants since.
fn known<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: serde::de::DeserializeOwned,
    D: Deserializer<'de>,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(T::deserialize(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_readable() {
        for (inquiry, json) in [
            (
                Inquiry::Status { journal: true },
                r#"{"status":{"journal":true}}"#,
            ),
            (
                Inquiry::Retire { idle_for_ms: 7 },
                r#"{"retire":{"idle_for_ms":7}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&inquiry).unwrap(), json);
            assert_eq!(serde_json::from_str::<Inquiry>(json).unwrap(), inquiry);
        }
    }

    #[test]
    fn an_answer_of_a_newer_runtime_is_understood_as_far_as_it_is_known() {
        let retired =
            r#"{"retired":false,"busy":{"channels":1,"runs":2,"idle_ms":3,"mood":4},"more":[]}"#;
        let busy = Busy {
            channels: 1,
            runs: 2,
            idle_ms: 3,
        };
        let expected = Retired {
            retired: false,
            busy: Some(busy),
        };
        assert_eq!(serde_json::from_str::<Retired>(retired).unwrap(), expected);
        let journal = r#"[
            {"at_ms":1,"what":{"event":"attached","channel":1,"colour":"red"}},
            {"at_ms":2,"what":{"event":"slept","hours":8},"why":"tired"},
            {"at_ms":3,"what":{"event":"detached","channel":1,"why":"bored"}},
            {"at_ms":4,"what":{"event":"ended","run":2,"program":"ls","status":{"melted":3},"wall_ms":1,
             "cpu_ms":1,"peak_memory":1,"out_of_memory":false,"left_running":0}}]"#;
        let journal: Vec<Entry> = serde_json::from_str(journal).unwrap();
        let what: Vec<&Happening> = journal.iter().map(|entry| &entry.what).collect();
        assert_eq!(what[0], &Happening::Attached { channel: 1 });
        assert_eq!(what[1], &Happening::Other);
        let why = Detachment::Other;
        assert_eq!(what[2], &Happening::Detached { channel: 1, why });
        assert!(matches!(what[3], Happening::Ended { status: None, .. }));
    }

    #[test]
    fn a_known_outcome_survives() {
        for status in [Status::Exited(3), Status::Signaled(9), Status::TimedOut] {
            let what = Happening::Ended {
                run: 1,
                program: "a\"b".into(),
                status: Some(status),
                wall_ms: 2,
                cpu_ms: 3,
                peak_memory: 4,
                out_of_memory: true,
                left_running: 5,
            };
            let entry = Entry { at_ms: 6, what };
            let json = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), entry);
        }
    }

    #[test]
    fn the_longest_answer_is_within_its_bound() {
        let program = "\"".repeat(PROGRAM);
        let long = i64::MAX as u64;
        let happening = Happening::Ended {
            run: long,
            program: program.clone(),
            status: Some(Status::NotStarted(crate::message::NotStarted {
                why: crate::message::NotStartedWhy::WorkingDirectory,
                errno: i32::MIN,
            })),
            wall_ms: long,
            cpu_ms: long,
            peak_memory: long,
            out_of_memory: false,
            left_running: u32::MAX,
        };
        let entry = Entry {
            at_ms: long,
            what: happening,
        };
        let run = RunActivity {
            id: long,
            program,
            background: false,
            ended: false,
            running_ms: long,
            pid: u32::MAX,
            cpu_ms: long,
            memory: long,
            processes: u32::MAX,
        };
        let length = |json: serde_json::Result<Vec<u8>>| json.unwrap().len();
        let entry = length(serde_json::to_vec(&entry));
        let run = length(serde_json::to_vec(&run));
        assert!(entry <= 500 && run <= 400, "{entry}, {run}");
        const { assert!(2 * (JOURNAL * 500 + crate::limits::RUNNING * 400) <= ANSWER) };
    }

    #[test]
    fn silence_about_what_matters_is_no_answer() {
        assert!(serde_json::from_str::<Activity>("{}").is_err());
        assert!(serde_json::from_str::<Retired>(r#"{"busy":null}"#).is_err());
    }
}
