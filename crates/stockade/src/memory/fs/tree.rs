//! The tree of one sandbox, and the few ways in which it changes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;

use super::Errno;
use super::node::{Node, Owner, Rights, Usage, What};
use crate::memory::Flaw;
use crate::spec::{SandboxSpec, Storage};

/// Names from the root downward; none for the root.
pub(super) type Names = Vec<Vec<u8>>;

/// The file system of one sandbox.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Tree {
    root: Node,
    pub(super) work_dir: Names,
    /// What the work directory may take, itself left out.
    most: Usage,
    used: Usage,
    pub(super) flaw: Option<Flaw>,
}

impl Tree {
    /// The work directory, and a little around it: `/outside` and `/tmp`,
    /// where the guest may write; `/srv`, where it may not; and a file of the
    /// host's, `/etc/passwd`.
    pub(in crate::memory) fn new(spec: &SandboxSpec, flaw: Option<Flaw>) -> Self {
        let limits = spec.limits();
        let bytes = match spec.storage() {
            Storage::Tmpfs => limits.work_bytes,
            Storage::Root | Storage::Disk => u64::MAX,
        };
        let mut tree = Self {
            root: Node::directory(0o755).owned_by(Owner::Host),
            work_dir: names(spec.work_dir().as_str().as_bytes()).collect(),
            most: Usage {
                bytes,
                inodes: limits.work_inodes,
            },
            used: Usage::default(),
            flaw,
        };
        for (path, mode, owner) in [
            (&b"etc"[..], 0o755, Owner::Host),
            (b"srv", 0o755, Owner::Host),
            (b"tmp", 0o1777, Owner::Guest),
            (b"outside", 0o755, Owner::Guest),
        ] {
            tree.put_at_start(path, Node::directory(mode).owned_by(owner));
        }
        let passwd = Bytes::from_static(b"root:x:0:0:root:/root:/bin/sh\n");
        tree.put_at_start(
            b"etc/passwd",
            Node::file(passwd, 0o644).owned_by(Owner::Host),
        );
        let work_dir = spec.work_dir().as_str().as_bytes();
        let above = work_dir.iter().enumerate().skip(1);
        for (end, _) in above.filter(|&(_, &byte)| byte == b'/') {
            tree.put_at_start(
                &work_dir[..end],
                Node::directory(0o755).owned_by(Owner::Host),
            );
        }
        tree.put_at_start(work_dir, Node::directory(0o755));
        tree
    }

    fn put_at_start(&mut self, path: &[u8], node: Node) {
        let path: Names = names(path).collect();
        if self.get(&path).is_none() {
            let put = self.put(&path, node, Making::Beside);
            debug_assert!(put.is_ok(), "the first directories are put in order");
        }
    }

    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// What is at these names; links are not followed.
    pub(super) fn get(&self, path: &[Vec<u8>]) -> Option<&Node> {
        path.iter()
            .try_fold(&self.root, |node, name| node.children()?.get(name))
    }

    /// The same, to change what needs no space.
    pub(super) fn get_mut(&mut self, path: &[Vec<u8>]) -> Option<&mut Node> {
        path.iter()
            .try_fold(&mut self.root, |node, name| match &mut node.what {
                What::Directory(children) => children.get_mut(name),
                _ => None,
            })
    }

    /// Puts something at these names, in the place of what was there.
    pub(super) fn put(
        &mut self,
        path: &[Vec<u8>],
        node: Node,
        making: Making,
    ) -> Result<(), Errno> {
        let counts = self.is_in_work_dir(path);
        let before = self.get(path).map(Node::usage).unwrap_or_default();
        let mut after = self.used;
        if counts {
            if making == Making::InPlace {
                after.subtract(before);
            }
            after.add(node.usage());
            let inodes = after.inodes > self.most.inodes && !self.has(Flaw::WriteIgnoresInodes);
            if after.bytes > self.most.bytes || inodes {
                return Err(Errno::Full);
            }
            if making == Making::Beside {
                after.subtract(before);
            }
        }
        let (name, parent) = path.split_last().ok_or(Errno::Busy)?;
        let parent = self.get_mut(parent).ok_or(Errno::NotFound)?;
        parent.modified = SystemTime::now();
        match &mut parent.what {
            What::Directory(children) => children.insert(name.clone(), node),
            _ => return Err(Errno::NotDirectory),
        };
        if counts {
            self.used = after;
        }
        Ok(())
    }

    /// Takes out what is at these names, with everything below it.
    pub(super) fn take(&mut self, path: &[Vec<u8>]) -> Option<Node> {
        let counts = self.is_in_work_dir(path);
        let (name, parent) = path.split_last()?;
        let parent = self.get_mut(parent)?;
        let What::Directory(children) = &mut parent.what else {
            return None;
        };
        let taken = children.remove(name)?;
        parent.modified = SystemTime::now();
        if counts {
            self.used.subtract(taken.usage());
        }
        Some(taken)
    }

    /// What may still be written to the work directory.
    pub(super) fn free(&self) -> Usage {
        let mut free = self.most;
        free.subtract(self.used);
        free
    }

    /// Whether something may be made or removed in the directory of this path.
    pub(super) fn may_change(&self, path: &[Vec<u8>], rights: Rights) -> bool {
        let parent = path.split_last().and_then(|(_, above)| self.get(above));
        parent.is_some_and(|parent| parent.may_write(rights))
    }

    /// Whether everything below a path may be removed.
    pub(super) fn may_empty(node: &Node, rights: Rights) -> bool {
        let Some(children) = node.children() else {
            return true;
        };
        children.is_empty()
            || node.may_write(rights)
                && children
                    .values()
                    .all(|child| Self::may_empty(child, rights))
    }

    fn is_in_work_dir(&self, path: &[Vec<u8>]) -> bool {
        path.len() > self.work_dir.len() && path.starts_with(&self.work_dir)
    }

    /// Names and nodes of a directory.
    pub(super) fn children(
        &self,
        path: &[Vec<u8>],
    ) -> impl Iterator<Item = (&Vec<u8>, &Node)> + use<'_> {
        let node = self.get(path);
        let children = node.and_then(Node::children);
        children.into_iter().flat_map(BTreeMap::iter)
    }
}

/// Whether what was there takes space while the new one is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Making {
    /// It does: the new one is made beside it, and takes its name.
    Beside,
    /// It does not: it was emptied before.
    InPlace,
}

/// The names of a path.
pub(super) fn names(path: &[u8]) -> impl Iterator<Item = Vec<u8>> + use<'_> {
    path.split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty() && *name != b".")
        .map(<[u8]>::to_vec)
}
