//! The files of a sandbox in memory, as its guest has them.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;

use super::Errno;
use super::node::{Node, Owner, Rights, What};
use super::tree::{Making, Names, Tree};
use super::walk::Leaf;
use crate::files::{EntryKind, FileStat};

/// The files of a sandbox in memory, as a program in it has them: links are
/// followed as a kernel follows them, and the whole tree can be seen.
///
/// Relative paths start in the directory of the command, or in the work
/// directory. Besides the work directory there are `/outside` and `/tmp`,
/// where the guest may write, `/srv`, where it may not, and `/etc/passwd`, so
/// that an escape can be seen.
///
/// Errors are those of the system calls that a program would use.
#[derive(Clone)]
pub struct GuestFiles {
    tree: Arc<Mutex<Tree>>,
    cwd: Names,
    rights: Rights,
}

impl GuestFiles {
    pub(in crate::memory) fn new(tree: &Arc<Mutex<Tree>>) -> Self {
        let cwd = lock(tree).work_dir.clone();
        Self {
            tree: Arc::clone(tree),
            cwd,
            rights: Rights::Guest,
        }
    }

    /// The same, starting in another directory.
    ///
    /// # Errors
    ///
    /// It does not exist, or is none.
    pub fn in_directory(&self, path: impl AsRef<[u8]>) -> io::Result<Self> {
        let tree = self.tree();
        let cwd = tree.follow(&self.cwd, path.as_ref(), Leaf::Follow)?;
        let node = tree.get(&cwd).ok_or(Errno::NotFound)?;
        if node.children().is_none() {
            return Err(Errno::NotDirectory.into());
        }
        Ok(Self {
            cwd,
            ..self.clone()
        })
    }

    /// The same with every right, as root on the host has them; what is made
    /// is the host's.
    #[must_use]
    pub fn as_host(mut self) -> Self {
        self.rights = Rights::All;
        self
    }

    /// The directory in which relative paths start.
    #[must_use]
    pub fn directory(&self) -> Vec<u8> {
        let joined = self.cwd.join(&b'/');
        [&b"/"[..], &joined].concat()
    }

    /// What is at a path; a link at its end is not followed.
    ///
    /// # Errors
    ///
    /// The way there cannot be walked.
    pub fn stat(&self, path: impl AsRef<[u8]>) -> io::Result<Option<FileStat>> {
        let tree = self.tree();
        match tree.follow(&self.cwd, path.as_ref(), Leaf::Keep) {
            Ok(names) => Ok(tree.get(&names).map(Node::stat)),
            Err(Errno::NotFound) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The content of a file.
    ///
    /// # Errors
    ///
    /// There is none, it is no regular file, or it may not be read.
    pub fn read(&self, path: impl AsRef<[u8]>) -> io::Result<Bytes> {
        let tree = self.tree();
        let names = tree.follow(&self.cwd, path.as_ref(), Leaf::Follow)?;
        let node = tree.get(&names).ok_or(Errno::NotFound)?;
        match &node.what {
            _ if !node.may_read(self.rights) => Err(Errno::Denied.into()),
            What::File(content) => Ok(content.clone()),
            What::Directory(_) => Err(Errno::IsDirectory.into()),
            What::Link(_) | What::Special(_) => Err(Errno::Invalid.into()),
        }
    }

    /// Writes a file of mode 0644, or replaces the content of one.
    ///
    /// # Errors
    ///
    /// Its directory is missing, it may not be written, or it does not fit.
    pub fn write(&self, path: impl AsRef<[u8]>, content: impl Into<Bytes>) -> io::Result<()> {
        let mut tree = self.tree();
        let names = tree.follow(&self.cwd, path.as_ref(), Leaf::Follow)?;
        let mut node = Node::file(content.into(), 0o644).owned_by(self.owner());
        match tree.get(&names) {
            None => self.check_parent(&tree, &names)?,
            Some(old) if !old.may_write(self.rights) => return Err(Errno::Denied.into()),
            Some(old) => match old.what {
                What::File(_) => {
                    node.mode = old.mode;
                    node.owner = old.owner;
                }
                What::Directory(_) => return Err(Errno::IsDirectory.into()),
                What::Link(_) | What::Special(_) => return Err(Errno::Invalid.into()),
            },
        }
        Ok(tree.put(&names, node, Making::InPlace)?)
    }

    /// Makes a directory of mode 0755, with the ones above it; one that
    /// exists stays as it is.
    ///
    /// # Errors
    ///
    /// Something else is there, or it may not be made.
    pub fn make_directories(&self, path: impl AsRef<[u8]>) -> io::Result<()> {
        let path = path.as_ref();
        let ends = path.iter().enumerate().skip(1);
        let ends = ends.filter(|&(_, &byte)| byte == b'/').map(|(end, _)| end);
        for end in ends.chain([path.len()]) {
            match self.make(&path[..end], Node::directory(0o755)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link to a directory will do as well.
                    self.in_directory(&path[..end])?;
                }
                made => made?,
            }
        }
        Ok(())
    }

    /// Makes a symbolic link; its target need not exist.
    ///
    /// # Errors
    ///
    /// Something is there, or it may not be made.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> io::Result<()> {
        self.make(path.as_ref(), Node::link(target.as_ref().to_vec()))
    }

    /// Makes a fifo, a socket, a device or something that nobody knows.
    ///
    /// # Errors
    ///
    /// The kind is a file, a directory or a link; something is there, or it
    /// may not be made.
    pub fn make_special(&self, kind: EntryKind, path: impl AsRef<[u8]>) -> io::Result<()> {
        match kind {
            EntryKind::File | EntryKind::Directory | EntryKind::Link => Err(Errno::Invalid.into()),
            kind => self.make(path.as_ref(), Node::special(kind)),
        }
    }

    /// Sets the permission bits.
    ///
    /// # Errors
    ///
    /// Nothing is there, or it is somebody else's.
    pub fn set_mode(&self, path: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
        self.change(path.as_ref(), Leaf::Follow, |node| {
            node.mode = mode & 0o7777
        })
    }

    /// Sets when it was last changed; a link at the end is not followed.
    ///
    /// # Errors
    ///
    /// Nothing is there, or it is somebody else's.
    pub fn set_modified(&self, path: impl AsRef<[u8]>, modified: SystemTime) -> io::Result<()> {
        self.change(path.as_ref(), Leaf::Keep, |node| node.modified = modified)
    }

    /// Removes what is no directory; a link is not followed.
    ///
    /// # Errors
    ///
    /// Nothing is there, it is a directory, or it may not be removed.
    pub fn remove_file(&self, path: impl AsRef<[u8]>) -> io::Result<()> {
        let mut tree = self.tree();
        let names = tree.follow(&self.cwd, path.as_ref(), Leaf::Keep)?;
        let node = tree.get(&names).ok_or(Errno::NotFound)?;
        if node.children().is_some() {
            return Err(Errno::IsDirectory.into());
        }
        self.check_parent(&tree, &names)?;
        tree.take(&names);
        Ok(())
    }

    /// Removes a directory with everything in it, or whatever else is there;
    /// nothing there is success.
    ///
    /// # Errors
    ///
    /// A part of it may not be removed; then nothing is.
    pub fn remove_tree(&self, path: impl AsRef<[u8]>) -> io::Result<()> {
        let mut tree = self.tree();
        let names = match tree.follow(&self.cwd, path.as_ref(), Leaf::Keep) {
            Err(Errno::NotFound) => return Ok(()),
            names => names?,
        };
        if tree.work_dir.starts_with(&names) {
            return Err(Errno::Busy.into());
        }
        let Some(node) = tree.get(&names) else {
            return Ok(());
        };
        if !Tree::may_empty(node, self.rights) {
            return Err(Errno::NotEmpty.into());
        }
        self.check_parent(&tree, &names)?;
        tree.take(&names);
        Ok(())
    }

    /// Bytes that the work directory can still take, in pages of 4 KiB.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.tree().free().bytes
    }

    /// Files and directories that can still be made in the work directory.
    #[must_use]
    pub fn free_inodes(&self) -> u64 {
        self.tree().free().inodes
    }

    fn make(&self, path: &[u8], node: Node) -> io::Result<()> {
        let mut tree = self.tree();
        let names = tree.follow(&self.cwd, path, Leaf::Keep)?;
        if tree.get(&names).is_some() {
            return Err(Errno::Exists.into());
        }
        self.check_parent(&tree, &names)?;
        Ok(tree.put(&names, node.owned_by(self.owner()), Making::Beside)?)
    }

    fn change(&self, path: &[u8], leaf: Leaf, change: impl FnOnce(&mut Node)) -> io::Result<()> {
        let mut tree = self.tree();
        let names = tree.follow(&self.cwd, path, leaf)?;
        let node = tree.get_mut(&names).ok_or(Errno::NotFound)?;
        if self.rights == Rights::Guest && node.owner == Owner::Host {
            return Err(Errno::Denied.into());
        }
        change(node);
        Ok(())
    }

    fn check_parent(&self, tree: &Tree, names: &Names) -> Result<(), Errno> {
        if tree.may_change(names, self.rights) {
            Ok(())
        } else {
            Err(Errno::Denied)
        }
    }

    const fn owner(&self) -> Owner {
        match self.rights {
            Rights::Guest => Owner::Guest,
            Rights::All => Owner::Host,
        }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        lock(&self.tree)
    }
}

impl fmt::Debug for GuestFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory();
        f.debug_struct("GuestFiles")
            .field("directory", &String::from_utf8_lossy(&directory))
            .field("rights", &self.rights)
            .finish_non_exhaustive()
    }
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}
