//! Content set aside, in memory or in an unnamed temporary file.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::content::FileContent;
use crate::error::{Error, ErrorKind, Operation};

/// Most bytes that one spool keeps in memory: 1 MiB. What comes after that,
/// and what was there, is in an unnamed temporary file.
const IN_MEMORY: usize = 1024 * 1024;

/// Takes content in, one piece after another.
///
/// A spool serves a whole batch, so that a batch of many files takes no more
/// memory than one file does.
#[derive(Debug, Default)]
pub struct Spool {
    memory: BytesMut,
    file: Option<File>,
    len: u64,
}

/// Content that was taken in, from which any part can be had.
#[derive(Debug, Clone)]
pub struct Spooled(Kept);

/// Where it is kept.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    Memory(Bytes),
    File(Arc<std::fs::File>),
}

impl Spool {
    /// An empty one. Nothing is made before there is more than 1 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The error of an operation whose content could not be set aside.
    #[must_use]
    pub fn failed(operation: Operation, error: io::Error) -> Error {
        Error::new(ErrorKind::Unavailable, operation)
            .message(format!(
                "content could not be set aside in the host's temporary directory: {error}; free \
                 space there, or set TMPDIR"
            ))
            .source(error)
            .build()
    }

    /// Bytes taken in so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes in a piece.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be made or written, such as on a full disk.
    ///
    /// Cancel safety: not safe; a part may have been taken in.
    pub async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes).await?;
        } else if self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
        } else {
            let file = tokio::task::spawn_blocking(tempfile::tempfile).await??;
            let file = self.file.insert(File::from_std(file));
            file.write_all(&self.memory).await?;
            file.write_all(bytes).await?;
            self.memory = BytesMut::new();
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// What was still to be written could not be.
    ///
    /// Cancel safety: not safe; the content is lost.
    pub async fn finish(self) -> io::Result<Spooled> {
        let Some(mut file) = self.file else {
            return Ok(Spooled(Kept::Memory(self.memory.freeze())));
        };
        file.flush().await?;
        Ok(Spooled(Kept::File(Arc::new(file.into_std().await))))
    }
}

impl Spooled {
    /// A part: `len` bytes from `start` on, which must have been taken in.
    #[must_use]
    pub fn part(&self, start: u64, len: u64) -> FileContent {
        FileContent::of(self.0.clone(), start, len)
    }
}

impl Kept {
    /// Up to `most` bytes from `start` on; blocks only on a file, in a thread for that.
    pub(super) async fn read_at(&self, start: u64, most: usize) -> io::Result<Bytes> {
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(start)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let end = start.saturating_add(most).min(bytes.len());
                Ok(bytes.slice(start..end))
            }
            Self::File(file) => {
                let file = Arc::clone(file);
                let read = tokio::task::spawn_blocking(move || {
                    let mut piece = vec![0; most];
                    let read = file.read_at(&mut piece, start)?;
                    piece.truncate(read);
                    Ok::<_, io::Error>(Bytes::from(piece))
                });
                read.await?
            }
        }
    }
}
