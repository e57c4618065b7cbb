//! The messages of a file operation.
//!
//! A file operation is a run whose program is [`Program::Files`]. Its standard
//! input and output carry [frames](crate::frame) again, inside the run's own
//! [`Stdin`] and [`Stdout`] frames; the outer run gives credit, cancellation,
//! deadlines and the proof of the end. In the inner frames the *run* number is
//! an item's index in the batch, counted from 0, and [`BATCH`] is the batch
//! itself. Standard error is for people and no part of the protocol.
//!
//! # A batch
//!
//! 1. Host: [`FileRequest`] on [`BATCH`]: a [`Batch`].
//! 2. Host, for each item in order: [`FileRequest`] with an [`Item`], and after
//!    an [`Item::Write`] of a file exactly as many bytes of [`FileData`] as it
//!    said, in frames of any size but 0. Then the end of input.
//! 3. Guest, for each item in order: what [`Item`] says, in [`FileAnswer`] and
//!    [`FileData`]. The last [`FileAnswer`] of an item is the one for which
//!    [`Answer::is_last`] holds.
//! 4. Guest: [`Answer::Finished`] on [`BATCH`], and the program exits with 0.
//!
//! Answers may begin before the host has sent everything, so a host that sends
//! must take answers meanwhile. An item that faults is answered with
//! [`Answer::Fault`]; after that fault of an item that changes or carries
//! something (everything but [`Item::Look`], [`Item::Measure`] and
//! [`Item::List`]) the rest of the batch is not tried, and each item of it
//! answers [`FileFault::NotTried`]. Whoever breaks this protocol ends the
//! batch: the guest exits with [`EXIT_PROTOCOL`], without [`Answer::Finished`].
//!
//! # Paths
//!
//! A path is relative to [`Batch::work`]: names of 1 to 255 bytes other than
//! `.` and `..`, with one `/` between two, without NUL; `.` alone is the work
//! directory. No link is ever followed, neither in the work directory's own
//! path nor below it.
//!
//! [`Program::Files`]: crate::message::Program::Files
//! [`Stdin`]: crate::Kind::Stdin
//! [`Stdout`]: crate::Kind::Stdout
//! [`FileRequest`]: crate::Kind::FileRequest
//! [`FileData`]: crate::Kind::FileData
//! [`FileAnswer`]: crate::Kind::FileAnswer

use serde::{Deserialize, Serialize};

use crate::text::Text;

/// The item number that means the batch itself.
pub const BATCH: u32 = u32::MAX;

/// The exit code of the program when the host did not keep to the protocol
/// (`sysexits.h`, EX_DATAERR).
pub const EXIT_PROTOCOL: u8 = 65;

/// How many directories deep a recursive listing or a measure goes below the
/// one that is named; what is deeper is left out, and the answer says that
/// there may be more. As deep as a path of the contract.
pub const LIST_DEPTH: usize = 64;

/// The head of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Batch {
    /// The work directory, as an absolute path of the sandbox.
    pub work: Text,
    /// How many items follow.
    pub items: u32,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "both ends of the wire construct it"
)]
pub enum Item {
    /// What is at a path, without following a link: [`Answer::Seen`].
    Look {
        /// What to look at; `.` is legal.
        path: Text,
    },
    /// How much a directory's whole subtree holds, down to [`LIST_DEPTH`]:
    /// [`Answer::Measured`].
    Measure {
        /// The directory; `.` is legal.
        path: Text,
        /// Stop after this many entries.
        max_entries: u64,
        /// Stop after this many bytes of regular files.
        max_bytes: u64,
    },
    /// What a directory holds: [`Answer::Entries`] any number of times, then
    /// [`Answer::Listed`]. The order is the file system's; an entry comes
    /// before what is in it.
    List {
        /// The directory; `.` is legal.
        path: Text,
        /// With everything below, down to [`LIST_DEPTH`].
        recursive: bool,
        /// Stop after this many entries.
        max_entries: u64,
    },
    /// A regular file's content: [`Answer::Opened`], then exactly as many
    /// bytes of [`FileData`](crate::Kind::FileData) as its size, then
    /// [`Answer::Done`]. When the file changed its size meanwhile there may be
    /// less data, and the fault is [`FileFault::Changed`].
    Read {
        /// The file.
        path: Text,
        /// A larger one is refused before any byte is sent.
        max_bytes: u64,
    },
    /// Makes or replaces a file, or makes a directory: [`Answer::Done`].
    ///
    /// Missing parents are made with mode 0755; the work directory itself is
    /// not. A file is whole or as it was before. A directory that exists is
    /// left as it is.
    Write {
        /// The file or directory.
        path: Text,
        /// Which of the two.
        kind: WriteKind,
        /// Permissions; only the lowest nine bits count.
        mode: u32,
        /// A file's time of modification; without it that of the write.
        modified: Option<Time>,
    },
    /// Removes what is at a path, a link as a link: [`Answer::Done`], also
    /// when there was nothing. Proved afterwards.
    Remove {
        /// Not `.`.
        path: Text,
        /// Needed for a directory, even an empty one.
        recursive: bool,
    },
    /// As a recursive [`Self::Remove`], for which a work directory that is
    /// missing is no fault either.
    Reclaim {
        /// Not `.`.
        path: Text,
    },
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "both ends of the wire construct it"
)]
pub enum WriteKind {
    /// A regular file.
    File {
        /// Bytes of data that follow.
        size: u64,
    },
    /// A directory. No data follows.
    Directory,
}

/// A guest's word on an item, or on the batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "both ends of the wire construct it"
)]
pub enum Answer {
    /// To [`Item::Look`]; `None` when nothing is there.
    Seen(Option<Stat>),
    /// To [`Item::Measure`].
    Measured {
        /// Entries below the directory, of every kind.
        entries: u64,
        /// Bytes of the regular files among them, each name counted.
        bytes: u64,
        /// A bound was reached, or something could not be looked into: there
        /// may be more.
        more: bool,
    },
    /// To [`Item::List`], a part.
    Entries(Vec<Entry>),
    /// To [`Item::List`], its end.
    Listed {
        /// A bound was reached: there may be more.
        truncated: bool,
        /// What the guest's user may not look at, and directories that it may
        /// not look into, relative to the listed one.
        closed: Vec<Text>,
    },
    /// To [`Item::Read`], before the data. The size is always known.
    Opened(Stat),
    /// The item is done.
    Done,
    /// The item is not done.
    Fault(FileFault),
    /// On [`BATCH`]: everything is answered.
    Finished,
}

/// What a name stands for; links are not followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// Bytes; regular files only.
    pub size: Option<u64>,
    /// Permissions with setuid, setgid and sticky, twelve bits.
    pub mode: u32,
    /// Time of modification.
    pub modified: Time,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names of it.
    pub links: u64,
}

/// What something in a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// None of these.
    Other,
}

/// A point in time, as file systems have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a time has two parts")]
pub struct Time {
    /// Seconds since 1970, UTC.
    pub seconds: i64,
    /// Nanoseconds after that, below 1,000,000,000.
    pub nanos: u32,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "both ends of the wire construct it"
)]
pub struct Entry {
    /// Where, relative to the listed directory.
    pub path: Text,
    /// What.
    pub stat: Stat,
}

/// Why an item is not done.
///
/// `at` is the offending beginning of the item's path; of the work directory
/// it is the absolute path. It is a courtesy: found after the refusal, when
/// the guest may have changed it already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileFault {
    /// Nothing is there.
    Missing,
    /// A directory above is a link.
    LinkedParent {
        /// The link.
        at: Text,
    },
    /// What is there is a link.
    Link,
    /// Something above is no directory.
    ParentNotDirectory {
        /// What is none.
        at: Text,
    },
    /// A directory where a file was meant.
    IsDirectory,
    /// No directory where one was meant.
    NotDirectory {
        /// What it is.
        kind: FileKind,
    },
    /// Neither a regular file nor a directory nor a link.
    NotRegular {
        /// What it is.
        kind: FileKind,
    },
    /// The operation may not name the work directory itself.
    WorkDir,
    /// The work directory does not exist.
    WorkDirMissing,
    /// The work directory or a directory above it is a link.
    WorkDirLinked {
        /// The link.
        at: Text,
    },
    /// The work directory or something above it is no directory.
    WorkDirNotDirectory {
        /// What is none.
        at: Text,
    },
    /// The path is not of the form that paths have.
    InvalidPath,
    /// The file is larger than the item allows.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// The file system is full: its bytes, its inodes or a quota.
    NoSpace,
    /// The guest's user may not do it.
    Denied,
    /// The file system cannot be written.
    ReadOnly,
    /// A directory is only removed recursively.
    NeedsRecursive,
    /// The removal was done, and something is there again or still.
    NotEmptyAfter,
    /// The file changed its size while it was read, or what the path stands
    /// for changed while it was opened.
    Changed,
    /// A name or a path is longer than the file system takes.
    NameTooLong,
    /// It is a mount point, or in use by the kernel.
    Busy,
    /// The data that the host sent is not of the size that it said.
    WrongSize {
        /// What it said, in bytes.
        expected: u64,
        /// What came until that was clear.
        received: u64,
    },
    /// An earlier item of the batch faulted.
    NotTried,
    /// Anything else.
    Other {
        /// The system's error number.
        errno: i32,
    },
}

impl Item {
    /// The path that it is about.
    #[must_use]
    pub fn path(&self) -> &Text {
        match self {
            Self::Look { path }
            | Self::Measure { path, .. }
            | Self::List { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Remove { path, .. }
            | Self::Reclaim { path } => path,
        }
    }

    /// Bytes of data that follow it.
    #[must_use]
    pub fn data(&self) -> u64 {
        match self {
            Self::Write {
                kind: WriteKind::File { size },
                ..
            } => *size,
            _ => 0,
        }
    }

    /// Whether it only looks, so that its fault stops nothing else.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
            Self::Look { .. } | Self::Measure { .. } | Self::List { .. }
        )
    }
}

impl Answer {
    /// Whether nothing more follows about its item.
    #[must_use]
    pub fn is_last(&self) -> bool {
        !matches!(self, Self::Entries(_) | Self::Opened(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;
    use crate::limits::FRAME_PAYLOAD;
    use crate::message::{from_payload, to_payload};

    /// Longest path of the contract, of bytes that JSON takes the most for.
    fn longest() -> Text {
        Text::from(vec![0x01; 4095])
    }

    fn stat() -> Stat {
        Stat {
            kind: FileKind::File,
            size: Some(u64::MAX),
            mode: 0o7777,
            modified: Time {
                seconds: i64::MIN,
                nanos: 999_999_999,
            },
            uid: u32::MAX,
            gid: u32::MAX,
            links: u64::MAX,
        }
    }

    #[test]
    fn every_message_with_the_longest_path_fits_in_a_frame() {
        let item = Item::Write {
            path: longest(),
            kind: WriteKind::File { size: u64::MAX },
            mode: u32::MAX,
            modified: Some(stat().modified),
        };
        let payload = to_payload(Kind::FileRequest, &item).unwrap();
        assert!(payload.len() < FRAME_PAYLOAD / 2, "{}", payload.len());
        assert_eq!(from_payload(Kind::FileRequest, &payload), Ok(item));
        let entry = Entry {
            path: longest(),
            stat: stat(),
        };
        for answer in [
            Answer::Entries(vec![entry]),
            Answer::Fault(FileFault::LinkedParent { at: longest() }),
        ] {
            let payload = to_payload(Kind::FileAnswer, &answer).unwrap();
            assert!(payload.len() < FRAME_PAYLOAD / 2, "{}", payload.len());
            assert_eq!(from_payload(Kind::FileAnswer, &payload), Ok(answer));
        }
    }

    #[test]
    fn only_parts_are_followed_by_more() {
        for (answer, last) in [
            (Answer::Seen(None), true),
            (Answer::Entries(Vec::new()), false),
            (
                Answer::Listed {
                    truncated: false,
                    closed: Vec::new(),
                },
                true,
            ),
            (Answer::Opened(stat()), false),
            (Answer::Done, true),
            (Answer::Fault(FileFault::NotTried), true),
        ] {
            assert_eq!(answer.is_last(), last, "{answer:?}");
        }
    }
}
