//! Tar streams as docker speaks them: a decoder of what an engine sends, and
//! the few headers that it is sent.
//!
//! Both are pure: they neither read nor write anything, and hold no body. The
//! layout of a header is the `tar` crate's; what is here is what surrounds it
//! in a stream that may be hostile. Formats are pax (POSIX.1-2017, which
//! includes ustar), and GNU's long names where an engine sends them.
//!
//! ```
//! use bytes::Bytes;
//! use docker_driver::tar::{self, Decoder, Event, ModifiedAt, NewEntry, NewEntryKind};
//!
//! let entry = NewEntry {
//!     path: b"notes/a.txt".to_vec(),
//!     kind: NewEntryKind::File,
//!     size: 5,
//!     mode: 0o644,
//!     uid: 1000,
//!     gid: 1000,
//!     modified: ModifiedAt::default(),
//! };
//! let mut decoder = Decoder::new();
//! for part in [
//!     tar::encode_header(&entry)?,
//!     Bytes::from_static(b"hello"),
//!     Bytes::from_static(tar::padding(5)),
//!     Bytes::from_static(tar::END),
//! ] {
//!     decoder.feed(part);
//!     while let Some(event) = decoder.next()? {
//!         if let Event::Entry(entry) = event {
//!             assert_eq!((&entry.path[..], entry.size), (&b"notes/a.txt"[..], 5));
//!         }
//!     }
//! }
//! decoder.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encode;
mod pax;
#[cfg(test)]
mod tests;

pub use self::decode::{Decoder, Entry, EntryKind, Event, TarError};
pub use self::encode::{END, NewEntry, NewEntryKind, Unencodable, encode_header, padding};

/// Every header, and every multiple that a body is filled up to, in bytes.
const BLOCK: usize = 512;

/// When a file was modified, counted from the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a moment has no other parts")]
pub struct ModifiedAt {
    /// Whole seconds, rounded towards the past.
    pub seconds: i64,
    /// Nanoseconds after them, below 1,000,000,000.
    pub nanos: u32,
}

/// How many bytes fill a body of this size up to whole blocks.
fn fill(size: u64) -> usize {
    let over = (size % BLOCK as u64) as usize;
    (BLOCK - over) % BLOCK
}
