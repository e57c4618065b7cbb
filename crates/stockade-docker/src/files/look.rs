//! What looks at files and removes them: the same in both planes.

use stockade::files::{FileStat, GuestPath, ListRequest, Listing};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Result};
use stockade_wire::Text;
use stockade_wire::files::{Answer, FileFault, Item, Stat};

use super::Files;
use super::words;
use super::worker::Said;

/// What is at a path.
pub(super) async fn stat(files: &Files, call: &Call, path: &GuestPath) -> Result<Option<FileStat>> {
    let seen = look(files, call, Operation::Stat, [path], []).await?.seen;
    match seen.into_iter().next() {
        Some(Ok(stat)) => Ok(stat.as_ref().map(words::stat)),
        Some(Err(fault)) => Err(words::fault(Operation::Stat, path, 0, &fault)),
        None => Err(unexpected(Operation::Stat)),
    }
}

/// What a worker sees at several paths, and how much directories hold.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// One for each path.
    pub(super) seen: Vec<Result<Option<Stat>, FileFault>>,
    /// One for each directory; nothing when it holds more than was asked for.
    pub(super) held: Vec<Option<Held>>,
}

/// How much a directory holds, as the guest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// How much of a directory is counted.
pub(super) const MEASURED_ENTRIES: u64 = 4096;
pub(super) const MEASURED_BYTES: u64 = 256 * 1024 * 1024;

/// Looks at all of these at once; no docker call.
pub(super) async fn look(
    files: &Files,
    call: &Call,
    operation: Operation,
    paths: impl IntoIterator<Item = &GuestPath>,
    directories: impl IntoIterator<Item = &GuestPath>,
) -> Result<Look> {
    let looks = paths.into_iter().map(|path| Item::Look {
        path: words::text(path),
    });
    let measures = directories.into_iter().map(|path| Item::Measure {
        path: words::text(path),
        max_entries: MEASURED_ENTRIES,
        max_bytes: MEASURED_BYTES,
    });
    let asked: Vec<_> = looks.chain(measures).map(|item| (item, None)).collect();
    if asked.is_empty() {
        return Ok(Look::default());
    }
    let measured: Vec<bool> = asked
        .iter()
        .map(|(item, _)| matches!(item, Item::Measure { .. }))
        .collect();
    let mut worker = files.worker(call, operation, asked).await?;
    let mut look = Look::default();
    while let Some(said) = worker.next(call).await? {
        let Said::Answer(item, answer) = said else {
            return Err(unexpected(operation));
        };
        let measured = measured.get(item).copied().unwrap_or_default();
        match answer {
            Answer::Seen(seen) if !measured => look.seen.push(Ok(seen)),
            Answer::Fault(fault) if !measured => look.seen.push(Err(fault)),
            Answer::Measured {
                entries,
                bytes,
                more,
            } if measured => look.held.push((!more).then_some(Held { entries, bytes })),
            Answer::Fault(_) if measured => look.held.push(None),
            _ => return Err(unexpected(operation)),
        }
    }
    Ok(look)
}

/// What a directory holds.
pub(super) async fn list(files: &Files, call: &Call, request: &ListRequest) -> Result<Listing> {
    let operation = Operation::ListDir;
    let most = request.most() as usize;
    let item = Item::List {
        path: words::text(request.path()),
        recursive: request.is_recursive(),
        max_entries: u64::from(request.most()),
    };
    let mut worker = files.worker(call, operation, vec![(item, None)]).await?;
    let mut listing = Listing::default();
    while let Some(said) = worker.next(call).await? {
        match said {
            Said::Answer(_, Answer::Entries(entries)) => {
                if listing.entries.len() + entries.len() > most {
                    return Err(unexpected(operation));
                }
                listing
                    .entries
                    .extend(entries.into_iter().map(words::entry));
            }
            Said::Answer(_, Answer::Listed { truncated, closed }) => {
                listing.truncated = truncated;
                listing.closed = closed.into_iter().map(Text::into_bytes).collect();
            }
            Said::Answer(_, Answer::Fault(fault)) => {
                return Err(words::fault(operation, request.path(), 0, &fault));
            }
            _ => return Err(unexpected(operation)),
        }
    }
    // The file system's order means nothing, and differs between two of them.
    listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing)
}

/// Removes something, and waits for the proof.
pub(super) async fn change(
    files: &Files,
    call: &Call,
    operation: Operation,
    path: &GuestPath,
    item: Item,
) -> Result<()> {
    let mut worker = files.worker(call, operation, vec![(item, None)]).await?;
    let mut done = Ok(());
    loop {
        match worker.next(call).await {
            Ok(Some(Said::Answer(_, Answer::Done))) => {}
            Ok(Some(Said::Answer(_, Answer::Fault(fault)))) => {
                done = Err(words::fault(operation, path, 0, &fault));
            }
            Ok(Some(_)) => return Err(unexpected(operation)),
            Ok(None) => return done,
            Err(error) => {
                // It must not go on removing when the error is out.
                worker.end(drop).await;
                return Err(error);
            }
        }
    }
}

/// An answer to another question, which only a worker that lies gives.
pub(super) fn unexpected(operation: Operation) -> Error {
    Error::new(ErrorKind::Unavailable, operation)
        .message(
            "the guest runtime's file worker answered another question, which only code in the \
             sandbox brings about; try again when it is idle",
        )
        .phase(Phase::Transfer)
        .build()
}
