//! Files: their paths, what is moved, and what is said of them.
//!
//! A path is parsed once ([`GuestPath`]), a batch is checked whole before
//! anything moves ([`Sandbox::write_files`](crate::Sandbox::write_files)), and
//! whatever race the guest wins, nothing is read, changed or removed that the
//! guest could not have read, changed or removed by itself.

mod batch;
mod content;
mod operations;
mod path;
mod read;
mod spool;
mod stat;

pub use self::batch::{FileWrite, Upload, UploadEntry, UploadKind};
pub use self::content::{Content, FileContent, FileReader};
pub use self::path::GuestPath;
pub use self::read::{Download, FileRead, ReadFile, ReadRequest};
pub use self::spool::{Spool, Spooled};
pub use self::stat::{Arrived, EntryKind, FileStat, ListEntry, ListRequest, Listing};
