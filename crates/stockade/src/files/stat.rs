//! What there is, and what has arrived.

use std::fmt;
use std::time::SystemTime;

use super::GuestPath;
use crate::text::excerpt_bytes;
use crate::words::words;

words! { unranked "entry kind"
    /// What is at a path. Links are never followed.
    EntryKind {
        /// A regular file.
        File = "file",
        /// A directory.
        Directory = "directory",
        /// A symbolic link.
        Link = "link",
        /// A named pipe.
        Fifo = "fifo",
        /// A socket.
        Socket = "socket",
        /// A character device.
        CharDevice = "char_device",
        /// A block device.
        BlockDevice = "block_device",
        /// Anything else.
        Other = "other",
    }
}

/// What is at a path, as the sandbox says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStat {
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a regular file; nothing otherwise, which no limit allows.
    pub size: Option<u64>,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    /// When it was last changed.
    pub modified: SystemTime,
}

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct ListRequest {
    path: GuestPath,
    recursive: bool,
    max_entries: u32,
}

/// What a directory holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The entries; in a recursive listing a directory comes before what is in it.
    pub entries: Vec<ListEntry>,
    /// Whether there is more than was asked for.
    pub truncated: bool,
    /// Names, as of [`ListEntry::name`], of what the guest's user may not look
    /// at, and of directories that it may not look into: what is in them is
    /// not listed. Only of a recursive listing, but for directories whose
    /// names can be read and nothing else.
    pub closed: Vec<Vec<u8>>,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListEntry {
    /// Its name below the listed directory: one name, or several joined by
    /// slashes in a recursive listing. The guest's bytes: any but NUL.
    pub name: Vec<u8>,
    /// What it is.
    pub stat: FileStat,
}

/// What a write that failed had done by then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Arrived {
    /// Are there, whole.
    pub whole: Vec<GuestPath>,
    /// Are there in part, and could not be removed.
    pub partial: Vec<GuestPath>,
    /// Were there before and are gone: there was no room for what was to
    /// replace them.
    pub lost: Vec<GuestPath>,
    /// May be there, whole or in part.
    pub unknown: Vec<GuestPath>,
}

impl FileStat {
    /// What an entry of this kind says.
    #[must_use]
    pub const fn new(kind: EntryKind, size: Option<u64>, mode: u32, modified: SystemTime) -> Self {
        Self {
            kind,
            size,
            mode,
            modified,
        }
    }
}

impl ListRequest {
    /// Entries of a listing unless told otherwise.
    pub const DEFAULT_ENTRIES: u32 = 10_000;

    /// Most entries that a listing may be asked for.
    pub const MOST_ENTRIES: u32 = 100_000;

    /// The direct children of a directory, 10,000 at most.
    pub const fn new(path: GuestPath) -> Self {
        Self {
            path,
            recursive: false,
            max_entries: Self::DEFAULT_ENTRIES,
        }
    }

    /// Everything below the directory.
    pub const fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// Sets how many entries are listed at most; at least 1 and at most 100,000.
    pub fn max_entries(mut self, most: u32) -> Self {
        self.max_entries = most.clamp(1, Self::MOST_ENTRIES);
        self
    }

    /// The directory.
    #[must_use]
    pub const fn path(&self) -> &GuestPath {
        &self.path
    }

    /// Whether everything below it is listed.
    #[must_use]
    pub const fn is_recursive(&self) -> bool {
        self.recursive
    }

    /// How many entries are listed at most.
    #[must_use]
    pub const fn most(&self) -> u32 {
        self.max_entries
    }
}

impl Listing {
    /// A listing of these entries.
    #[must_use]
    pub const fn new(entries: Vec<ListEntry>, truncated: bool) -> Self {
        Self {
            entries,
            truncated,
            closed: Vec::new(),
        }
    }
}

impl ListEntry {
    /// An entry of this name.
    #[must_use]
    pub const fn new(name: Vec<u8>, stat: FileStat) -> Self {
        Self { name, stat }
    }

    /// The name for people: lossy, shortened, without control characters.
    #[must_use]
    pub fn display(&self) -> String {
        excerpt_bytes(&self.name)
    }
}

impl Arrived {
    /// These files, whole.
    #[must_use]
    pub fn whole(paths: impl IntoIterator<Item = GuestPath>) -> Self {
        Self {
            whole: paths.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Whether nothing has.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        [&self.whole, &self.partial, &self.lost, &self.unknown]
            .iter()
            .all(|paths| paths.is_empty())
    }
}

/// Such as `arrived whole: a, b; left in part: c`.
impl fmt::Display for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 8;
        if self.is_nothing() {
            return f.write_str("nothing arrived");
        }
        let groups = [
            ("arrived whole", &self.whole),
            ("left in part", &self.partial),
            ("gone that were there", &self.lost),
            ("of unknown state", &self.unknown),
        ];
        let texts = groups.into_iter().filter(|(_, paths)| !paths.is_empty());
        let texts: Vec<String> = texts
            .map(|(what, paths)| {
                let named = paths.iter().take(NAMED).map(GuestPath::to_string);
                let named: Vec<String> = named.collect();
                let more = paths.len().saturating_sub(NAMED);
                let more = (more > 0).then(|| format!(" and {more} more"));
                format!("{what}: {}{}", named.join(", "), more.unwrap_or_default())
            })
            .collect();
        f.write_str(&texts.join("; "))
    }
}
