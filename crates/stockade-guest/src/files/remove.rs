//! Removing.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, SeekFrom, Statx};
use rustix::io::Errno;
use stockade_wire::files::{FileFault, FileKind};

use super::fault::{self, fault, look_at, look_at_open};
use super::path::Below;
use super::walk::{Name, Names};
use super::work_dir::{WorkDir, point_at, read_from};
use super::write::fresh_name;
use crate::limits;

/// What an owner needs of a directory to empty it.
const OWNERS: u32 = 0o700;

/// Directories that are open at a time, at most; fewer where the limit of open
/// files is low.
const DEEPEST: usize = 128;

/// How often a directory that is not empty is read again although the last
/// time there was nothing to remove from it.
const FRUITLESS: u32 = 3;

/// Removes what is at a path.
pub(super) fn remove(
    work: &WorkDir,
    path: Below<'_>,
    recursive: bool,
    processes: Option<BorrowedFd<'_>>,
) -> Result<(), FileFault> {
    let parent = match work.parent_of(path) {
        Ok(parent) => parent,
        Err(FileFault::Missing) => return Ok(()),
        Err(fault) => return Err(fault),
    };
    let leaf = CString::new(path.leaf()).map_err(|_| FileFault::InvalidPath)?;
    let found = match look_at(&parent, leaf.as_c_str()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(fault(errno)),
    };
    let hint = match fault::kind(&found) {
        FileKind::Directory if !recursive => return Err(FileFault::NeedsRecursive),
        FileKind::Directory => FileType::Directory,
        _ => FileType::Unknown,
    };
    let mut removal = Removal {
        parent: parent.as_fd(),
        processes,
        levels: Vec::new(),
        deepest: deepest(),
        names: Names::new(),
    };
    let name = Name { name: leaf, hint };
    if recursive {
        removal.run(name)?;
    } else {
        unlink(parent.as_fd(), &name.name).map_err(|errno| match errno {
            Errno::ISDIR => FileFault::NeedsRecursive,
            errno => fault(errno),
        })?;
    }
    match look_at(&parent, path.leaf()) {
        Err(Errno::NOENT) => Ok(()),
        Ok(_) => Err(FileFault::NotEmptyAfter),
        Err(errno) => Err(fault(errno)),
    }
}

/// A tree that is being removed, from its leaves up.
///
/// What it needs does not depend on the tree, which guest code may have made
/// as deep and as wide as it likes: a directory that is deeper than there are
/// descriptors for is moved up to the top, and found there again.
struct Removal<'a> {
    /// Where the top is.
    parent: BorrowedFd<'a>,
    processes: Option<BorrowedFd<'a>>,
    levels: Vec<Level>,
    deepest: usize,
    names: Names,
}

/// A directory that is being emptied.
struct Level {
    directory: OwnedFd,
    name: CString,
    names: VecDeque<Name>,
    /// Something was removed from it since it was last read from its beginning.
    fruitful: bool,
    fruitless: u32,
}

impl Removal<'_> {
    fn run(&mut self, top: Name) -> Result<(), FileFault> {
        self.discard(top)?;
        while let Some(level) = self.levels.last_mut() {
            if level.names.is_empty() {
                let directory = level.directory.as_fd();
                level.names = self.names.next(directory).map_err(fault)?;
            }
            match level.names.pop_front() {
                Some(name) => self.discard(name)?,
                None => self.leave()?,
            }
        }
        Ok(())
    }

    /// Removes a name of the current directory, or goes into it.
    fn discard(&mut self, Name { name, hint }: Name) -> Result<(), FileFault> {
        let at = self.levels.last().map_or(self.parent, Level::directory);
        if hint != FileType::Directory {
            match unlink(at, &name) {
                Ok(()) => {
                    self.note_removed();
                    return Ok(());
                }
                Err(Errno::ISDIR) => {}
                Err(errno) => return Err(fault(errno)),
            }
        }
        match self.enter(at, &name) {
            Ok(directory) => {
                if self.levels.len() < self.deepest || !self.move_up(&name)? {
                    self.levels.push(Level {
                        directory,
                        name,
                        names: VecDeque::new(),
                        fruitful: false,
                        fruitless: 0,
                    });
                }
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            // Guest code made something else of it.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                unlink(at, &name).map_err(fault)?;
                self.note_removed();
                Ok(())
            }
            Err(errno) => Err(fault(errno)),
        }
    }

    /// Removes the current directory, which was read to its end.
    fn leave(&mut self) -> Result<(), FileFault> {
        let Some(level) = self.levels.pop() else {
            return Ok(());
        };
        let above = self.levels.last().map_or(self.parent, Level::directory);
        match rustix::fs::unlinkat(above, level.name.as_c_str(), AtFlags::REMOVEDIR) {
            Ok(()) => {
                self.note_removed();
                Ok(())
            }
            // Guest code removed, moved or replaced it; a new look tells.
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => self.read_again(level),
            Err(errno) => Err(fault(errno)),
        }
    }

    fn read_again(&mut self, mut level: Level) -> Result<(), FileFault> {
        level.fruitless = match level.fruitful {
            true => 0,
            false => level.fruitless + 1,
        };
        if level.fruitless > FRUITLESS {
            return Err(FileFault::NotEmptyAfter);
        }
        level.fruitful = false;
        rustix::fs::seek(&level.directory, SeekFrom::Start(0)).map_err(fault)?;
        self.levels.push(level);
        Ok(())
    }

    fn note_removed(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.fruitful = true;
        }
    }

    /// Moves a directory of the current one into the top. False where that
    /// cannot be: an overlay does not move what comes from an image, which is
    /// no deeper than its paths could be long.
    fn move_up(&mut self, name: &CStr) -> Result<bool, FileFault> {
        let (Some(top), Some(level)) = (self.levels.first(), self.levels.last()) else {
            return Ok(false);
        };
        let fresh = fresh_name().map_err(fault)?;
        match rustix::fs::renameat(&level.directory, name, &top.directory, &fresh) {
            Ok(()) | Err(Errno::NOENT) => {
                self.note_removed();
                Ok(true)
            }
            Err(Errno::XDEV) => Ok(false),
            Err(errno) => Err(fault(errno)),
        }
    }

    /// Opens a directory so that its owner can empty it.
    fn enter(&self, at: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        let directory = match read_from(at, name) {
            Err(Errno::ACCESS) => {
                self.unlock(point_at(at, name)?)?;
                read_from(at, name)?
            }
            result => result?,
        };
        let found = look_at_open(&directory)?;
        if is_locked(&found) {
            let _ = rustix::fs::fchmod(&directory, unlocked(&found));
        }
        Ok(directory)
    }

    /// Gives the owner of an unreadable directory what it takes to read it,
    /// as far as it is ours.
    fn unlock(&self, directory: OwnedFd) -> Result<(), Errno> {
        let found = look_at_open(&directory)?;
        if fault::kind(&found) != FileKind::Directory {
            return Err(Errno::NOTDIR);
        }
        let processes = self.processes.ok_or(Errno::ACCESS)?;
        // By way of the process file system, since the mode of what can only
        // be pointed at cannot be changed otherwise on older kernels, and a
        // name may stand for something else by now.
        let magic = format!("self/fd/{}", directory.as_raw_fd());
        rustix::fs::chmodat(processes, &magic, unlocked(&found), AtFlags::empty())
            .map_err(|_| Errno::ACCESS)
    }
}

impl Level {
    fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

fn is_locked(directory: &Statx) -> bool {
    u32::from(directory.stx_mode) & OWNERS != OWNERS
}

fn unlocked(directory: &Statx) -> Mode {
    Mode::from_raw_mode(u32::from(directory.stx_mode) & 0o7777 | OWNERS)
}

/// Removes a name of anything but a directory, or finds it gone.
fn unlink(at: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

fn deepest() -> usize {
    let half = usize::try_from(limits::open_files() / 2).unwrap_or(DEEPEST);
    half.clamp(4, DEEPEST)
}
