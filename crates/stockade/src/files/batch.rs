//! What is written, checked whole before anything moves.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Content, FileContent, GuestPath, Spool};
use crate::error::{Error, Operation, Result};
use crate::limits::TransferLimits;
use crate::refusal::{FileRefusal, Refusal};

/// Permission bits that a file may be given; setuid, setgid and sticky are not.
const MODE: u32 = 0o777;

/// Latest time: Go counts nanoseconds in 63 bits, and docker takes a later one
/// for 1970.
const LATEST: Duration = Duration::from_secs(9_223_372_036);

/// Bytes that are read from a source at a time.
const PIECE: usize = 256 * 1024;

/// One file, or one directory, to be written.
#[derive(Debug)]
#[must_use]
pub struct FileWrite {
    path: GuestPath,
    /// Nothing for a directory.
    content: Option<Content>,
    mode: u32,
    modified: Option<SystemTime>,
}

/// A batch as a backend gets it: checked against every limit, and with its
/// content at hand, so that nothing of it waits for a caller.
#[derive(Debug, Clone)]
pub struct Upload {
    entries: Vec<UploadEntry>,
}

/// One entry of an [`Upload`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadEntry {
    /// Where; never the work directory itself, and never twice.
    pub path: GuestPath,
    /// What.
    pub kind: UploadKind,
    /// Permission bits, without setuid, setgid and sticky.
    pub mode: u32,
    /// When it was last changed.
    pub modified: SystemTime,
}

/// What an [`UploadEntry`] is.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_enums,
    reason = "what is written is a file or a directory"
)]
pub enum UploadKind {
    /// A file that replaces a file.
    File(FileContent),
    /// A directory that is made unless it is there.
    Directory,
}

impl FileWrite {
    /// A file of mode 0644, last changed now. It replaces a file of its name;
    /// its directories are made as needed.
    pub fn new(path: GuestPath, content: impl Into<Content>) -> Self {
        Self {
            path,
            content: Some(content.into()),
            mode: 0o644,
            modified: None,
        }
    }

    /// A directory of mode 0755, whose time is when it is made. One that is
    /// there stays as it is.
    pub fn directory(path: GuestPath) -> Self {
        Self {
            path,
            content: None,
            mode: 0o755,
            modified: None,
        }
    }

    /// Sets the permission bits; setuid, setgid and sticky are dropped.
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & MODE;
        self
    }

    /// Sets when a file was last changed. Times before 1970 are 1970, and later
    /// ones than 2262-04-11 are that day, the last that engines know.
    pub fn modified(mut self, time: SystemTime) -> Self {
        let latest = SystemTime::UNIX_EPOCH + LATEST;
        self.modified = Some(time.clamp(SystemTime::UNIX_EPOCH, latest));
        self
    }

    /// Where.
    #[must_use]
    pub const fn path(&self) -> &GuestPath {
        &self.path
    }
}

impl Upload {
    /// Checks a batch and takes in its content.
    pub(super) async fn prepare(files: Vec<FileWrite>, limits: &TransferLimits) -> Result<Self> {
        let refused = |refusal| Error::refused(Operation::WriteFiles, refusal);
        check_names(&files, limits).map_err(refused)?;
        let said = sizes(&files, limits).map_err(refused)?;
        let mut spool = Spool::new();
        let mut parts = Vec::with_capacity(files.len());
        for (file, said) in files.into_iter().zip(said) {
            let start = spool.len();
            let taken = match file.content {
                None => None,
                Some(Content::Bytes(bytes)) => Some(Taken::Bytes(bytes)),
                Some(Content::File(source)) => {
                    let source = tokio::fs::File::from_std(source);
                    take(&mut spool, &file.path, source, said).await?;
                    Some(Taken::Part(start, said))
                }
                Some(Content::Reader { from, .. }) => {
                    take(&mut spool, &file.path, from, said).await?;
                    Some(Taken::Part(start, said))
                }
            };
            parts.push((file.path, taken, file.mode, file.modified));
        }
        let spooled = spool.finish().await.map_err(spool_failed)?;
        let now = SystemTime::now();
        let entries = parts
            .into_iter()
            .map(|(path, taken, mode, modified)| UploadEntry {
                path,
                kind: match taken {
                    None => UploadKind::Directory,
                    Some(Taken::Bytes(bytes)) => UploadKind::File(FileContent::from_bytes(bytes)),
                    Some(Taken::Part(start, len)) => UploadKind::File(spooled.part(start, len)),
                },
                mode,
                modified: modified.unwrap_or(now),
            });
        Ok(Self {
            entries: entries.collect(),
        })
    }

    /// The entries, in the order in which they were given.
    #[must_use]
    pub fn entries(&self) -> &[UploadEntry] {
        &self.entries
    }
}

impl UploadEntry {
    /// An entry of these parts.
    #[must_use]
    pub const fn new(path: GuestPath, kind: UploadKind, mode: u32, modified: SystemTime) -> Self {
        Self {
            path,
            kind,
            mode,
            modified,
        }
    }

    /// Bytes of a file; 0 of a directory.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.kind {
            UploadKind::File(content) => content.len(),
            UploadKind::Directory => 0,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where the content of an entry was taken.
enum Taken {
    Bytes(bytes::Bytes),
    Part(u64, u64),
}

/// Rules of the paths alone.
fn check_names(files: &[FileWrite], limits: &TransferLimits) -> Result<(), Refusal> {
    let count = files.len() as u64;
    if count > limits.max_files {
        let most = limits.max_files;
        let path = files.last().map(|file| file.path.clone());
        return Err(path
            .unwrap_or_default()
            .refused(FileRefusal::TooManyFiles { count, most }));
    }
    let mut paths = BTreeSet::new();
    for file in files {
        if file.path.is_work_dir() {
            return Err(file.path.refused(FileRefusal::WorkDir));
        }
        if !paths.insert(&file.path) {
            return Err(file.path.refused(FileRefusal::Duplicate));
        }
    }
    let mut leaves = files.iter().filter(|file| file.content.is_some());
    let shadowed = leaves.find(|leaf| {
        // Paths sort with what is below them not always next to them (`a`,
        // `a.b`, `a/b`), so each ancestor of each path is looked up.
        files.iter().any(|file| file.path.is_below(&leaf.path))
    });
    match shadowed {
        Some(leaf) => Err(leaf.path.refused(FileRefusal::AlsoDirectory)),
        None => Ok(()),
    }
}

/// What each source says of its size, within the limits.
fn sizes(files: &[FileWrite], limits: &TransferLimits) -> Result<Vec<u64>, Refusal> {
    let mut total = 0_u64;
    let mut sizes = Vec::with_capacity(files.len());
    for file in files {
        let refuse = |why| Err(file.path.refused(why));
        let size = match &file.content {
            None => 0,
            Some(Content::Bytes(bytes)) => bytes.len() as u64,
            Some(Content::Reader { size, .. }) => *size,
            Some(Content::File(source)) => match source.metadata() {
                Ok(metadata) if metadata.is_file() => metadata.len(),
                Ok(_) => return refuse(FileRefusal::SourceNotRegular),
                Err(error) => return refuse(unreadable(&error)),
            },
        };
        if size > limits.max_bytes_per_file {
            let most = limits.max_bytes_per_file;
            return refuse(FileRefusal::TooLarge { size, most });
        }
        total = total.saturating_add(size);
        if total > limits.max_total_bytes {
            let most = limits.max_total_bytes;
            return refuse(FileRefusal::BatchTooLarge { size: total, most });
        }
        sizes.push(size);
    }
    Ok(sizes)
}

/// Reads a source to its end, which must be where it said.
async fn take(
    spool: &mut Spool,
    path: &GuestPath,
    mut source: impl AsyncRead + Unpin,
    said: u64,
) -> Result<()> {
    let refused = |why| Error::refused(Operation::WriteFiles, path.refused(why));
    let mut piece = vec![0; PIECE];
    let mut was = 0_u64;
    loop {
        let read = source.read(&mut piece).await;
        let read = read.map_err(|error| refused(unreadable(&error)))?;
        if read == 0 && was < said {
            return Err(refused(FileRefusal::SourceShort { said, was }));
        }
        if read == 0 {
            return Ok(());
        }
        was += read as u64;
        if was > said {
            return Err(refused(FileRefusal::SourceLong { said }));
        }
        spool.push(&piece[..read]).await.map_err(spool_failed)?;
    }
}

fn unreadable(error: &io::Error) -> FileRefusal {
    FileRefusal::SourceUnreadable {
        why: error.to_string(),
    }
}

fn spool_failed(error: io::Error) -> Error {
    Spool::failed(Operation::WriteFiles, error)
}
