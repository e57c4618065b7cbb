//! From bytes to entries.

use bytes::{Buf as _, Bytes, BytesMut};
use tar::Header;
use thiserror::Error;

use super::pax::{self, Overrides};
use super::{BLOCK, ModifiedAt, fill};

/// Most bytes of names and records before one entry.
const MOST_METADATA: u64 = 64 * 1024;

/// Most headers that one entry may have, its own included.
const MOST_HEADERS: usize = 32;

/// A push decoder of a tar stream.
///
/// It is fed bytes as they come, and gives events as soon as they are whole.
/// What it holds is bounded, whatever the stream says: one header, 64 KiB of
/// names and records, and what was fed and not yet taken.
#[derive(Debug)]
pub struct Decoder {
    fed: Bytes,
    /// A header or metadata that is not yet whole.
    partial: BytesMut,
    state: State,
    preface: Preface,
}

#[derive(Debug)]
enum State {
    /// Between entries.
    Header,
    /// In what is said of an entry before it.
    Metadata(Metadata, usize),
    /// In a body.
    Body {
        left: u64,
        fill: usize,
    },
    /// Behind a body.
    Fill(usize),
    /// Behind the first of the two blocks that end an archive.
    HalfEnded,
    Ended,
    Failed(TarError),
}

#[derive(Debug, Clone, Copy)]
enum Metadata {
    Records,
    GlobalRecords,
    LongName,
    LongLink,
}

/// What was said of an entry before its own header.
#[derive(Debug, Default)]
struct Preface {
    headers: usize,
    bytes: u64,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    overrides: Overrides,
    /// Whether any of it was about the next entry.
    is_about_entry: bool,
}

/// What a stream consists of, in order: for each entry an
/// [`Entry`](Self::Entry), its body in pieces, and an
/// [`EntryEnd`](Self::EntryEnd); at last an [`End`](Self::End).
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
    /// Its name, exactly; neither empty nor with NUL.
    pub path: Vec<u8>,
    /// Where a link leads to; for anything else, what the stream says.
    pub link: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// How many bytes of body follow: 0 for what cannot have one.
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
    /// Anything else, by its type flag. It may have a body.
    Other(u8),
}

/// Why a stream is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TarError {
    /// It ends in the middle of the archive.
    #[error("the archive ends in the middle")]
    Truncated,
    /// A header is not one, or was damaged.
    #[error("a header of the archive has a wrong checksum")]
    BadChecksum,
    /// A number is none, or larger than any file.
    #[error("a header of the archive holds something else than a number")]
    BadNumber,
    /// A pax record is none.
    #[error("a record of the archive is malformed")]
    BadRecord,
    /// An entry has no name.
    #[error("an entry of the archive has no name")]
    EmptyName,
    /// A name holds NUL.
    #[error("a name in the archive holds NUL")]
    NulInName,
    /// More is said of one entry than there is room for.
    #[error("the archive says more than {MOST_METADATA} bytes of one entry")]
    TooMuchMetadata,
    /// More headers than an entry can need.
    #[error("an entry of the archive has more than {MOST_HEADERS} headers")]
    TooManyHeaders,
    /// Something is said of an entry that does not come.
    #[error("the archive describes an entry that does not follow")]
    MissingEntry,
    /// The archive goes on behind the first block of its end.
    #[error("the archive goes on behind half of its end")]
    BadEnd,
    /// Files with holes are not read.
    #[error("the archive holds a sparse file")]
    Sparse,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self {
            fed: Bytes::new(),
            partial: BytesMut::new(),
            state: State::Header,
            preface: Preface::default(),
        }
    }

    /// Gives it the next bytes of the stream. Take out every event first:
    /// otherwise what is left has to be copied.
    pub fn feed(&mut self, bytes: Bytes) {
        if self.fed.is_empty() {
            self.fed = bytes;
        } else {
            self.fed = [&self.fed[..], &bytes[..]].concat().into();
        }
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
        let event = self.advance();
        if let Err(error) = event {
            self.state = State::Failed(error);
            self.fed = Bytes::new();
        }
        event
    }

    /// Says that the stream has ended.
    ///
    /// # Errors
    ///
    /// [`TarError::Truncated`] unless the archive was complete, or what was
    /// wrong before that.
    pub fn finish(&self) -> Result<(), TarError> {
        match self.state {
            State::Ended => Ok(()),
            State::Failed(error) => Err(error),
            _ => Err(TarError::Truncated),
        }
    }

    fn advance(&mut self) -> Result<Option<Event>, TarError> {
        loop {
            match self.state {
                State::Header => {
                    let Some(block) = self.whole(BLOCK) else {
                        return Ok(None);
                    };
                    if let Some(entry) = self.header(&block)? {
                        return Ok(Some(Event::Entry(entry)));
                    }
                }
                State::Metadata(what, size) => {
                    let Some(mut bytes) = self.whole(size + fill(size as u64)) else {
                        return Ok(None);
                    };
                    bytes.truncate(size);
                    self.preface.take(what, &bytes)?;
                    self.state = State::Header;
                }
                State::Body { left: 0, fill } => self.state = State::Fill(fill),
                State::Body { left, fill } => {
                    if self.fed.is_empty() {
                        return Ok(None);
                    }
                    let take = usize::try_from(left)
                        .map_or(self.fed.len(), |left| left.min(self.fed.len()));
                    let left = left - take as u64;
                    self.state = State::Body { left, fill };
                    return Ok(Some(Event::Data(self.fed.split_to(take))));
                }
                State::Fill(0) => {
                    self.state = State::Header;
                    return Ok(Some(Event::EntryEnd));
                }
                State::Fill(left) => {
                    if self.fed.is_empty() {
                        return Ok(None);
                    }
                    let skip = left.min(self.fed.len());
                    self.fed.advance(skip);
                    self.state = State::Fill(left - skip);
                }
                State::HalfEnded => {
                    let Some(block) = self.whole(BLOCK) else {
                        return Ok(None);
                    };
                    if !is_zero(&block) {
                        return Err(TarError::BadEnd);
                    }
                    self.state = State::Ended;
                    return Ok(Some(Event::End));
                }
                State::Ended => {
                    self.fed.clear();
                    return Ok(None);
                }
                State::Failed(error) => return Err(error),
            }
        }
    }

    /// Exactly this many bytes, as soon as they are there.
    fn whole(&mut self, size: usize) -> Option<Bytes> {
        if self.partial.is_empty() && self.fed.len() >= size {
            return Some(self.fed.split_to(size));
        }
        let take = (size - self.partial.len()).min(self.fed.len());
        self.partial.extend_from_slice(&self.fed.split_to(take));
        (self.partial.len() == size).then(|| self.partial.split().freeze())
    }

    /// Reads a header, and gives the entry if it is one's own.
    fn header(&mut self, block: &[u8]) -> Result<Option<Entry>, TarError> {
        if is_zero(block) {
            if self.preface.is_about_entry {
                return Err(TarError::MissingEntry);
            }
            self.state = State::HalfEnded;
            return Ok(None);
        }
        let header = Header::from_byte_slice(block);
        let expected = number(&header.as_old().cksum)?;
        if expected != checksum(block) {
            return Err(TarError::BadChecksum);
        }
        self.preface.headers += 1;
        if self.preface.headers > MOST_HEADERS {
            return Err(TarError::TooManyHeaders);
        }
        let what = match header.as_old().linkflag[0] {
            b'x' => Metadata::Records,
            b'g' => Metadata::GlobalRecords,
            b'L' => Metadata::LongName,
            b'K' => Metadata::LongLink,
            _ => return self.entry(header).map(Some),
        };
        let size = number(&header.as_old().size)?;
        let size = self.preface.announce(what, size)?;
        self.state = State::Metadata(what, size);
        Ok(None)
    }

    fn entry(&mut self, header: &Header) -> Result<Entry, TarError> {
        let preface = std::mem::take(&mut self.preface);
        let overrides = preface.overrides;
        let fields = header.as_old();
        let own_name = || header.path_bytes().into_owned();
        let path = overrides
            .path
            .or(preface.long_name)
            .unwrap_or_else(own_name);
        if path.is_empty() {
            return Err(TarError::EmptyName);
        }
        let own_link = || text(&fields.linkname).to_vec();
        let kind = EntryKind::of(fields.linkflag[0], &path)?;
        let size = match overrides.size {
            Some(size) => size,
            None => number(&fields.size)?,
        };
        // As every reader does: what these announce is not there.
        let size = if kind.has_body() { size } else { 0 };
        if i64::try_from(size).is_err() {
            return Err(TarError::BadNumber);
        }
        let entry = Entry {
            path,
            link: overrides
                .link
                .or(preface.long_link)
                .unwrap_or_else(own_link),
            kind,
            size,
            mode: u32::try_from(number(&fields.mode)? & 0o7777).unwrap_or_default(),
            uid: overrides.uid.map_or_else(|| number(&fields.uid), Ok)?,
            gid: overrides.gid.map_or_else(|| number(&fields.gid), Ok)?,
            modified: match overrides.modified {
                Some(modified) => modified,
                None => ModifiedAt {
                    seconds: signed(&fields.mtime)?,
                    nanos: 0,
                },
            },
        };
        self.state = State::Body {
            left: size,
            fill: fill(size),
        };
        Ok(entry)
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Preface {
    /// Makes room for metadata of this size, if there is room.
    fn announce(&mut self, what: Metadata, size: u64) -> Result<usize, TarError> {
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MOST_METADATA {
            return Err(TarError::TooMuchMetadata);
        }
        self.is_about_entry |= !matches!(what, Metadata::GlobalRecords);
        usize::try_from(size).map_err(|_| TarError::TooMuchMetadata)
    }

    fn take(&mut self, what: Metadata, bytes: &[u8]) -> Result<(), TarError> {
        match what {
            Metadata::Records => self.overrides.read(bytes)?,
            // No engine sends them. As in its own reader, they change nothing.
            Metadata::GlobalRecords => pax::check(bytes)?,
            Metadata::LongName => self.long_name = Some(long(bytes)?),
            Metadata::LongLink => self.long_link = Some(long(bytes)?),
        }
        Ok(())
    }
}

impl EntryKind {
    fn of(flag: u8, path: &[u8]) -> Result<Self, TarError> {
        Ok(match flag {
            // Before there was a flag for directories.
            0 if path.ends_with(b"/") => Self::Directory,
            0 | b'0' | b'7' => Self::File,
            b'1' => Self::HardLink,
            b'2' => Self::Symlink,
            b'3' => Self::CharDevice,
            b'4' => Self::BlockDevice,
            b'5' => Self::Directory,
            b'6' => Self::Fifo,
            b'S' => return Err(TarError::Sparse),
            other => Self::Other(other),
        })
    }

    fn has_body(self) -> bool {
        matches!(self, Self::File | Self::Other(_))
    }
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// The sum of all bytes, in which those of the sum itself are spaces.
fn checksum(block: &[u8]) -> u64 {
    let sum_field = 148..156;
    let value = |(at, byte): (usize, &u8)| match sum_field.contains(&at) {
        true => u64::from(b' '),
        false => u64::from(*byte),
    };
    block.iter().enumerate().map(value).sum()
}

/// A text up to its NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A long name, which ends with one NUL or with its size.
fn long(bytes: &[u8]) -> Result<Vec<u8>, TarError> {
    let name = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if name.contains(&0) {
        return Err(TarError::NulInName);
    }
    Ok(name.to_vec())
}

/// A number that cannot be negative.
fn number(field: &[u8]) -> Result<u64, TarError> {
    u64::try_from(signed(field)?).map_err(|_| TarError::BadNumber)
}

/// A number of a header: octal digits between spaces and NULs, or GNU's
/// binary form, in which the first bit is set and the rest is two's
/// complement. A field that is empty is zero.
fn signed(field: &[u8]) -> Result<i64, TarError> {
    if let [first @ 0x80..=0xff, rest @ ..] = field {
        // The sign is the second bit.
        let start = i128::from(first & 0x3f) - i128::from(first & 0x40);
        let push = |value: i128, byte: &u8| value.checked_mul(256)?.checked_add((*byte).into());
        let value = rest.iter().try_fold(start, push);
        return value
            .and_then(|value| i64::try_from(value).ok())
            .ok_or(TarError::BadNumber);
    }
    let digits = text(field).trim_ascii();
    let push = |value: i64, digit: &u8| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add((digit - b'0').into()),
        _ => None,
    };
    digits.iter().try_fold(0, push).ok_or(TarError::BadNumber)
}
