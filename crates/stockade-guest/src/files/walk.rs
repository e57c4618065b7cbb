//! Looking at everything below a directory.

use std::collections::VecDeque;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, RawDir, Statx};
use rustix::io::Errno;
use stockade_wire::files::FileKind;

use super::fault::{self, Stop, look_at};
use super::path::PATH;
use super::work_dir::read_from;

/// How many bytes of names are taken from the kernel at a time. What is held
/// of a directory is this, however large it is.
const BATCH: usize = 8 * 1024;

/// Whether everything was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    All,
    /// The visitor, the depth or a want of descriptors ended it earlier
    /// somewhere.
    Part,
}

/// What a visitor is told of.
pub(super) enum Visit<'a> {
    /// Something that is there.
    Entry(&'a [u8], &'a Statx),
    /// Something that may not be looked at, or a directory not into.
    Closed(&'a [u8]),
}

/// A name that a directory holds.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) name: CString,
    /// What it was when it was read; a file system need not know.
    pub(super) hint: FileType,
}

/// Reads directories piece by piece.
pub(super) struct Names {
    space: Vec<MaybeUninit<u8>>,
}

/// A directory on the way down.
struct Level {
    directory: OwnedFd,
    /// Where it is, relative to the top; empty or with a slash at its end.
    path: Vec<u8>,
    names: VecDeque<Name>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            space: vec![MaybeUninit::uninit(); BATCH],
        }
    }

    /// The next names of a directory; none at its end.
    pub(super) fn next(&mut self, directory: BorrowedFd<'_>) -> Result<VecDeque<Name>, Errno> {
        let mut names = VecDeque::new();
        let mut entries = RawDir::new(directory, &mut self.space);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // A directory that is removed meanwhile has no more names.
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(errno),
            };
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push_back(Name {
                    name: name.to_owned(),
                    hint: entry.file_type(),
                });
            }
            if entries.is_buffer_empty() && !names.is_empty() {
                break;
            }
        }
        Ok(names)
    }
}

/// Visits everything below a directory, down to `depth` directories deep: a
/// directory before what is in it, and no directory through a link. What
/// vanishes meanwhile is passed over.
pub(super) fn walk(
    top: OwnedFd,
    depth: usize,
    mut visit: impl FnMut(Visit<'_>) -> Result<ControlFlow<()>, Stop>,
) -> Result<Seen, Stop> {
    let mut names = Names::new();
    let mut seen = Seen::All;
    let mut levels = vec![Level {
        names: names.next(top.as_fd())?,
        directory: top,
        path: Vec::new(),
    }];
    loop {
        let deep = levels.len() > depth;
        let Some(level) = levels.last_mut() else {
            return Ok(seen);
        };
        if level.names.is_empty() {
            level.names = names.next(level.directory.as_fd())?;
        }
        let Some(Name { name, .. }) = level.names.pop_front() else {
            levels.pop();
            continue;
        };
        let mut path = [&level.path, name.as_bytes()].concat();
        if path.len() > PATH {
            seen = Seen::Part;
            continue;
        }
        let statx = match look_at(&level.directory, name.as_c_str()) {
            Ok(statx) => statx,
            Err(Errno::NOENT) => continue,
            Err(Errno::ACCESS) => {
                if visit(Visit::Closed(&path))?.is_break() {
                    return Ok(Seen::Part);
                }
                continue;
            }
            Err(errno) => return Err(errno.into()),
        };
        if visit(Visit::Entry(&path, &statx))?.is_break() {
            return Ok(Seen::Part);
        }
        if fault::kind(&statx) != FileKind::Directory || depth == 0 {
            continue;
        }
        if deep {
            seen = Seen::Part;
            continue;
        }
        match read_from(level.directory.as_fd(), name.as_c_str()) {
            Ok(directory) => {
                path.push(b'/');
                levels.push(Level {
                    directory,
                    path,
                    names: VecDeque::new(),
                });
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(Errno::ACCESS) => {
                if visit(Visit::Closed(&path))?.is_break() {
                    return Ok(Seen::Part);
                }
            }
            // Deeper than there are descriptors.
            Err(Errno::MFILE) => seen = Seen::Part,
            Err(errno) => return Err(errno.into()),
        }
    }
}
