//! From what the kernel says to what the host is told.

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};
use rustix::io::Errno;
use std::os::fd::AsFd;
use stockade_wire::files::{FileFault, FileKind, Stat, Time};

use super::channel::Broken;

/// Permissions with setuid, setgid and sticky.
const MODE: u32 = 0o7777;

/// Why an item ends before its time.
#[derive(Debug)]
pub(super) enum Stop {
    /// It cannot be done, and the host is told.
    Fault(FileFault),
    /// There is nobody to tell.
    Broken(Broken),
}

impl From<FileFault> for Stop {
    fn from(fault: FileFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fault(fault(errno))
    }
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// What an error number means, where nothing better is known.
pub(super) fn fault(errno: Errno) -> FileFault {
    match errno {
        Errno::NOENT => FileFault::Missing,
        Errno::LOOP => FileFault::Link,
        Errno::ISDIR => FileFault::IsDirectory,
        Errno::ACCESS | Errno::PERM => FileFault::Denied,
        Errno::ROFS => FileFault::ReadOnly,
        Errno::NOSPC | Errno::DQUOT => FileFault::NoSpace,
        Errno::NAMETOOLONG => FileFault::NameTooLong,
        Errno::BUSY => FileFault::Busy,
        errno => FileFault::Other {
            errno: errno.raw_os_error(),
        },
    }
}

/// What a name in a directory stands for, without following it.
pub(super) fn look_at(directory: impl AsFd, name: impl rustix::path::Arg) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS)
}

/// What a descriptor stands for.
pub(super) fn look_at_open(file: impl AsFd) -> Result<Statx, Errno> {
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
}

pub(super) fn kind(statx: &Statx) -> FileKind {
    match FileType::from_raw_mode(statx.stx_mode.into()) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice => FileKind::CharDevice,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::Unknown => FileKind::Other,
    }
}

pub(super) fn stat(statx: &Statx) -> Stat {
    let kind = kind(statx);
    Stat {
        kind,
        size: (kind == FileKind::File).then_some(statx.stx_size),
        mode: u32::from(statx.stx_mode) & MODE,
        modified: Time {
            seconds: statx.stx_mtime.tv_sec,
            nanos: statx.stx_mtime.tv_nsec,
        },
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        links: statx.stx_nlink.into(),
    }
}

/// Refuses whatever is no regular file.
pub(super) fn regular(kind: FileKind) -> Result<(), FileFault> {
    match kind {
        FileKind::File => Ok(()),
        FileKind::Link => Err(FileFault::Link),
        FileKind::Directory => Err(FileFault::IsDirectory),
        kind => Err(FileFault::NotRegular { kind }),
    }
}

/// Refuses whatever is no directory.
pub(super) fn directory(kind: FileKind) -> Result<(), FileFault> {
    match kind {
        FileKind::Directory => Ok(()),
        FileKind::Link => Err(FileFault::Link),
        kind => Err(FileFault::NotDirectory { kind }),
    }
}
