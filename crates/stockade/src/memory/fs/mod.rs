//! A file system in memory: one tree for each sandbox.
//!
//! The guest's half follows links as a kernel does; the host's half follows
//! none, as the contract demands.

mod guest;
mod list;
mod look;
mod node;
mod remove;
mod tree;
mod walk;
mod write;

use std::io;

pub use self::guest::GuestFiles;
pub(super) use self::tree::Tree;
use crate::refusal::FileRefusal;

/// What the tree's own system calls fail with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errno {
    NotFound,
    NotDirectory,
    IsDirectory,
    Exists,
    NotEmpty,
    Denied,
    Busy,
    Loop,
    Full,
    Invalid,
}

impl Errno {
    /// Linux's numbers.
    const fn number(self) -> i32 {
        match self {
            Self::NotFound => 2,
            Self::Denied => 13,
            Self::Busy => 16,
            Self::Exists => 17,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::Invalid => 22,
            Self::Full => 28,
            Self::NotEmpty => 39,
            Self::Loop => 40,
        }
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.number())
    }
}

impl From<Errno> for FileRefusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NotFound => Self::Missing,
            Errno::Denied => Self::Denied,
            Errno::Full => Self::NoSpace,
            Errno::IsDirectory => Self::IsDirectory,
            Errno::NotDirectory => Self::NotDirectory,
            other => Self::System {
                errno: other.number(),
            },
        }
    }
}
