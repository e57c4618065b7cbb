//! Tar streams as docker speaks them: a decoder of what an engine sends, and
//! the few headers that it is sent.
//!
//! Both are pure: they neither read nor write anything, and hold no body. The
//! layout of a header is the `tar` crate's; what is here is what surrounds it
//! in a stream that may be hostile. Formats are POSIX.1-2017 pax (which
//! includes ustar), and GNU's long names where an engine writes them.

mod decode;
mod encode;

pub use self::decode::{Decoder, Entry, EntryKind, Event, TarError};
pub use self::encode::{END, NewEntry, NewEntryKind, Unencodable, encode_header, padding};

/// Every header, and every multiple that a body is filled up to, in bytes.
pub(crate) const BLOCK: usize = 512;

/// When a file was modified, counted from the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a moment has no other parts")]
pub struct ModifiedAt {
    /// Whole seconds, rounded towards the past.
    pub seconds: i64,
    /// Nanoseconds after them, below 1,000,000,000.
    pub nanos: u32,
}
