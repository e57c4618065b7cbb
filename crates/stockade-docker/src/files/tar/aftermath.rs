//! What became of a copy that failed in the middle.
//!
//! The engine unpacks one entry after another: missing directories, then files
//! in their order. It removes what a file replaces before it writes the file,
//! and gives it its time last. So everything up to one entry is whole, that
//! one is there in part or not at all, and the rest was not touched.

use std::time::Duration;

use stockade::files::{Arrived, Upload, UploadEntry, UploadKind};
use stockade::{Call, Error, ErrorKind, FileRefusal, Operation, Phase};
use stockade_wire::files::{FileKind, Item, Stat};

use crate::files::Files;
use crate::files::look::{self, look};
use crate::files::words;

const OPERATION: Operation = Operation::WriteFiles;

/// How long finding out may take.
const AFTERMATH: Duration = Duration::from_secs(20);

/// What became of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    /// As it was before, or still not there.
    Untouched,
    /// There in part.
    Part,
    /// It was there before, and is not there now.
    Gone,
}

/// Finds out what arrived, and removes what is there in part. `before` is what
/// was there before, or nothing when that is not known.
pub(super) async fn aftermath(
    files: &Files,
    upload: &Upload,
    before: Vec<Option<Stat>>,
    error: Error,
) -> Error {
    let call = Call::with_timeout(AFTERMATH);
    let entries = upload.entries();
    let paths = entries.iter().map(|entry| &entry.path);
    let mut arrived = Arrived::default();
    let Ok(look) = look(files, &call, OPERATION, paths, []).await else {
        arrived.unknown = entries.iter().map(|entry| entry.path.clone()).collect();
        return error.reopen().arrived(arrived).build();
    };
    let mut stopped_at: Option<(&UploadEntry, Option<Stat>)> = None;
    // Directories were made first.
    let seen: Vec<Option<Stat>> = look
        .seen
        .into_iter()
        .map(|seen| seen.ok().flatten())
        .collect();
    let is_file = |entry: &UploadEntry| matches!(entry.kind, UploadKind::File(_));
    let mut order: Vec<usize> = (0..entries.len().min(seen.len())).collect();
    order.sort_by_key(|&number| is_file(&entries[number]));
    for number in order {
        let entry = &entries[number];
        let now = seen[number].as_ref();
        let before_it = before.get(number).and_then(Option::as_ref);
        match state(entry, before_it, now) {
            State::Whole => arrived.whole.push(entry.path.clone()),
            // What comes after the first that did not arrive was not reached.
            _ if stopped_at.is_some() => {}
            state => {
                stopped_at = Some((entry, now.cloned()));
                // Whose it is cannot be told.
                if state == State::Part && before.is_empty() {
                    arrived.unknown.push(entry.path.clone());
                    continue;
                }
                let gone = match state {
                    State::Part => removed(files, &call, entry).await,
                    state => state == State::Gone,
                };
                match (state, gone) {
                    (State::Part, false) => arrived.partial.push(entry.path.clone()),
                    (_, true) if before_it.is_some() => arrived.lost.push(entry.path.clone()),
                    _ => {}
                }
            }
        }
    }
    let Some((entry, now)) = stopped_at else {
        return error.reopen().arrived(arrived).build();
    };
    let full = error.kind() == ErrorKind::LimitExceeded;
    let why = match now.map(|now| now.kind) {
        _ if full => FileRefusal::NoSpace,
        Some(FileKind::Directory) if is_file(entry) => FileRefusal::IsDirectory,
        Some(FileKind::File) if !is_file(entry) => FileRefusal::NotDirectory,
        _ => return error.reopen().arrived(arrived).build(),
    };
    Error::refused(OPERATION, entry.path.refused(why))
        .reopen()
        .phase(Phase::Transfer)
        .arrived(arrived)
        .source(error)
        .build()
}

/// Removes what is there in part, as the guest; whether it is gone.
async fn removed(files: &Files, call: &Call, entry: &UploadEntry) -> bool {
    let item = Item::Remove {
        path: words::text(&entry.path),
        recursive: false,
    };
    let removed = look::change(files, call, OPERATION, &entry.path, item).await;
    removed.is_ok()
}

fn state(entry: &UploadEntry, before: Option<&Stat>, now: Option<&Stat>) -> State {
    let Some(now) = now else {
        return match before {
            Some(_) => State::Gone,
            None => State::Untouched,
        };
    };
    match &entry.kind {
        UploadKind::Directory if now.kind == FileKind::Directory => State::Whole,
        UploadKind::Directory => State::Untouched,
        UploadKind::File(content) => {
            let time = words::time(entry.modified).seconds;
            let as_sent = now.size == Some(content.len()) && now.modified.seconds == time;
            match now.kind {
                FileKind::File if as_sent => State::Whole,
                _ if before == Some(now) => State::Untouched,
                FileKind::File => State::Part,
                _ => State::Untouched,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use stockade::GuestPath;
    use stockade::files::FileContent;
    use stockade_wire::files::Time;

    use super::*;

    fn sent() -> UploadEntry {
        UploadEntry::new(
            GuestPath::new("file").unwrap(),
            UploadKind::File(FileContent::from_bytes("12345678".into())),
            0o644,
            SystemTime::UNIX_EPOCH + Duration::from_secs(100),
        )
    }

    fn stat(size: u64, seconds: i64, uid: u32) -> Stat {
        Stat {
            kind: FileKind::File,
            size: Some(size),
            mode: 0o644,
            modified: Time { seconds, nanos: 0 },
            uid,
            gid: uid,
            links: 1,
        }
    }

    #[test]
    fn a_file_of_its_size_and_time_is_whole_whoever_the_guest_is() {
        for uid in [0, 65_534] {
            let now = stat(8, 100, uid);
            assert_eq!(state(&sent(), None, Some(&now)), State::Whole);
        }
    }

    #[test]
    fn a_shorter_one_is_there_in_part_also_when_the_guest_is_root() {
        for uid in [0, 65_534] {
            let now = stat(3, 999, uid);
            assert_eq!(state(&sent(), None, Some(&now)), State::Part);
            let before = stat(20, 5, uid);
            assert_eq!(state(&sent(), Some(&before), Some(&now)), State::Part);
        }
    }

    #[test]
    fn what_is_as_it_was_was_not_touched() {
        let before = stat(20, 5, 7);
        assert_eq!(
            state(&sent(), Some(&before), Some(&before)),
            State::Untouched
        );
        assert_eq!(state(&sent(), None, None), State::Untouched);
    }

    #[test]
    fn what_was_there_and_is_not_is_gone() {
        assert_eq!(state(&sent(), Some(&stat(20, 5, 7)), None), State::Gone);
    }
}
