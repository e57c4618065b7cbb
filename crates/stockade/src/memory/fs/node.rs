//! What a tree is made of.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;

use crate::files::{EntryKind, FileStat};

/// Bytes of one page, in which a tmpfs counts content. Linux on most machines.
const PAGE: u64 = 4096;

/// One file, directory, link or special file.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) what: What,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
    pub(super) owner: Owner,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    File(Bytes),
    Directory(BTreeMap<Vec<u8>, Node>),
    Link(Vec<u8>),
    Special(EntryKind),
}

/// Whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Guest,
    Host,
}

/// With whose rights something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    Guest,
    All,
}

/// What a tree takes of a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

impl Node {
    pub(super) fn file(content: Bytes, mode: u32) -> Self {
        Self::new(What::File(content), mode)
    }

    pub(super) fn directory(mode: u32) -> Self {
        Self::new(What::Directory(BTreeMap::new()), mode)
    }

    pub(super) fn link(target: Vec<u8>) -> Self {
        Self::new(What::Link(target), 0o777)
    }

    pub(super) fn special(kind: EntryKind) -> Self {
        Self::new(What::Special(kind), 0o644)
    }

    /// The guest's own, last changed now.
    fn new(what: What, mode: u32) -> Self {
        Self {
            what,
            mode,
            modified: SystemTime::now(),
            owner: Owner::Guest,
        }
    }

    pub(super) fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    pub(super) const fn kind(&self) -> EntryKind {
        match self.what {
            What::File(_) => EntryKind::File,
            What::Directory(_) => EntryKind::Directory,
            What::Link(_) => EntryKind::Link,
            What::Special(kind) => kind,
        }
    }

    pub(super) const fn children(&self) -> Option<&BTreeMap<Vec<u8>, Self>> {
        match &self.what {
            What::Directory(children) => Some(children),
            _ => None,
        }
    }

    pub(super) fn stat(&self) -> FileStat {
        let size = match &self.what {
            What::File(content) => Some(content.len() as u64),
            _ => None,
        };
        FileStat::new(self.kind(), size, self.mode, self.modified)
    }

    /// Whether it may be read with these rights.
    pub(super) fn may_read(&self, rights: Rights) -> bool {
        self.may(rights, 0o4)
    }

    /// Whether it may be written with these rights.
    pub(super) fn may_write(&self, rights: Rights) -> bool {
        self.may(rights, 0o2)
    }

    fn may(&self, rights: Rights, bit: u32) -> bool {
        let bits = match self.owner {
            Owner::Guest => self.mode >> 6,
            Owner::Host => self.mode,
        };
        rights == Rights::All || bits & bit != 0
    }

    /// What it takes with everything below it.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = Usage {
            bytes: match &self.what {
                What::File(content) => (content.len() as u64).next_multiple_of(PAGE),
                _ => 0,
            },
            inodes: 1,
        };
        for child in self.children().into_iter().flat_map(BTreeMap::values) {
            usage.add(child.usage());
        }
        usage
    }
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.inodes += other.inodes;
    }

    pub(super) fn subtract(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.inodes = self.inodes.saturating_sub(other.inodes);
    }
}
