//! What is at a path of a held sandbox, by the header of its tar stream.

use std::collections::BTreeSet;

use docker_driver::tar::{Decoder, Entry, EntryKind, Event};
use docker_driver::{CallErrorKind, ContainerPath, Hold};
use futures_util::future::join_all;
use stockade::files::GuestPath;
use stockade::{Error, FileRefusal, Operation, Result};

use crate::permission::granted;

use super::plan::Step;
use super::{copy_failed, strange};

/// Who the guest is. What the engine may do as root counts for nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Bits of a mode.
pub(super) const READ: u32 = 4;
pub(super) const WRITE: u32 = 2;
pub(super) const SEARCH: u32 = 1;

impl Rights {
    /// Whether the guest may do all of this. It has no capabilities, whoever
    /// it is, and no groups but its own.
    pub(super) fn allow(self, entry: &Entry, bits: u32) -> bool {
        let is_member = entry.gid == u64::from(self.gid);
        granted(entry.mode, self.owns(entry), is_member, bits)
    }

    /// Whether it is the guest's own.
    pub(super) fn owns(self, entry: &Entry) -> bool {
        entry.uid == u64::from(self.uid)
    }
}

/// Directories that were looked at.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those below the work directory that are not there.
    pub(super) missing: BTreeSet<GuestPath>,
    /// Those at or below the work directory in which the guest may not write.
    pub(super) closed: BTreeSet<GuestPath>,
    /// Those in which the guest may replace only what is its own.
    pub(super) sticky: BTreeSet<GuestPath>,
}

/// In a directory that is not its own, a user may move or remove only what is
/// (inode(7), the sticky bit).
const STICKY: u32 = 0o1000;

/// Looks at every directory on the way, all at once.
///
/// # Errors
///
/// A link, something that is no directory, or a directory that the guest may
/// not enter; the outermost counts.
pub(super) async fn directories(
    hold: &Hold,
    operation: Operation,
    rights: Rights,
    steps: &[Step],
) -> Result<Found> {
    let looks = steps.iter().map(|step| header(hold, operation, &step.path));
    let mut directories = Found::default();
    // The outermost first: below a link, what the others say means nothing.
    for (step, found) in steps.iter().zip(join_all(looks).await) {
        let refuse = |why| {
            let path = step.below.clone().unwrap_or_default();
            Err(Error::refused(operation, path.refused(why)))
        };
        let at = || String::from_utf8_lossy(&step.path).into_owned();
        let found = found?;
        match (found.as_ref().map(|entry| entry.kind), &step.below) {
            (Some(EntryKind::Directory), below) => {
                let allowed = |bits| {
                    found
                        .as_ref()
                        .is_some_and(|entry| rights.allow(entry, bits))
                };
                if !allowed(SEARCH) {
                    return refuse(FileRefusal::Denied);
                }
                let Some(path) = below else { continue };
                if !allowed(WRITE) {
                    directories.closed.insert(path.clone());
                }
                if found.is_some_and(|entry| entry.mode & STICKY != 0 && !rights.owns(&entry)) {
                    directories.sticky.insert(path.clone());
                }
            }
            (Some(EntryKind::Symlink), below)
                if below.as_ref().is_none_or(GuestPath::is_work_dir) =>
            {
                return refuse(FileRefusal::WorkDirLinked);
            }
            (None, Some(path)) if !path.is_work_dir() => {
                directories.missing.insert(path.clone());
            }
            (Some(EntryKind::Symlink), _) => {
                return refuse(FileRefusal::LinkedParent { at: at() });
            }
            _ => return refuse(FileRefusal::ParentNotDirectory { at: at() }),
        }
    }
    Ok(directories)
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

#[cfg(test)]
mod tests {
    use docker_driver::tar::{self, NewEntry, NewEntryKind};

    use super::*;

    /// An entry as an engine shows it.
    fn entry(uid: u32, gid: u32, mode: u32) -> Entry {
        let header = tar::encode_header(&NewEntry {
            path: b"file".to_vec(),
            kind: NewEntryKind::File,
            size: 0,
            mode,
            uid,
            gid,
            modified: tar::ModifiedAt::default(),
        });
        let mut decoder = Decoder::new();
        decoder.feed(header.unwrap());
        match decoder.next() {
            Ok(Some(Event::Entry(entry))) => entry,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_class_that_fits_decides_as_in_the_kernel() {
        let guest = Rights { uid: 7, gid: 8 };
        assert!(guest.allow(&entry(7, 0, 0o400), READ));
        assert!(
            !guest.allow(&entry(7, 8, 0o044), READ),
            "the owner's own bits"
        );
        assert!(guest.allow(&entry(0, 8, 0o040), READ));
        assert!(
            !guest.allow(&entry(0, 8, 0o604), READ),
            "the group's own bits"
        );
        assert!(guest.allow(&entry(0, 0, 0o004), READ));
        assert!(
            !guest.allow(&entry(0, 0, 0o600), READ),
            "what is root's stays root's"
        );
        assert!(!guest.allow(&entry(0, 0, 0o005), READ | WRITE));
    }

    #[test]
    fn a_guest_that_is_root_has_no_more_than_the_bits() {
        let root = Rights { uid: 0, gid: 0 };
        assert!(!root.allow(&entry(7, 7, 0o600), READ));
        assert!(root.allow(&entry(0, 7, 0o400), READ));
    }
}
