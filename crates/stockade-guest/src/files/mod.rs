//! The worker of a file operation: one process of the guest's own user, which
//! does what a batch of [`stockade_wire::files`] asks for.
//!
//! A copy of PID 1 like a supervisor, so that it needs nothing of the image,
//! not even that the runtime's own file can be read, and guest code can
//! neither trace it nor look into it. It has the rights of guest code and no
//! others, so that nothing it is tricked into is more than guest code could do
//! by itself; that it is not tricked into leaving the work directory is the
//! kernel's doing (see [`work_dir`]).
//!
//! Everything that it holds is bounded, since the work directory may be full
//! and its bytes count against the sandbox's memory: some 300 KiB for streams,
//! 8 KiB of names for each of at most 128 open directories.

mod channel;
mod fault;
mod path;
mod read;
mod remove;
#[cfg(test)]
mod tests;
mod walk;
mod work_dir;
mod write;

use std::os::fd::BorrowedFd;

use stockade_wire::files::{Answer, BATCH, Batch, EXIT_PROTOCOL, FileFault, Item, WriteKind};

use channel::{Broken, Channel, Incoming};
use fault::Stop;
use path::Place;
use work_dir::WorkDir;
use write::Attributes;

/// Serves one batch between two streams that block, and answers with what the
/// process is to exit.
///
/// `processes` is the root of a process file system, which makes files whole
/// at once and unreadable directories removable.
pub(crate) fn serve(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    processes: Option<BorrowedFd<'_>>,
) -> u8 {
    let mut channel = Channel::new(from, to);
    let Err(broken) = batch(&mut channel, processes) else {
        return 0;
    };
    if let Broken::WrongSize {
        item,
        expected,
        received,
    } = broken
    {
        let fault = FileFault::WrongSize { expected, received };
        let _ = channel.answer(item, &Answer::Fault(fault));
    }
    let _ = channel.flush();
    crate::complain(&format!("files: {broken}\n"));
    EXIT_PROTOCOL
}

fn batch(channel: &mut Channel<'_>, processes: Option<BorrowedFd<'_>>) -> Result<(), Broken> {
    let Batch { work, items } = channel.request(BATCH)?;
    let worker = Worker {
        work: WorkDir::open(work.as_bytes()),
        processes,
    };
    let mut stopped = false;
    for index in 0..items {
        let item: Item = channel.request(index)?;
        let result = match stopped {
            true => {
                channel.data(index, item.data()).skip()?;
                Err(FileFault::NotTried.into())
            }
            false => worker.attempt(channel, index, &item),
        };
        let answer = match result {
            Ok(answer) => answer,
            Err(Stop::Broken(broken)) => return Err(broken),
            Err(Stop::Fault(fault)) => {
                stopped |= !item.only_looks();
                Answer::Fault(fault)
            }
        };
        channel.answer(index, &answer)?;
    }
    channel.answer(BATCH, &Answer::Finished)
}

/// What every item of a batch needs.
struct Worker<'a> {
    work: Result<WorkDir, FileFault>,
    processes: Option<BorrowedFd<'a>>,
}

impl Worker<'_> {
    /// Does one item, and takes in what comes with it.
    fn attempt(&self, channel: &mut Channel<'_>, index: u32, item: &Item) -> Result<Answer, Stop> {
        if item.data() == 0 {
            return self.answer(channel, index, item);
        }
        let mut incoming = channel.data(index, item.data());
        let result = self.write(item, &mut incoming);
        if !matches!(result, Err(Stop::Broken(_))) {
            incoming.skip()?;
        }
        result.map(|()| Answer::Done)
    }

    fn answer(&self, channel: &mut Channel<'_>, index: u32, item: &Item) -> Result<Answer, Stop> {
        let place = Place::parse(item.path().as_bytes())?;
        let work = match (&self.work, item) {
            (Ok(work), _) => work,
            (Err(FileFault::WorkDirMissing), Item::Reclaim { .. }) => {
                place.below()?;
                return Ok(Answer::Done);
            }
            (Err(fault), _) => return Err(fault.clone().into()),
        };
        match item {
            Item::Look { .. } => Ok(Answer::Seen(read::look(work, place)?)),
            Item::Measure {
                max_entries,
                max_bytes,
                ..
            } => read::measure(work, place, *max_entries, *max_bytes),
            Item::List {
                recursive,
                max_entries,
                ..
            } => read::list(work, place, *recursive, *max_entries, channel, index),
            Item::Read { max_bytes, .. } => match place {
                Place::Itself => Err(FileFault::IsDirectory.into()),
                Place::Below(path) => read::read(work, path, *max_bytes, channel, index),
            },
            Item::Write { .. } => {
                self.write(item, &mut channel.data(index, 0))?;
                Ok(Answer::Done)
            }
            Item::Remove { recursive, .. } => {
                remove::remove(work, place.below()?, *recursive, self.processes)?;
                Ok(Answer::Done)
            }
            Item::Reclaim { .. } => {
                remove::remove(work, place.below()?, true, self.processes)?;
                Ok(Answer::Done)
            }
        }
    }

    fn write(&self, item: &Item, incoming: &mut Incoming<'_, '_>) -> Result<(), Stop> {
        let Item::Write {
            path,
            kind,
            mode,
            modified,
        } = item
        else {
            return Ok(());
        };
        let path = Place::parse(path.as_bytes())?.below()?;
        let work = self.work.as_ref().map_err(FileFault::clone)?;
        match kind {
            WriteKind::Directory => Ok(write::directory(work, path, *mode)?),
            WriteKind::File { .. } => {
                let attributes = Attributes {
                    mode: *mode,
                    modified: *modified,
                };
                write::file(work, path, attributes, self.processes, incoming)
            }
        }
    }
}
