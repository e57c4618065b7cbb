//! From a path to names: as a kernel does it, and as the contract demands it.

use super::Errno;
use super::node::What;
use super::tree::{Names, Tree};
use crate::files::{EntryKind, GuestPath};
use crate::memory::Flaw;
use crate::refusal::FileRefusal;

/// Most links that are followed for one path. Linux: `MAXSYMLINKS`.
const MOST_LINKS: u32 = 40;

/// Where a path of the host's leads.
pub(super) struct Place {
    /// The names, of which no directory on the way is a link.
    pub(super) names: Names,
    /// How many of them are missing directories on the way, counted from
    /// below; the leaf itself does not count.
    pub(super) missing: usize,
}

impl Tree {
    /// Where a path leads when every link on the way is followed, and the one
    /// at its end as asked. The last name may be missing.
    pub(super) fn follow(&self, from: &[Vec<u8>], path: &[u8], leaf: Leaf) -> Result<Names, Errno> {
        let mut links = 0;
        self.follow_on(from, path, leaf, &mut links)
    }

    fn follow_on(
        &self,
        from: &[Vec<u8>],
        path: &[u8],
        leaf: Leaf,
        links: &mut u32,
    ) -> Result<Names, Errno> {
        let mut at: Names = match path.first() {
            None => return Err(Errno::NotFound),
            Some(b'/') => Names::new(),
            Some(_) => from.to_vec(),
        };
        let mut names = super::tree::names(path).peekable();
        while let Some(name) = names.next() {
            let here = self.get(&at).ok_or(Errno::NotFound)?;
            if here.children().is_none() {
                return Err(Errno::NotDirectory);
            }
            if name == b".." {
                at.pop();
                continue;
            }
            at.push(name);
            let is_leaf = names.peek().is_none();
            let Some(node) = self.get(&at) else {
                return if is_leaf {
                    Ok(at)
                } else {
                    Err(Errno::NotFound)
                };
            };
            if let What::Link(target) = &node.what
                && (!is_leaf || leaf == Leaf::Follow)
            {
                *links += 1;
                if *links > MOST_LINKS {
                    return Err(Errno::Loop);
                }
                at.pop();
                at = self.follow_on(&at, target, Leaf::Follow, links)?;
            }
        }
        Ok(at)
    }

    /// Where a path of the host's leads; a link on the way is refused, unless
    /// the flaw is the tree's.
    pub(super) fn place(&self, path: &GuestPath, follows: Flaw) -> Result<Place, FileRefusal> {
        self.check_work_dir()?;
        let mut names = self.work_dir.clone();
        for ancestor in path.ancestors() {
            names.extend(ancestor.name().map(<[u8]>::to_vec));
            let at = || ancestor.to_string();
            match self.get(&names).map(|node| &node.what) {
                Some(What::Directory(_)) => {}
                Some(What::Link(_)) if self.has(follows) => return self.followed(path),
                Some(What::Link(_)) => return Err(FileRefusal::LinkedParent { at: at() }),
                Some(_) => return Err(FileRefusal::ParentNotDirectory { at: at() }),
                None => {
                    let missing = path.names().count() + self.work_dir.len() - names.len();
                    names = self.absolute(path);
                    return Ok(Place { names, missing });
                }
            }
        }
        names = self.absolute(path);
        Ok(Place { names, missing: 0 })
    }

    /// The lie: where a kernel would go.
    fn followed(&self, path: &GuestPath) -> Result<Place, FileRefusal> {
        let names = self.follow(&self.work_dir, path.as_bytes(), Leaf::Keep)?;
        Ok(Place { names, missing: 0 })
    }

    fn check_work_dir(&self) -> Result<(), FileRefusal> {
        for end in 1..=self.work_dir.len() {
            match self.get(&self.work_dir[..end]).map(super::node::Node::kind) {
                Some(EntryKind::Directory) => {}
                _ => return Err(FileRefusal::WorkDirLinked),
            }
        }
        Ok(())
    }

    pub(super) fn absolute(&self, path: &GuestPath) -> Names {
        let below = path.names().map(<[u8]>::to_vec);
        self.work_dir.iter().cloned().chain(below).collect()
    }
}

/// What happens to a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Follow,
    Keep,
}
