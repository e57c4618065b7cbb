//! Writing: one tar stream into the work directory of a held sandbox.

use std::collections::BTreeSet;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use docker_driver::tar::{self, ModifiedAt, NewEntry, NewEntryKind};
use docker_driver::{CallErrorKind, Hold, TarIn};
use stockade::files::{Arrived, GuestPath, Upload, UploadEntry, UploadKind};
use stockade::{Call, Error, ErrorKind, FileRefusal, Operation, Phase, Result};
use stockade_wire::files::{FileKind, Stat};

use super::aftermath::aftermath;
use super::check::{self, Found};
use super::plan::{self, Step};
use super::{copy_failed, says_nothing, strange};
use crate::files::Files;
use crate::files::look::look;
use crate::files::words;
use crate::hold::Held;

const OPERATION: Operation = Operation::WriteFiles;

/// Bytes that are sent at a time.
const PIECE: usize = 256 * 1024;

/// Writes a batch.
pub(in crate::files) async fn write(files: &Files, call: &Call, upload: Upload) -> Result<()> {
    let before = courtesy(files, call, &upload).await?;
    // From the pause on it runs to its end, whoever waits.
    let (files, call) = (files.clone(), call.clone());
    let written = tokio::spawn(async move { held(&files, &call, &upload, before).await });
    written.await.unwrap_or_else(|error| {
        Err(Error::new(ErrorKind::Internal, OPERATION)
            .message("the task that wrote files ended")
            .source(error)
            .build())
    })
}

/// Refuses what the guest itself says to be in the way, before anything is
/// paused; what was there already otherwise. A guest that cannot be asked says
/// nothing.
async fn courtesy(files: &Files, call: &Call, upload: &Upload) -> Result<Vec<Option<Stat>>> {
    let paths = || upload.entries().iter().map(|entry| &entry.path);
    let mounts = files.mounts(call).await?;
    plan::check_mounts(files.spec.work_dir(), &mounts, paths())
        .map_err(|refusal| Error::refused(OPERATION, refusal))?;
    let seen = match look(files, call, OPERATION, paths(), []).await {
        Ok(look) => look.seen,
        Err(error) if says_nothing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut before = Vec::with_capacity(seen.len());
    for (entry, seen) in upload.entries().iter().zip(seen) {
        let seen = seen.map_err(|fault| words::fault(OPERATION, &entry.path, 0, &fault))?;
        if let Some(stat) = &seen {
            in_the_way(entry, stat)?;
        }
        before.push(seen);
    }
    Ok(before)
}

/// A file replaces a file, and a directory may be there already.
fn in_the_way(entry: &UploadEntry, stat: &Stat) -> Result<()> {
    let why = match (&entry.kind, stat.kind) {
        (UploadKind::File(_), FileKind::File) | (UploadKind::Directory, FileKind::Directory) => {
            return Ok(());
        }
        (_, FileKind::Link) => FileRefusal::Link,
        (_, FileKind::Directory) => FileRefusal::IsDirectory,
        (_, FileKind::File) => FileRefusal::NotDirectory,
        _ => FileRefusal::NotRegular {
            kind: words::stat(stat).kind,
        },
    };
    Err(Error::refused(OPERATION, entry.path.refused(why)))
}

/// How the copy itself went.
enum Copied {
    Whole,
    /// Nothing was sent.
    Refused(Error),
    /// It is over, and a part may be there.
    Part(Error),
    /// Nobody can tell whether it is over.
    Open(Error),
}

async fn held(
    files: &Files,
    call: &Call,
    upload: &Upload,
    before: Vec<Option<Stat>>,
) -> Result<()> {
    let session = &files.session;
    let held = Held::begin(session.engine(), call, OPERATION, session.id()).await?;
    let copied = match copy(files, call, held.hold(), upload).await {
        Ok(copied) => copied,
        Err(error) => Copied::Refused(error),
    };
    if let Copied::Open(error) = copied {
        // The thaw would let the guest run beside a copy that acts as root.
        let lost = session.give_up("a copy into it could not be ended").await;
        drop(held);
        let all = upload.entries().iter().map(|entry| entry.path.clone());
        let mut arrived = Arrived::default();
        arrived.unknown = all.collect();
        return Err(lost.reopen().arrived(arrived).source(error).build());
    }
    if let Err(error) = held.release(OPERATION).await {
        let lost = session.give_up("it could not be thawed").await;
        return Err(lost.reopen().source(error).build());
    }
    match copied {
        Copied::Whole => Ok(()),
        Copied::Refused(error) | Copied::Open(error) => Err(error),
        Copied::Part(error) => Err(aftermath(files, upload, before, error).await),
    }
}

/// Checks, and copies if there is nothing in the way.
async fn copy(files: &Files, call: &Call, hold: &Hold, upload: &Upload) -> Result<Copied> {
    let work_dir = files.spec.work_dir();
    let entries = upload.entries();
    let mut steps = plan::above(&files.spec);
    let directories = entries.iter().filter(|entry| is_directory(entry));
    let directories: Vec<&GuestPath> = directories.map(|entry| &entry.path).collect();
    let mut below: BTreeSet<GuestPath> = entries
        .iter()
        .flat_map(|entry| entry.path.ancestors())
        .collect();
    below.extend(directories.into_iter().cloned());
    let below: Vec<Step> = below
        .into_iter()
        .map(|path| plan::step(work_dir, path))
        .collect();
    steps.extend(below);
    let rights = files.rights();
    let found = check::directories(hold, OPERATION, rights, &steps).await?;
    may_write(upload, &found)?;
    may_replace(files, hold, upload, &found).await?;
    let missing = found.missing;
    if let Some(why) = call.interruption() {
        return Err(Error::interrupted(OPERATION, why)
            .phase(Phase::Transfer)
            .build());
    }
    let directory = check::container_path(OPERATION, work_dir.as_str().as_bytes())?;
    let copy = hold.copy_in(&directory).await;
    let mut copy = copy.map_err(|error| copy_failed(OPERATION, error))?;
    let sent = send(files, &mut copy, upload, &missing).await;
    let finished = match sent {
        Ok(()) => copy.finish().await.map_err(Sent::Docker),
        Err(sent) => Err(sent),
    };
    Ok(match finished {
        Ok(()) => Copied::Whole,
        Err(Sent::Host(error)) => Copied::Open(error),
        Err(Sent::Docker(error)) => match error.kind() {
            CallErrorKind::HoldEnded | CallErrorKind::NoProgress | CallErrorKind::Signalled => {
                Copied::Open(copy_failed(OPERATION, error))
            }
            _ => Copied::Part(copy_failed(OPERATION, error)),
        },
    })
}

/// What is new, or replaced, changes the directory that it is in.
fn may_write(upload: &Upload, found: &Found) -> Result<()> {
    let written = upload.entries().iter().filter(|entry| {
        // A directory that is there is left as it is.
        !is_directory(entry) || found.missing.contains(&entry.path)
    });
    for entry in written {
        let mut ways = entry.path.ancestors().collect::<Vec<_>>().into_iter().rev();
        // The innermost directory that is there.
        let inside = ways.find(|way| !found.missing.contains(way));
        if found.closed.contains(&inside.unwrap_or_default()) {
            return Err(Error::refused(
                OPERATION,
                entry.path.refused(FileRefusal::Denied),
            ));
        }
    }
    Ok(())
}

/// In a sticky directory that is not the guest's, what is replaced must be.
async fn may_replace(files: &Files, hold: &Hold, upload: &Upload, found: &Found) -> Result<()> {
    let (work_dir, rights) = (files.spec.work_dir(), files.rights());
    for entry in upload.entries().iter().filter(|entry| !is_directory(entry)) {
        let directory = entry.path.parent().unwrap_or_default();
        if !found.sticky.contains(&directory) {
            continue;
        }
        let there = check::header(hold, OPERATION, &entry.path.absolute(work_dir)).await?;
        if there.is_some_and(|there| !rights.owns(&there)) {
            return Err(Error::refused(
                OPERATION,
                entry.path.refused(FileRefusal::Denied),
            ));
        }
    }
    Ok(())
}

fn is_directory(entry: &UploadEntry) -> bool {
    matches!(entry.kind, UploadKind::Directory)
}

/// Why not everything was sent.
enum Sent {
    /// Our own content could not be read in the middle.
    Host(Error),
    Docker(docker_driver::CallError),
}

/// Sends directories that are missing, outermost first, and then the files.
async fn send(
    files: &Files,
    copy: &mut TarIn<'_>,
    upload: &Upload,
    missing: &BTreeSet<GuestPath>,
) -> Result<(), Sent> {
    let owner = files.session.owner();
    let now = SystemTime::now();
    let mut bytes = BytesMut::new();
    for path in missing {
        let entry = upload.entries().iter().find(|entry| entry.path == *path);
        let mode = entry.map_or(0o755, |entry| entry.mode);
        let header = header(path, NewEntryKind::Directory, 0, mode, owner, now);
        bytes.extend_from_slice(&header.map_err(Sent::Host)?);
    }
    for entry in upload.entries() {
        let UploadKind::File(content) = &entry.kind else {
            continue;
        };
        let size = content.len();
        let header = header(
            &entry.path,
            NewEntryKind::File,
            size,
            entry.mode,
            owner,
            entry.modified,
        );
        bytes.extend_from_slice(&header.map_err(Sent::Host)?);
        let mut at = 0;
        while at < size {
            let piece = content.read_at(at, PIECE).await.map_err(|error| {
                Sent::Host(strange(OPERATION, format!("{}: {error}", entry.path)))
            })?;
            at += piece.len() as u64;
            // Small files go together.
            if bytes.len() + piece.len() > PIECE {
                flush(copy, &mut bytes).await?;
            }
            if piece.len() < PIECE / 2 {
                bytes.extend_from_slice(&piece);
            } else {
                flush(copy, &mut bytes).await?;
                copy.write(piece).await.map_err(Sent::Docker)?;
            }
        }
        bytes.extend_from_slice(tar::padding(size));
    }
    bytes.extend_from_slice(tar::END);
    flush(copy, &mut bytes).await
}

async fn flush(copy: &mut TarIn<'_>, bytes: &mut BytesMut) -> Result<(), Sent> {
    if bytes.is_empty() {
        return Ok(());
    }
    copy.write(bytes.split().freeze())
        .await
        .map_err(Sent::Docker)
}

fn header(
    path: &GuestPath,
    kind: NewEntryKind,
    size: u64,
    mode: u32,
    (uid, gid): (u32, u32),
    modified: SystemTime,
) -> Result<Bytes> {
    let time = words::time(modified);
    let entry = NewEntry {
        path: path.as_bytes().to_vec(),
        kind,
        size,
        mode,
        uid,
        gid,
        modified: ModifiedAt {
            seconds: time.seconds,
            nanos: time.nanos,
        },
    };
    tar::encode_header(&entry).map_err(|error| strange(OPERATION, error))
}
