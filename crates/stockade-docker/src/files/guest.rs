//! The guest plane: the guest runtime writes and reads, as the guest's user.

use stockade::files::{
    Arrived, Download, GuestPath, ReadFile, Spool, Upload, UploadEntry, UploadKind,
};
use stockade::{Call, Error, FileRefusal, Operation, Phase, Result};
use stockade_wire::files::{Answer, FileFault, FileKind, Item, Stat, WriteKind};

use super::Files;
use super::look::unexpected;
use super::words;
use super::worker::{Asked, Said, Worker};

/// Writes a batch; each file is whole or as it was.
pub(super) async fn write(files: &Files, call: &Call, upload: &Upload) -> Result<()> {
    let operation = Operation::WriteFiles;
    let entries = upload.entries();
    let asked = entries.iter().map(ask_to_write).collect();
    let mut worker = files.worker(call, operation, asked).await?;
    let mut progress = Progress::default();
    loop {
        match worker.next(call).await {
            Ok(Some(Said::Answer(item, answer))) if progress.hears(item, &answer) => {}
            Ok(Some(_)) => {
                let error = unexpected(operation);
                return Err(abandoned(worker, entries, progress, error).await);
            }
            Ok(None) => break,
            Err(error) => return Err(abandoned(worker, entries, progress, error).await),
        }
    }
    match &progress.fault {
        None => Ok(()),
        Some((item, fault)) => Err(words::fault(operation, &entries[*item].path, 0, fault)
            .reopen()
            .arrived(Arrived::whole(progress.paths(entries)))
            .build()),
    }
}

/// What has become of a batch so far.
#[derive(Debug, Default)]
struct Progress {
    /// Items that are answered.
    answered: usize,
    /// Items that were written; all others changed nothing.
    done: Vec<usize>,
    /// The first that was not.
    fault: Option<(usize, FileFault)>,
}

impl Progress {
    /// Takes in an answer; false for one to another question.
    fn hears(&mut self, item: usize, answer: &Answer) -> bool {
        self.answered = item + 1;
        match answer {
            Answer::Done => self.done.push(item),
            Answer::Fault(fault) => {
                self.fault.get_or_insert_with(|| (item, fault.clone()));
            }
            _ => return false,
        }
        true
    }

    fn paths(&self, entries: &[UploadEntry]) -> Vec<GuestPath> {
        self.done
            .iter()
            .map(|&item| entries[item].path.clone())
            .collect()
    }
}

/// Ends a worker in the middle, and says what it had done.
async fn abandoned(
    worker: Worker,
    entries: &[UploadEntry],
    mut progress: Progress,
    error: Error,
) -> Error {
    let proved = worker
        .end(|said| {
            if let Said::Answer(item, answer) = said {
                progress.hears(item, &answer);
            }
        })
        .await;
    let mut arrived = Arrived::whole(progress.paths(entries));
    // The one that was under way may have been put in its place; with a
    // worker that may still run, so may the others.
    let rest = &entries[progress.answered.min(entries.len())..];
    let open = if proved { 1 } else { rest.len() };
    arrived.unknown = rest
        .iter()
        .take(open)
        .map(|entry| entry.path.clone())
        .collect();
    error.reopen().arrived(arrived).build()
}

fn ask_to_write(entry: &UploadEntry) -> Asked {
    let path = words::text(&entry.path);
    let (kind, modified, content) = match &entry.kind {
        UploadKind::File(content) => {
            let size = content.len();
            let modified = Some(words::time(entry.modified));
            (WriteKind::File { size }, modified, Some(content.clone()))
        }
        UploadKind::Directory => (WriteKind::Directory, None, None),
    };
    let mode = entry.mode;
    let item = Item::Write {
        path,
        kind,
        mode,
        modified,
    };
    (item, content)
}

/// Reads files: all sizes first, then the bodies.
pub(super) async fn read(files: &Files, call: &Call, download: &Download) -> Result<Vec<ReadFile>> {
    let operation = Operation::ReadFiles;
    let count = download.files().len();
    let work_dir = files.spec.work_dir();
    let mut worker = Worker::start(call, &files.session, operation, work_dir, 2 * count).await?;
    let looks = download.files().iter().map(|(path, _)| {
        let path = words::text(path);
        (Item::Look { path }, None)
    });
    worker.ask(0, looks.collect())?;
    let mut sizes = Vec::with_capacity(count);
    while sizes.len() < count {
        let (path, _) = &download.files()[sizes.len()];
        match worker.next(call).await? {
            Some(Said::Answer(_, Answer::Seen(seen))) => {
                sizes.push(readable(operation, path, seen.as_ref())?);
            }
            Some(Said::Answer(_, Answer::Fault(fault))) => {
                return Err(words::fault(operation, path, 0, &fault));
            }
            _ => return Err(unexpected(operation)),
        }
    }
    download
        .check_sizes(sizes)
        .map_err(|refusal| Error::refused(operation, refusal))?;
    let reads = download.files().iter().map(|(path, most)| {
        let path = words::text(path);
        let max_bytes = *most;
        (Item::Read { path, max_bytes }, None)
    });
    worker.ask(count, reads.collect())?;
    bodies(call, &mut worker, download).await
}

/// Takes in the bodies, under the limits once more: a file may have grown.
async fn bodies(call: &Call, worker: &mut Worker, download: &Download) -> Result<Vec<ReadFile>> {
    let operation = Operation::ReadFiles;
    let count = download.files().len();
    let mut spool = Spool::new();
    let mut opened: Vec<(Stat, u64)> = Vec::with_capacity(count);
    while let Some(said) = worker.next(call).await? {
        match said {
            Said::Data(bytes) => spool.push(&bytes).await.map_err(spool_failed)?,
            Said::Answer(item, answer) => {
                let (path, most) = &download.files()[item.saturating_sub(count)];
                match answer {
                    Answer::Opened(stat) => {
                        opened.push((stat, spool.len()));
                        let sizes = opened.iter().map(|(stat, _)| stat.size.unwrap_or(u64::MAX));
                        download
                            .check_sizes(sizes)
                            .map_err(|refusal| Error::refused(operation, refusal))?;
                    }
                    Answer::Done => {}
                    Answer::Fault(fault) => {
                        return Err(words::fault(operation, path, *most, &fault));
                    }
                    _ => return Err(unexpected(operation)),
                }
            }
        }
    }
    if opened.len() != count {
        return Err(unexpected(operation));
    }
    let spooled = spool.finish().await.map_err(spool_failed)?;
    let files = download.files().iter().zip(opened);
    Ok(files
        .map(|((path, _), (stat, start))| {
            let content = spooled.part(start, stat.size.unwrap_or(0));
            ReadFile::new(path.clone(), words::stat(&stat), content)
        })
        .collect())
}

/// The size of what may be read.
pub(super) fn readable(operation: Operation, path: &GuestPath, seen: Option<&Stat>) -> Result<u64> {
    let why = match seen {
        None => FileRefusal::Missing,
        Some(stat) => match (stat.kind, stat.size) {
            (FileKind::File, Some(size)) => return Ok(size),
            (FileKind::Directory, _) => FileRefusal::IsDirectory,
            (FileKind::Link, _) => FileRefusal::Link,
            _ => FileRefusal::NotRegular {
                kind: words::stat(stat).kind,
            },
        },
    };
    Err(Error::refused(operation, path.refused(why)))
}

pub(super) fn spool_failed(error: std::io::Error) -> Error {
    Spool::failed(Operation::ReadFiles, error)
        .reopen()
        .phase(Phase::Transfer)
        .build()
}
