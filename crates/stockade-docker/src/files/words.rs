//! Between the contract's words for files and the wire's. Pure.

use std::time::{Duration, SystemTime};

use stockade::files::{EntryKind, FileStat, GuestPath, ListEntry};
use stockade::{Error, FileRefusal, Operation};
use stockade_wire::Text;
use stockade_wire::files::{Entry, FileFault, FileKind, Stat, Time};

/// A path as a message has it.
pub(super) fn text(path: &GuestPath) -> Text {
    Text::from(path.as_bytes())
}

/// A time as a message has it.
pub(super) fn time(time: SystemTime) -> Time {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Time {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: since.subsec_nanos(),
    }
}

/// What the guest says of a name. Times before 1970, and times that no clock
/// of the host can hold, are 1970.
pub(super) fn stat(stat: &Stat) -> FileStat {
    let seconds = u64::try_from(stat.modified.seconds).unwrap_or(0);
    let modified = Duration::new(seconds, stat.modified.nanos.min(999_999_999));
    let modified = SystemTime::UNIX_EPOCH.checked_add(modified);
    let kind = kind(stat.kind);
    let size = stat.size.filter(|_| kind == EntryKind::File);
    FileStat::new(
        kind,
        size,
        stat.mode & 0o7777,
        modified.unwrap_or(SystemTime::UNIX_EPOCH),
    )
}

/// An entry of a listing.
pub(super) fn entry(entry: Entry) -> ListEntry {
    let found = stat(&entry.stat);
    ListEntry::new(entry.path.into_bytes(), found)
}

fn kind(kind: FileKind) -> EntryKind {
    match kind {
        FileKind::File => EntryKind::File,
        FileKind::Directory => EntryKind::Directory,
        FileKind::Link => EntryKind::Link,
        FileKind::Fifo => EntryKind::Fifo,
        FileKind::Socket => EntryKind::Socket,
        FileKind::CharDevice => EntryKind::CharDevice,
        FileKind::BlockDevice => EntryKind::BlockDevice,
        _ => EntryKind::Other,
    }
}

/// Why an item was not done, as an error of its path.
pub(super) fn fault(operation: Operation, path: &GuestPath, most: u64, fault: &FileFault) -> Error {
    Error::refused(operation, path.refused(refusal(most, fault)))
}

/// `most` is the limit that a size is over.
fn refusal(most: u64, fault: &FileFault) -> FileRefusal {
    let lossy = |at: &Text| String::from_utf8_lossy(at.as_bytes()).into_owned();
    match fault {
        FileFault::Missing | FileFault::WorkDirMissing => FileRefusal::Missing,
        FileFault::LinkedParent { at } => FileRefusal::LinkedParent { at: lossy(at) },
        FileFault::Link => FileRefusal::Link,
        FileFault::ParentNotDirectory { at } | FileFault::WorkDirNotDirectory { at } => {
            FileRefusal::ParentNotDirectory { at: lossy(at) }
        }
        FileFault::IsDirectory => FileRefusal::IsDirectory,
        FileFault::NotDirectory {
            kind: FileKind::Link,
        } => FileRefusal::Link,
        FileFault::NotDirectory { .. } => FileRefusal::NotDirectory,
        FileFault::NotRegular { kind: found } => FileRefusal::NotRegular { kind: kind(*found) },
        FileFault::WorkDir => FileRefusal::WorkDir,
        FileFault::WorkDirLinked { .. } => FileRefusal::WorkDirLinked,
        FileFault::TooLarge { size } => FileRefusal::TooLarge { size: *size, most },
        FileFault::NoSpace => FileRefusal::NoSpace,
        FileFault::Denied => FileRefusal::Denied,
        FileFault::ReadOnly => FileRefusal::ReadOnly,
        FileFault::NeedsRecursive => FileRefusal::NeedsRecursive,
        FileFault::NotEmptyAfter => FileRefusal::StillThere,
        FileFault::Changed => FileRefusal::Changed,
        FileFault::NameTooLong | FileFault::InvalidPath => FileRefusal::NameRefused,
        FileFault::Busy => FileRefusal::MountPoint,
        FileFault::Other { errno } => FileRefusal::System { errno: *errno },
        // What only a guest that lies can say: the host sent what it said.
        _ => FileRefusal::System { errno: 0 },
    }
}
