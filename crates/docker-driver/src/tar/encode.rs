//! From entries to bytes.

use bytes::Bytes;
use thiserror::Error;

use super::{BLOCK, ModifiedAt};

/// What ends an archive: two blocks of zeros.
pub const END: &[u8; 2 * BLOCK] = &[0; 2 * BLOCK];

const ZEROS: &[u8; BLOCK] = &[0; BLOCK];

/// An entry that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "all of it must be said")]
pub struct NewEntry {
    /// Its name: names of any bytes but NUL, separated by `/`, relative. A
    /// directory's may end with `/` or not.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: NewEntryKind,
    /// How many bytes of body follow; 0 for a directory.
    pub size: u64,
    /// Permissions; only the lower nine bits are written.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// When it was modified.
    pub modified: ModifiedAt,
}

/// What is written: nothing else is ever sent to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "nothing else is ever written")]
pub enum NewEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Why an entry cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unencodable {
    /// The name is empty.
    #[error("the name of an entry is empty")]
    EmptyPath,
    /// The name holds NUL.
    #[error("the name of an entry holds NUL")]
    NulInPath,
    /// The name is longer than any system allows.
    #[error("the name of an entry is longer than 4095 bytes")]
    PathTooLong,
    /// A directory has no body.
    #[error("a directory cannot have content")]
    DirectoryWithContent,
}

/// The header of an entry: all that comes before its body.
///
/// # Errors
///
/// What no archive can carry.
pub fn encode_header(entry: &NewEntry) -> Result<Bytes, Unencodable> {
    let _ = entry;
    Err(Unencodable::EmptyPath)
}

/// What fills a body of this size up to whole blocks.
pub fn padding(size: u64) -> &'static [u8] {
    let over = (size % BLOCK as u64) as usize;
    &ZEROS[..(BLOCK - over) % BLOCK]
}
