//! What changes nothing: looking, measuring, listing, reading.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use stockade_wire::files::{Answer, Entry, FileFault, FileKind, LIST_DEPTH, Stat};
use stockade_wire::frame::HEADER;
use stockade_wire::limits::FRAME_PAYLOAD;

use super::channel::Channel;
use super::fault::{self, Stop, fault, look_at, look_at_open};
use super::path::{Below, Place};
use super::walk::{Seen, Visit, walk};
use super::work_dir::WorkDir;

/// Most bytes of JSON that entries of one frame may come to.
const ENTRIES: usize = FRAME_PAYLOAD - 1024;

/// Most bytes of JSON that one byte of a path comes to, as in `\u0001`.
const ESCAPED: usize = 6;

/// Most bytes of JSON that the rest of an entry comes to.
const REST_OF_ENTRY: usize = 320;

/// What is at a path.
pub(super) fn look(work: &WorkDir, place: Place<'_>) -> Result<Option<Stat>, FileFault> {
    let found = match place {
        Place::Itself => look_at_open(work.again()?),
        Place::Below(path) => match work.parent_of(path) {
            Ok(parent) => look_at(parent, path.leaf()),
            Err(FileFault::Missing) => return Ok(None),
            Err(fault) => return Err(fault),
        },
    };
    match found {
        Ok(found) => Ok(Some(fault::stat(&found))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(fault(errno)),
    }
}

/// How much is below a directory.
pub(super) fn measure(
    work: &WorkDir,
    place: Place<'_>,
    max_entries: u64,
    max_bytes: u64,
) -> Result<Answer, Stop> {
    let (mut entries, mut bytes) = (0_u64, 0_u64);
    let mut closed = false;
    let seen = walk(work.directory(place)?, LIST_DEPTH, |visit| {
        let Visit::Entry(_, found) = visit else {
            closed = true;
            return Ok(ControlFlow::Continue(()));
        };
        if entries >= max_entries || bytes >= max_bytes {
            return Ok(ControlFlow::Break(()));
        }
        entries += 1;
        if fault::kind(found) == FileKind::File {
            bytes = bytes.saturating_add(found.stx_size);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Answer::Measured {
        entries,
        bytes,
        more: closed || seen == Seen::Part,
    })
}

/// What a directory holds, told as it is found.
pub(super) fn list(
    work: &WorkDir,
    place: Place<'_>,
    recursive: bool,
    max_entries: u64,
    channel: &mut Channel<'_>,
    item: u32,
) -> Result<Answer, Stop> {
    let depth = if recursive { LIST_DEPTH } else { 0 };
    let mut told = 0_u64;
    let mut entries = Vec::new();
    let mut weight = 0;
    let (mut closed, mut closed_weight) = (Vec::new(), 0);
    let seen = walk(work.directory(place)?, depth, |visit| {
        let (path, found) = match visit {
            Visit::Entry(path, found) => (path, found),
            Visit::Closed(path) => {
                // They are told at the end, in one frame.
                closed_weight += path.len() * ESCAPED + REST_OF_ENTRY;
                if closed_weight > ENTRIES {
                    return Ok(ControlFlow::Break(()));
                }
                closed.push(path.into());
                return Ok(ControlFlow::Continue(()));
            }
        };
        if told >= max_entries {
            return Ok(ControlFlow::Break(()));
        }
        told += 1;
        let heavier = weight + path.len() * ESCAPED + REST_OF_ENTRY;
        if heavier > ENTRIES {
            channel.answer(item, &Answer::Entries(std::mem::take(&mut entries)))?;
            weight = 0;
        }
        weight += path.len() * ESCAPED + REST_OF_ENTRY;
        entries.push(Entry {
            path: path.into(),
            stat: fault::stat(found),
        });
        Ok(ControlFlow::Continue(()))
    })?;
    if !entries.is_empty() {
        channel.answer(item, &Answer::Entries(entries))?;
    }
    Ok(Answer::Listed {
        truncated: seen == Seen::Part,
        closed,
    })
}

/// A regular file's content.
pub(super) fn read(
    work: &WorkDir,
    path: Below<'_>,
    max_bytes: u64,
    channel: &mut Channel<'_>,
    item: u32,
) -> Result<Answer, Stop> {
    let (file, stat) = open(work, path)?;
    let size = stat.size.unwrap_or(0);
    if size > max_bytes {
        return Err(FileFault::TooLarge { size }.into());
    }
    channel.answer(item, &Answer::Opened(stat))?;
    let mut space = vec![0; HEADER + FRAME_PAYLOAD];
    let mut left = size;
    while left > 0 {
        let most = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(FRAME_PAYLOAD);
        let length = read_some(&file, space.get_mut(HEADER..HEADER + most))?;
        if length == 0 {
            return Err(FileFault::Changed.into());
        }
        let framed = space.get_mut(..HEADER + length).unwrap_or_default();
        channel.send_data(item, framed)?;
        left -= length as u64;
    }
    match read_some(&file, space.get_mut(..1))? {
        0 => Ok(Answer::Done),
        _ => Err(FileFault::Changed.into()),
    }
}

/// Opens a regular file, and nothing else: not even to close it again, since
/// opening a device can have an effect and opening a fifo can wait.
fn open(work: &WorkDir, path: Below<'_>) -> Result<(OwnedFd, Stat), FileFault> {
    let parent = work.parent_of(path)?;
    let found = look_at(&parent, path.leaf()).map_err(fault)?;
    fault::regular(fault::kind(&found))?;
    // What is here is what guest code put in its place since; it can neither
    // make this wait nor have this process follow a link.
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&parent, path.leaf(), flags, Mode::empty());
    let file = opened.map_err(|errno| match errno {
        Errno::NXIO => FileFault::Changed,
        errno => fault(errno),
    })?;
    let found = look_at_open(&file).map_err(fault)?;
    fault::regular(fault::kind(&found))?;
    Ok((file, fault::stat(&found)))
}

fn read_some(file: &OwnedFd, space: Option<&mut [u8]>) -> Result<usize, FileFault> {
    let space = space.unwrap_or_default();
    loop {
        match rustix::io::read(file, &mut *space) {
            Err(Errno::INTR) => {}
            result => return result.map_err(fault),
        }
    }
}
