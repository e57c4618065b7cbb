//! What is at a path of a held sandbox, by the header of its tar stream.

use std::collections::BTreeSet;

use docker_driver::tar::{Decoder, Entry, EntryKind, Event};
use docker_driver::{CallErrorKind, ContainerPath, Hold};
use futures_util::future::join_all;
use stockade::files::GuestPath;
use stockade::{Error, FileRefusal, Operation, Result};

use super::plan::Step;
use super::{copy_failed, strange};

/// Looks at every directory on the way, all at once, and answers which of
/// those below the work directory are missing.
///
/// # Errors
///
/// A link, or something that is no directory; the outermost counts.
pub(super) async fn directories(
    hold: &Hold,
    operation: Operation,
    steps: &[Step],
) -> Result<BTreeSet<GuestPath>> {
    let looks = steps.iter().map(|step| header(hold, operation, &step.path));
    let mut missing = BTreeSet::new();
    // The outermost first: below a link, what the others say means nothing.
    for (step, found) in steps.iter().zip(join_all(looks).await) {
        let refuse = |why| {
            let path = step.below.clone().unwrap_or_default();
            Err(Error::refused(operation, path.refused(why)))
        };
        let at = || String::from_utf8_lossy(&step.path).into_owned();
        match (found?.map(|entry| entry.kind), &step.below) {
            (Some(EntryKind::Directory), _) => {}
            (None, Some(path)) => {
                missing.insert(path.clone());
            }
            (Some(EntryKind::Symlink), None) => return refuse(FileRefusal::WorkDirLinked),
            (Some(EntryKind::Symlink), Some(_)) => {
                return refuse(FileRefusal::LinkedParent { at: at() });
            }
            _ => return refuse(FileRefusal::ParentNotDirectory { at: at() }),
        }
    }
    Ok(missing)
}

/// The header of what is at a path, without its content; nothing when there
/// is nothing.
pub(super) async fn header(
    hold: &Hold,
    operation: Operation,
    path: &[u8],
) -> Result<Option<Entry>> {
    let path = container_path(operation, path)?;
    let failed = |error| copy_failed(operation, error);
    let mut out = hold.copy_out(&path).await.map_err(failed)?;
    let mut decoder = Decoder::new();
    loop {
        match decoder.next().map_err(|error| strange(operation, error))? {
            Some(Event::Entry(entry)) => {
                out.stop().await.map_err(failed)?;
                return Ok(Some(entry));
            }
            Some(_) => return Err(strange(operation, "it begins without an entry")),
            None => {}
        }
        match out.next().await.map_err(failed)? {
            Some(bytes) => decoder.feed(bytes),
            None => {
                return match out.finish().await {
                    Err(error) if error.kind() == CallErrorKind::NoSuchPath => Ok(None),
                    Err(error) => Err(failed(error)),
                    Ok(()) => Err(strange(operation, "it is empty")),
                };
            }
        }
    }
}

/// A path as docker takes it; those of the contract all fit.
pub(super) fn container_path(operation: Operation, path: &[u8]) -> Result<ContainerPath> {
    ContainerPath::from_bytes(path).map_err(|error| strange(operation, error))
}
