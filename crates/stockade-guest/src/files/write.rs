//! Making files and directories.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use stockade_wire::files::{FileFault, Time};

use super::channel::{Incoming, write_all};
use super::fault::{self, Stop, fault, look_at};
use super::path::Below;
use super::work_dir::WorkDir;

/// The bits of a mode that a host may set.
const PERMISSIONS: u32 = 0o777;

/// Mode of a file that is not whole yet.
const STAGED: Mode = Mode::from_raw_mode(0o600);

/// What a file is to be like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) modified: Option<Time>,
}

/// A file that is not at its place yet. Dropping it leaves nothing behind.
enum Staged<'a> {
    /// It has no name, so that a worker which is killed leaves nothing
    /// either, and gets one through the process file system.
    Unnamed {
        file: OwnedFd,
        processes: BorrowedFd<'a>,
    },
    /// Where the file system knows no files without a name.
    Named { file: OwnedFd, name: Temporary<'a> },
}

/// A name of ours in a directory, until it is renamed.
struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: String,
    taken: bool,
}

/// Makes a directory, unless there is one.
pub(super) fn directory(work: &WorkDir, path: Below<'_>, mode: u32) -> Result<(), FileFault> {
    let parent = work.made_parent_of(path)?;
    match rustix::fs::mkdirat(&parent, path.leaf(), permissions(mode)) {
        Err(Errno::EXIST) => {
            let found = look_at(&parent, path.leaf()).map_err(fault)?;
            fault::directory(fault::kind(&found))
        }
        result => result.map_err(fault),
    }
}

/// Makes or replaces a file with the data that comes in.
pub(super) fn file(
    work: &WorkDir,
    path: Below<'_>,
    attributes: Attributes,
    processes: Option<BorrowedFd<'_>>,
    incoming: &mut Incoming<'_, '_>,
) -> Result<(), Stop> {
    let parent = work.made_parent_of(path)?;
    match look_at(&parent, path.leaf()) {
        Ok(found) => fault::regular(fault::kind(&found))?,
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let staged = Staged::open(&parent, processes)?;
    while let Some(frame) = incoming.next()? {
        write_all(staged.file(), &frame.payload)?;
    }
    rustix::fs::fchmod(staged.file(), permissions(attributes.mode))?;
    if let Some(time) = attributes.modified {
        set_modified(staged.file(), time)?;
    }
    staged.publish(&parent, path.leaf())?;
    Ok(())
}

/// A name that guest code cannot foresee.
pub(super) fn fresh_name() -> Result<String, Errno> {
    let mut bytes = [0; 8];
    // So few bytes come whole or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!(".stockade-{:016x}.part", u64::from_ne_bytes(bytes)))
}

fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & PERMISSIONS)
}

fn set_modified(file: &OwnedFd, time: Time) -> Result<(), Errno> {
    let untouched = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let modified = Timespec {
        tv_sec: time.seconds,
        tv_nsec: time.nanos.into(),
    };
    let times = Timestamps {
        last_access: untouched,
        last_modification: modified,
    };
    if time.nanos >= 1_000_000_000 {
        return Err(Errno::INVAL);
    }
    rustix::fs::futimens(file, &times)
}

impl<'a> Staged<'a> {
    fn open(directory: &'a OwnedFd, processes: Option<BorrowedFd<'a>>) -> Result<Self, Errno> {
        if let Some(processes) = processes {
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            match rustix::fs::openat(directory, c".", flags, STAGED) {
                Ok(file) => return Ok(Self::Unnamed { file, processes }),
                // The file system, or the kernel, does not know it.
                Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mut name = Temporary::new(directory)?;
        let file = rustix::fs::openat(directory, &name.name, flags | OFlags::CLOEXEC, STAGED)?;
        name.taken = true;
        Ok(Self::Named { file, name })
    }

    fn file(&self) -> &OwnedFd {
        match self {
            Self::Unnamed { file, .. } | Self::Named { file, .. } => file,
        }
    }

    /// Puts it at its place, in the place of whatever file is there.
    fn publish(self, directory: &'a OwnedFd, leaf: &[u8]) -> Result<(), Errno> {
        let (file, processes) = match self {
            Self::Named { name, .. } => return name.rename(leaf),
            Self::Unnamed { file, processes } => (file, processes),
        };
        let magic = format!("self/fd/{}", file.as_raw_fd());
        let follow = AtFlags::SYMLINK_FOLLOW;
        match rustix::fs::linkat(processes, &magic, directory, leaf, follow) {
            Err(Errno::EXIST) => {}
            result => return result,
        }
        // A link replaces nothing; a rename does.
        let mut name = Temporary::new(directory)?;
        rustix::fs::linkat(processes, &magic, directory, &name.name, follow)?;
        name.taken = true;
        name.rename(leaf)
    }
}

impl<'a> Temporary<'a> {
    fn new(directory: &'a OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            directory,
            name: fresh_name()?,
            taken: false,
        })
    }

    fn rename(mut self, leaf: &[u8]) -> Result<(), Errno> {
        let directory = self.directory.as_fd();
        rustix::fs::renameat(directory, &self.name, directory, leaf)?;
        self.taken = false;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.taken {
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}
