//! The work directory, and directories beneath it, reached without following
//! a link.
//!
//! The kernel resolves every path in one step, so that there is nothing for
//! guest code to win between a check and a use. Directories are held by
//! descriptors that allow nothing but to be started from (`O_PATH`), which
//! needs no permission to read them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use stockade_wire::files::{FileFault, FileKind};

use super::fault::{self, fault, look_at, look_at_open};
use super::path::{Below, Place};

/// The mode of directories that are made on the way.
const PARENT: Mode = Mode::from_raw_mode(0o755);

/// How often a resolution that a rename disturbed is tried again.
const TRIES: u32 = 64;

/// Where every path of a batch begins.
#[derive(Debug)]
pub(super) struct WorkDir(OwnedFd);

/// What is wrong on the way to a directory.
enum Blame<'a> {
    Linked(&'a [u8]),
    NotDirectory(&'a [u8]),
    Fault(FileFault),
}

impl WorkDir {
    /// Opens it by its absolute path.
    pub(super) fn open(path: &[u8]) -> Result<Self, FileFault> {
        let relative = match path.strip_prefix(b"/") {
            Some(b"") => b".",
            Some(relative) => relative,
            None => return Err(FileFault::InvalidPath),
        };
        let place = Place::parse(relative)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, "/", flags, Mode::empty()).map_err(fault)?;
        let Place::Below(below) = place else {
            return Ok(Self(root));
        };
        let absolute = |at: &[u8]| [b"/", at].concat().into();
        match start_from(root.as_fd(), below.as_bytes()) {
            Ok(directory) => Ok(Self(directory)),
            Err(errno) => Err(match blame(root.as_fd(), below, errno) {
                Blame::Linked(at) => FileFault::WorkDirLinked { at: absolute(at) },
                Blame::NotDirectory(at) => FileFault::WorkDirNotDirectory { at: absolute(at) },
                Blame::Fault(FileFault::Missing) => FileFault::WorkDirMissing,
                Blame::Fault(fault) => fault,
            }),
        }
    }

    /// The directory that holds the last name of a path.
    pub(super) fn parent_of(&self, path: Below<'_>) -> Result<OwnedFd, FileFault> {
        let Some(parent) = path.parent() else {
            return self.again();
        };
        start_from(self.0.as_fd(), parent.as_bytes())
            .map_err(|errno| self.blame_parent(parent, errno))
    }

    /// The same, with whatever of it is missing made.
    pub(super) fn made_parent_of(&self, path: Below<'_>) -> Result<OwnedFd, FileFault> {
        match (self.parent_of(path), path.parent()) {
            (Err(FileFault::Missing), Some(parent)) => self.make(parent),
            (found, _) => found,
        }
    }

    /// A directory to read.
    pub(super) fn directory(&self, place: Place<'_>) -> Result<OwnedFd, FileFault> {
        let Place::Below(path) = place else {
            return read_from(self.0.as_fd(), c".").map_err(fault);
        };
        let parent = self.parent_of(path)?;
        read_from(parent.as_fd(), path.leaf()).map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => match look_at(&parent, path.leaf()) {
                Ok(found) => fault::directory(fault::kind(&found))
                    .err()
                    .unwrap_or(FileFault::Changed),
                Err(errno) => fault(errno),
            },
            errno => fault(errno),
        })
    }

    /// A second descriptor for it.
    pub(super) fn again(&self) -> Result<OwnedFd, FileFault> {
        rustix::io::fcntl_dupfd_cloexec(&self.0, 3).map_err(fault)
    }

    fn make(&self, path: Below<'_>) -> Result<OwnedFd, FileFault> {
        let mut at = self.again()?;
        for name in path.names() {
            let step = match start_from(at.as_fd(), name) {
                Err(Errno::NOENT) => match rustix::fs::mkdirat(&at, name, PARENT) {
                    Ok(()) | Err(Errno::EXIST) => start_from(at.as_fd(), name),
                    Err(errno) => return Err(fault(errno)),
                },
                step => step,
            };
            at = step.map_err(|errno| self.blame_parent(path, errno))?;
        }
        Ok(at)
    }

    fn blame_parent(&self, parent: Below<'_>, errno: Errno) -> FileFault {
        match blame(self.0.as_fd(), parent, errno) {
            Blame::Linked(at) => FileFault::LinkedParent { at: at.into() },
            Blame::NotDirectory(at) => FileFault::ParentNotDirectory { at: at.into() },
            Blame::Fault(fault) => fault,
        }
    }
}

/// Opens a directory to start from.
fn start_from(at: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    open(at, path, OFlags::PATH | OFlags::DIRECTORY)
}

/// Opens a directory to read.
pub(super) fn read_from(
    at: BorrowedFd<'_>,
    path: impl rustix::path::Arg + Copy,
) -> Result<OwnedFd, Errno> {
    open(
        at,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW,
    )
}

/// Opens a name to see what it is, and for nothing else.
pub(super) fn point_at(
    at: BorrowedFd<'_>,
    path: impl rustix::path::Arg + Copy,
) -> Result<OwnedFd, Errno> {
    open(at, path, OFlags::PATH | OFlags::NOFOLLOW)
}

/// The one way in which a path of more than one name is resolved.
fn open(
    at: BorrowedFd<'_>,
    path: impl rustix::path::Arg + Copy,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(at, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
            result => return result,
        }
    }
}

/// Finds out where a path leads astray, after the kernel refused it.
fn blame<'a>(base: BorrowedFd<'_>, path: Below<'a>, errno: Errno) -> Blame<'a> {
    if !matches!(errno, Errno::LOOP | Errno::NOTDIR) {
        return Blame::Fault(fault(errno));
    }
    for at in path.beginnings() {
        let found = point_at(base, at).and_then(look_at_open);
        match found.map(|found| fault::kind(&found)) {
            Ok(FileKind::Directory) => {}
            Ok(FileKind::Link) => return Blame::Linked(at),
            Ok(_) => return Blame::NotDirectory(at),
            Err(Errno::LOOP | Errno::NOTDIR) => break,
            Err(errno) => return Blame::Fault(fault(errno)),
        }
    }
    Blame::Fault(FileFault::Changed)
}
