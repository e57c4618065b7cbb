//! From bytes to entries.

use bytes::Bytes;
use thiserror::Error;

use super::ModifiedAt;

/// A push decoder of a tar stream.
///
/// It is fed bytes as they come, and gives events as soon as they are whole.
/// What it holds is bounded, whatever the stream says: 64 KiB of metadata for
/// an entry, and what was fed and not yet taken.
#[derive(Debug, Default)]
pub struct Decoder {
    fed: Bytes,
}

/// What a stream consists of, in order: for each entry an [`Entry`], its body
/// in pieces, and an [`EntryEnd`](Self::EntryEnd); at last an
/// [`End`](Self::End).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a stream has no other parts")]
pub enum Event {
    /// An entry begins.
    Entry(Entry),
    /// The next piece of its body; never empty.
    Data(Bytes),
    /// Its body is complete.
    EntryEnd,
    /// The archive is complete. What follows in the stream is ignored.
    End,
}

/// One entry, as the stream describes it. Nothing of it is to be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name, exactly.
    pub path: Vec<u8>,
    /// Where a link leads to; empty for anything else.
    pub link: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// How many bytes of body follow: 0 for anything but files.
    pub size: u64,
    /// Permissions, with the bits for setuid, setgid and sticky.
    pub mode: u32,
    /// Its owner.
    pub uid: u64,
    /// Its group.
    pub gid: u64,
    /// When it was modified.
    pub modified: ModifiedAt,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "`Other` is everything else")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Another name of an earlier entry.
    HardLink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// Anything else, by its type flag.
    Other(u8),
}

/// Why a stream is refused. After an error the decoder gives nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TarError {
    /// It ends in the middle of the archive.
    #[error("the archive ends in the middle")]
    Truncated,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives it the next bytes of the stream. Take every event out first:
    /// bytes that are not yet decoded are kept.
    pub fn feed(&mut self, bytes: Bytes) {
        self.fed = bytes;
    }

    /// The next event, or `None` until it is fed more.
    ///
    /// # Errors
    ///
    /// What is wrong with the stream; the same for ever after.
    #[expect(
        clippy::should_implement_trait,
        reason = "the end of what was fed is not the end of the stream"
    )]
    pub fn next(&mut self) -> Result<Option<Event>, TarError> {
        Err(TarError::Truncated)
    }

    /// Says that the stream has ended.
    ///
    /// # Errors
    ///
    /// [`TarError::Truncated`] unless the archive was complete.
    pub fn finish(&self) -> Result<(), TarError> {
        Err(TarError::Truncated)
    }
}
