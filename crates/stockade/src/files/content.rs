//! What is moved.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::spool::Kept;
use crate::backend::BoxFuture;

/// Bytes that are read at a time.
const PIECE: usize = 256 * 1024;

/// What a caller gives for one file.
#[non_exhaustive]
pub enum Content {
    /// These bytes.
    Bytes(Bytes),
    /// A regular file, from its start; its size is what it is when it is asked.
    File(std::fs::File),
    /// What a reader gives: exactly this many bytes.
    Reader {
        /// Bytes.
        size: u64,
        /// Where they come from.
        from: Box<dyn AsyncRead + Send + Unpin>,
    },
}

/// The content of a file: what was read, or what is to be written.
///
/// Kept in memory or in an unnamed temporary file of the host; clones share it.
#[derive(Clone)]
pub struct FileContent {
    kept: Kept,
    start: u64,
    len: u64,
}

/// Reads a [`FileContent`] from its start.
pub struct FileReader {
    content: FileContent,
    at: u64,
    piece: Bytes,
    reading: Option<BoxFuture<'static, io::Result<Bytes>>>,
}

impl Content {
    /// What a reader gives: exactly `size` bytes. It is read to its end before
    /// anything is sent.
    pub fn reader(size: u64, from: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::Reader {
            size,
            from: Box::new(from),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Content {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// Sizes only: the bytes are somebody's files.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::File(_) => f.write_str("File"),
            Self::Reader { size, .. } => write!(f, "Reader({size} bytes)"),
        }
    }
}

impl FileContent {
    pub(super) fn of(kept: Kept, start: u64, len: u64) -> Self {
        Self { kept, start, len }
    }

    /// These bytes.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Self {
        let len = bytes.len() as u64;
        Self::of(Kept::Memory(bytes), 0, len)
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Up to `most` bytes from `start` on; none at its end.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read.
    ///
    /// Cancel safety: safe.
    pub async fn read_at(&self, start: u64, most: usize) -> io::Result<Bytes> {
        let left = self.len.saturating_sub(start);
        let most = most.min(usize::try_from(left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(Bytes::new());
        }
        let bytes = self.kept.read_at(self.start + start, most).await?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }

    /// All of it, in memory.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read.
    ///
    /// Cancel safety: safe.
    pub async fn to_bytes(&self) -> io::Result<Bytes> {
        let mut whole = BytesMut::new();
        loop {
            let piece = self.read_at(whole.len() as u64, PIECE).await?;
            if piece.len() as u64 == self.len {
                return Ok(piece);
            }
            if piece.is_empty() {
                return Ok(whole.freeze());
            }
            whole.extend_from_slice(&piece);
        }
    }

    /// Writes all of it to a writer, in pieces of 256 KiB.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be read, or the writer fails.
    ///
    /// Cancel safety: not safe; a part may have been written.
    pub async fn copy_to(&self, writer: &mut (impl AsyncWrite + Unpin + ?Sized)) -> io::Result<()> {
        let mut at = 0;
        loop {
            let piece = self.read_at(at, PIECE).await?;
            if piece.is_empty() {
                return writer.flush().await;
            }
            writer.write_all(&piece).await?;
            at += piece.len() as u64;
        }
    }

    /// A reader from its start.
    #[must_use]
    pub fn reader(&self) -> FileReader {
        FileReader {
            content: self.clone(),
            at: 0,
            piece: Bytes::new(),
            reading: None,
        }
    }
}

/// Sizes only: the bytes are somebody's files.
impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileContent({} bytes)", self.len)
    }
}

impl AsyncRead for FileReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.piece.is_empty() {
            let reading = this.reading.get_or_insert_with(|| {
                let (content, at) = (this.content.clone(), this.at);
                Box::pin(async move { content.read_at(at, PIECE).await })
            });
            let read = ready!(reading.as_mut().poll(context));
            this.reading = None;
            this.piece = read?;
            this.at += this.piece.len() as u64;
        }
        let fits = this.piece.len().min(buffer.remaining());
        buffer.put_slice(&this.piece[..fits]);
        this.piece.advance(fits);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileReader({} of {} bytes)", self.at, self.content.len)
    }
}
