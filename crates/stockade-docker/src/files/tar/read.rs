//! Reading: tar streams out of a held sandbox.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use docker_driver::tar::{Decoder, Entry, EntryKind as TarKind, Event};
use docker_driver::{CallErrorKind, Hold};
use stockade::files::{Download, EntryKind, FileStat, GuestPath, ReadFile, Spool};
use stockade::{Call, Error, ErrorKind, FileRefusal, Operation, Phase, Result};

use super::check::{self, READ, SEARCH};
use super::plan::{self, Copy, Step};
use super::{copy_failed, says_nothing, strange};
use crate::files::Files;
use crate::files::guest::{readable, spool_failed};
use crate::files::look::{Held as Bound, look};
use crate::files::words;
use crate::hold::Held;

const OPERATION: Operation = Operation::ReadFiles;

/// Reads files.
pub(in crate::files) async fn read(
    files: &Files,
    call: &Call,
    download: Download,
) -> Result<Vec<ReadFile>> {
    let planned = plan(files, call, &download).await?;
    // From the pause on it runs to its end, whoever waits: the thaw does.
    let (files, call) = (files.clone(), call.clone());
    let read = tokio::spawn(async move { held(&files, &call, &download, planned).await });
    read.await.unwrap_or_else(|error| {
        Err(Error::new(ErrorKind::Internal, OPERATION)
            .message("the task that read files ended")
            .source(error)
            .build())
    })
}

/// What the guest says: early refusals, and which copies to make. A guest
/// that cannot be asked says nothing, and each file is a copy.
async fn plan(files: &Files, call: &Call, download: &Download) -> Result<Vec<Copy>> {
    let paths: Vec<GuestPath> = download
        .files()
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    let mounts = files.mounts(call).await?;
    plan::check_mounts(files.spec.work_dir(), &mounts, &paths)
        .map_err(|refusal| Error::refused(OPERATION, refusal))?;
    let shared = plan::shared(&paths);
    let look = match look(files, call, OPERATION, &paths, &shared).await {
        Ok(look) => look,
        Err(error) if says_nothing(&error) => {
            return Ok((0..paths.len()).map(Copy::File).collect());
        }
        Err(error) => return Err(error),
    };
    let mut sizes = Vec::with_capacity(paths.len());
    for (path, seen) in paths.iter().zip(look.seen) {
        match seen {
            Ok(stat) => sizes.push(readable(OPERATION, path, stat.as_ref())?),
            Err(fault) => return Err(words::fault(OPERATION, path, 0, &fault)),
        }
    }
    download
        .check_sizes(sizes.iter().copied())
        .map_err(|refusal| Error::refused(OPERATION, refusal))?;
    let measured = shared.into_iter().zip(look.held);
    let measured: BTreeMap<_, _> = measured
        .filter_map(|(path, held)| Some((path, held?)))
        .collect();
    Ok(plan::copies(&paths, &sizes, &measured))
}

async fn held(
    files: &Files,
    call: &Call,
    download: &Download,
    copies: Vec<Copy>,
) -> Result<Vec<ReadFile>> {
    let session = &files.session;
    let held = Held::begin(session.engine(), call, OPERATION, session.id()).await?;
    let read = Reading::new(files, held.hold(), download);
    let read = call.bound(read.run(copies)).await;
    if let Err(error) = held.release(OPERATION).await {
        let lost = session.give_up("it could not be thawed").await;
        return Err(lost.reopen().source(error).build());
    }
    read.map_err(|why| {
        Error::interrupted(OPERATION, why)
            .phase(Phase::Transfer)
            .build()
    })?
}

/// Files as they come in.
struct Reading<'a> {
    files: &'a Files,
    hold: &'a Hold,
    download: &'a Download,
    spool: Spool,
    /// What was read, and where in the spool it begins.
    done: Vec<Option<(FileStat, u64)>>,
    /// Bytes of all files so far.
    total: u64,
}

impl<'a> Reading<'a> {
    fn new(files: &'a Files, hold: &'a Hold, download: &'a Download) -> Self {
        Self {
            files,
            hold,
            download,
            spool: Spool::new(),
            done: vec![None; download.files().len()],
            total: 0,
        }
    }

    async fn run(mut self, copies: Vec<Copy>) -> Result<Vec<ReadFile>> {
        self.check_parents(&copies).await?;
        for copy in copies {
            match copy {
                Copy::File(number) => self.file(number).await?,
                Copy::Directory { path, files, most } => {
                    self.directory(&path, &files, most).await?;
                    for number in files {
                        if self.done[number].is_none() {
                            // The directories between were not looked at.
                            self.check_ways([&self.download.files()[number].0]).await?;
                            self.file(number).await?;
                        }
                    }
                }
            }
        }
        let spooled = self.spool.finish().await.map_err(spool_failed)?;
        let asked = self.download.files().iter().zip(self.done);
        asked
            .map(|((path, _), done)| {
                let (stat, start) = done.ok_or_else(|| missing(path))?;
                let content = spooled.part(start, stat.size.unwrap_or(0));
                Ok(ReadFile::new(path.clone(), stat, content))
            })
            .collect()
    }

    /// Everything on the way must be a directory. A directory that is copied
    /// as a whole shows that by its own first header.
    async fn check_parents(&self, copies: &[Copy]) -> Result<()> {
        let ways = copies.iter().map(|copy| match copy {
            Copy::File(number) => &self.download.files()[*number].0,
            Copy::Directory { path, .. } => path,
        });
        self.check_ways(ways).await
    }

    async fn check_ways<'p>(&self, ways: impl IntoIterator<Item = &'p GuestPath>) -> Result<()> {
        let work_dir = self.files.spec.work_dir();
        let mut steps: Vec<Step> = plan::above(&self.files.spec);
        steps.extend(plan::ancestors(work_dir, ways));
        let rights = self.files.rights();
        let found = check::directories(self.hold, OPERATION, rights, &steps).await?;
        let lost = self.download.files().iter().find(|(path, _)| {
            let mut missing = found.missing.iter();
            missing.any(|directory| path.is_below(directory))
        });
        lost.map_or(Ok(()), |(path, _)| Err(missing(path)))
    }

    /// One file by a copy of its own.
    async fn file(&mut self, number: usize) -> Result<()> {
        let (path, _) = &self.download.files()[number];
        let absolute = path.absolute(self.files.spec.work_dir());
        let absolute = check::container_path(OPERATION, &absolute)?;
        let mut out = self.hold.copy_out(&absolute).await.map_err(failed)?;
        let mut decoder = Decoder::new();
        let mut begun = false;
        loop {
            match decoder.next().map_err(|error| strange(OPERATION, error))? {
                Some(Event::Entry(entry)) if !begun => {
                    begun = true;
                    self.begin(number, &entry)?;
                }
                Some(Event::Entry(_)) => return Err(strange(OPERATION, "a file of two entries")),
                Some(Event::Data(bytes)) => self.take(&bytes).await?,
                Some(Event::EntryEnd | Event::End) => {}
                None => match out.next().await.map_err(failed)? {
                    Some(bytes) => decoder.feed(bytes),
                    None => break,
                },
            }
        }
        match out.finish().await {
            Err(error) if error.kind() == CallErrorKind::NoSuchPath => return Err(missing(path)),
            finished => finished.map_err(failed)?,
        }
        decoder.finish().map_err(|error| strange(OPERATION, error))
    }

    /// Several files by a copy of a directory above them. Files that it did not
    /// show as regular ones, or not within the bound, or below a directory that
    /// the guest may not enter, are left to copies of their own, which say what
    /// is wrong.
    async fn directory(&mut self, path: &GuestPath, files: &[usize], most: Bound) -> Result<()> {
        let wanted: BTreeMap<Vec<u8>, usize> = files
            .iter()
            .map(|&number| {
                let (wanted, _) = &self.download.files()[number];
                (below(path, wanted), number)
            })
            .collect();
        let absolute = path.absolute(self.files.spec.work_dir());
        let absolute = check::container_path(OPERATION, &absolute)?;
        let mut out = self.hold.copy_out(&absolute).await.map_err(failed)?;
        let mut decoder = Decoder::new();
        let (mut entries, mut bytes) = (0, 0_u64);
        let mut left = files.len();
        let mut current = None;
        let mut closed: Vec<Vec<u8>> = Vec::new();
        loop {
            match decoder.next().map_err(|error| strange(OPERATION, error))? {
                Some(Event::Entry(entry)) => {
                    entries += 1;
                    bytes = bytes.saturating_add(entry.size);
                    if entries == 1 {
                        self.check_directory(&entry, path, files)?;
                    }
                    if entries > most.entries || bytes > most.bytes {
                        return out.stop().await.map_err(failed);
                    }
                    let name = inside(&entry.path);
                    if entries > 1
                        && entry.kind == TarKind::Directory
                        && !self.files.rights().allow(&entry, SEARCH)
                    {
                        closed.push([name, b"/"].concat());
                    }
                    current = wanted
                        .get(name)
                        .copied()
                        .filter(|_| !closed.iter().any(|above| name.starts_with(above)))
                        .filter(|&number| entries > 1 && self.done[number].is_none())
                        .filter(|_| entry.kind == TarKind::File);
                    if let Some(number) = current {
                        self.begin(number, &entry)?;
                    }
                }
                Some(Event::Data(data)) if current.is_some() => self.take(&data).await?,
                Some(Event::EntryEnd) if current.take().is_some() => {
                    left -= 1;
                    if left == 0 {
                        return out.stop().await.map_err(failed);
                    }
                }
                Some(_) => {}
                None => match out.next().await.map_err(failed)? {
                    Some(bytes) => decoder.feed(bytes),
                    None => {
                        return match out.finish().await {
                            // It went after it was looked at: each of its
                            // files says so by itself.
                            Err(error) if error.kind() == CallErrorKind::NoSuchPath => Ok(()),
                            finished => finished.map_err(failed),
                        };
                    }
                },
            }
        }
    }

    /// The header of a directory that is copied as a whole.
    fn check_directory(&self, entry: &Entry, path: &GuestPath, files: &[usize]) -> Result<()> {
        let why = match entry.kind {
            TarKind::Directory if self.files.rights().allow(entry, SEARCH) => return Ok(()),
            TarKind::Directory => FileRefusal::Denied,
            TarKind::Symlink => FileRefusal::LinkedParent {
                at: path.to_string(),
            },
            _ => FileRefusal::ParentNotDirectory {
                at: path.to_string(),
            },
        };
        let first = files
            .first()
            .map(|&number| &self.download.files()[number].0);
        Err(Error::refused(
            OPERATION,
            first.unwrap_or(path).refused(why),
        ))
    }

    /// A file's header: what it is and how large decides before its body.
    fn begin(&mut self, number: usize, entry: &Entry) -> Result<()> {
        let (path, most) = &self.download.files()[number];
        let refuse = |why| Err(Error::refused(OPERATION, path.refused(why)));
        match kind(entry.kind) {
            EntryKind::File => {}
            EntryKind::Directory => return refuse(FileRefusal::IsDirectory),
            EntryKind::Link => return refuse(FileRefusal::Link),
            kind => return refuse(FileRefusal::NotRegular { kind }),
        }
        if !self.files.rights().allow(entry, READ) {
            return refuse(FileRefusal::Denied);
        }
        let size = entry.size;
        if size > *most {
            return refuse(FileRefusal::TooLarge { size, most: *most });
        }
        self.total = self.total.saturating_add(size);
        if self.total > self.download.max_total_bytes() {
            return refuse(FileRefusal::BatchTooLarge {
                size: self.total,
                most: self.download.max_total_bytes(),
            });
        }
        let stat = FileStat::new(
            EntryKind::File,
            Some(size),
            entry.mode & 0o7777,
            modified(entry),
        );
        self.done[number] = Some((stat, self.spool.len()));
        Ok(())
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.spool.push(bytes).await.map_err(spool_failed)
    }
}

/// A path below a directory, as a copy of that directory names it.
fn below(directory: &GuestPath, path: &GuestPath) -> Vec<u8> {
    if directory.is_work_dir() {
        return path.as_bytes().to_vec();
    }
    let above = directory.as_bytes().len() + 1;
    path.as_bytes().get(above..).unwrap_or_default().to_vec()
}

/// The name of an entry below the copied directory, which the stream names
/// first; empty for that directory itself.
fn inside(path: &[u8]) -> &[u8] {
    let slash = path.iter().position(|&byte| byte == b'/');
    let rest = slash.map_or(&[][..], |slash| &path[slash + 1..]);
    rest.strip_suffix(b"/").unwrap_or(rest)
}

fn kind(kind: TarKind) -> EntryKind {
    match kind {
        TarKind::File => EntryKind::File,
        TarKind::Directory => EntryKind::Directory,
        TarKind::Symlink => EntryKind::Link,
        TarKind::CharDevice => EntryKind::CharDevice,
        TarKind::BlockDevice => EntryKind::BlockDevice,
        TarKind::Fifo => EntryKind::Fifo,
        TarKind::HardLink | TarKind::Other(_) => EntryKind::Other,
    }
}

/// Times before 1970 are 1970.
fn modified(entry: &Entry) -> SystemTime {
    let seconds = u64::try_from(entry.modified.seconds).unwrap_or(0);
    let since = Duration::new(seconds, entry.modified.nanos.min(999_999_999));
    let time = SystemTime::UNIX_EPOCH.checked_add(since);
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn missing(path: &GuestPath) -> Error {
    Error::refused(OPERATION, path.refused(FileRefusal::Missing))
}

fn failed(error: docker_driver::CallError) -> Error {
    copy_failed(OPERATION, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_named_below_the_copied_directory() {
        for (path, name) in [
            (b"work/a".as_slice(), b"a".as_slice()),
            (b"work/a/b", b"a/b"),
            (b"work/a/", b"a"),
            (b"work/", b""),
            (b"work", b""),
            (b"", b""),
        ] {
            assert_eq!(inside(path), name, "{path:?}");
        }
        let path = GuestPath::new("a/b/c").unwrap();
        assert_eq!(below(&GuestPath::work_dir(), &path), b"a/b/c");
        assert_eq!(below(&GuestPath::new("a").unwrap(), &path), b"b/c");
    }
}
