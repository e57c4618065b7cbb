//! From entries to bytes.

use bytes::Bytes;
use tar::{EntryType, Header};
use thiserror::Error;

use super::{BLOCK, ModifiedAt, fill, pax};

/// What ends an archive: two blocks of zeros.
pub const END: &[u8; 2 * BLOCK] = &[0; 2 * BLOCK];

/// Longest name: what Linux allows for a whole path, without the NUL.
const LONGEST_PATH: usize = 4095;

/// What the fields of a ustar header hold: so many octal digits.
const LARGEST_SIZE: u64 = 0o777_7777_7777;
const LARGEST_ID: u32 = 0o777_7777;

/// Setuid, setgid and sticky are never sent.
const PERMISSIONS: u32 = 0o777;

/// An entry that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "all of it must be said")]
pub struct NewEntry {
    /// Its name, relative: names of any bytes but NUL, separated by `/`.
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

/// What can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "nothing else is ever sent to an engine"
)]
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
    /// The path is empty, absolute, or has a name that is empty, `.` or `..`.
    #[error("the path of an entry is not a plain relative one")]
    NotPlain,
    /// The path holds NUL.
    #[error("the path of an entry holds NUL")]
    NulInPath,
    /// The path is longer than any system allows.
    #[error("the path of an entry is longer than {LONGEST_PATH} bytes")]
    PathTooLong,
    /// A directory has no body.
    #[error("a directory cannot have content")]
    DirectoryWithContent,
}

/// The header of an entry: all that comes before its body. A ustar header,
/// after pax records of what that cannot hold.
///
/// # Errors
///
/// What no archive should carry.
pub fn encode_header(entry: &NewEntry) -> Result<Bytes, Unencodable> {
    check(entry)?;
    let mut path = entry.path.clone();
    if entry.kind == NewEntryKind::Directory {
        path.push(b'/');
    }
    let mut header = Header::new_ustar();
    header.set_mode(entry.mode & PERMISSIONS);
    header.set_entry_type(match entry.kind {
        NewEntryKind::File => EntryType::Regular,
        NewEntryKind::Directory => EntryType::Directory,
    });
    let mut records = Vec::new();
    let name = &mut header.as_old_mut().name;
    if path.len() <= name.len() && path.is_ascii() {
        name[..path.len()].copy_from_slice(&path);
    } else {
        // A record carries raw bytes. Seen with an engine of version 28.5.2:
        // names that are not UTF-8 arrive exactly, though pax speaks of UTF-8.
        pax::write(&mut records, "path", &path);
        stand_in(&path, name);
    }
    header.set_size(of_header(&mut records, "size", entry.size, LARGEST_SIZE));
    let id = |records: &mut _, key, id: u32| of_header(records, key, id.into(), LARGEST_ID.into());
    header.set_uid(id(&mut records, "uid", entry.uid));
    header.set_gid(id(&mut records, "gid", entry.gid));
    match (u64::try_from(entry.modified.seconds), entry.modified.nanos) {
        (Ok(seconds @ ..=LARGEST_SIZE), 0) => header.set_mtime(seconds),
        _ => {
            pax::write(
                &mut records,
                "mtime",
                pax::moment_text(entry.modified).as_bytes(),
            );
            header.set_mtime(0);
        }
    }
    header.set_cksum();
    let mut bytes = Vec::with_capacity(BLOCK);
    if !records.is_empty() {
        bytes.extend_from_slice(records_header(records.len() as u64).as_bytes());
        bytes.extend_from_slice(&records);
        bytes.extend_from_slice(padding(records.len() as u64));
    }
    bytes.extend_from_slice(header.as_bytes());
    Ok(bytes.into())
}

/// What fills a body of this size up to whole blocks.
pub fn padding(size: u64) -> &'static [u8] {
    &END[..fill(size)]
}

fn check(entry: &NewEntry) -> Result<(), Unencodable> {
    let path = &entry.path;
    let is_plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    if path.contains(&0) {
        Err(Unencodable::NulInPath)
    } else if path.len() > LONGEST_PATH {
        Err(Unencodable::PathTooLong)
    } else if !path.split(|byte| *byte == b'/').all(is_plain) {
        Err(Unencodable::NotPlain)
    } else if entry.kind == NewEntryKind::Directory && entry.size != 0 {
        Err(Unencodable::DirectoryWithContent)
    } else {
        Ok(())
    }
}

/// What a header says in place of a name that it cannot hold. Who does not
/// read records gets a file with an odd name, and not an odd file.
fn stand_in(path: &[u8], name: &mut [u8]) {
    for (to, from) in name.iter_mut().zip(path) {
        *to = if from.is_ascii_alphanumeric() {
            *from
        } else {
            b'_'
        };
    }
}

/// What the header says of a number: all of it, or nothing because a record
/// does.
fn of_header(records: &mut Vec<u8>, key: &str, number: u64, largest: u64) -> u64 {
    if number <= largest {
        return number;
    }
    pax::write(records, key, number.to_string().as_bytes());
    0
}

fn records_header(size: u64) -> Header {
    let mut header = Header::new_ustar();
    let name = b"pax-records";
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(EntryType::XHeader);
    header.set_mode(0o644);
    header.set_size(size);
    for set in [Header::set_uid, Header::set_gid, Header::set_mtime] {
        set(&mut header, 0);
    }
    header.set_cksum();
    header
}
