//! How full a file system is.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};
use stockade_wire::inquiry::FileSystemUse;

/// Magic number of tmpfs, `linux/magic.h`.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// The file system that a directory was on when no guest code had run, so
/// that nothing which is put in its place later is looked at.
#[derive(Debug)]
pub(crate) struct Space(OwnedFd);

impl Space {
    /// `None` when there is no such directory. A link is none.
    pub(crate) fn of(directory: impl rustix::path::Arg) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty());
        directory.ok().map(Self)
    }

    /// What it says now.
    pub(crate) fn usage(&self) -> Option<FileSystemUse> {
        let kind = rustix::fs::fstatfs(&self.0).ok()?.f_type;
        let found = rustix::fs::fstatvfs(&self.0).ok()?;
        let used = |all: u64, free: u64| all.saturating_sub(free);
        Some(FileSystemUse {
            shared: kind != TMPFS_MAGIC,
            used: used(found.f_blocks, found.f_bfree).saturating_mul(found.f_frsize),
            size: found.f_blocks.saturating_mul(found.f_frsize),
            inodes_used: used(found.f_files, found.f_ffree),
            inodes: found.f_files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_directory_has_no_space() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(Space::of(&link).is_none());
        assert!(Space::of(folder.path().join("none")).is_none());
        let found = Space::of(folder.path()).unwrap().usage().unwrap();
        assert!(found.used <= found.size);
    }
}
