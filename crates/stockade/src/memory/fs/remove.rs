//! What the host removes, with the rights of the guest.

use super::node::{Node, Rights, What};
use super::tree::{Names, Tree};
use super::walk::Leaf;
use crate::files::GuestPath;
use crate::memory::Flaw;
use crate::refusal::{FileRefusal, Refusal};

impl Tree {
    pub(in crate::memory) fn remove(
        &mut self,
        path: &GuestPath,
        recursive: bool,
    ) -> Result<(), Refusal> {
        let removed = self.remove_at(path, recursive, Flaw::RemoveFollowsLinksInside);
        removed.map_err(|why| path.refused(why))
    }

    pub(in crate::memory) fn reclaim(&mut self, path: &GuestPath) -> Result<(), Refusal> {
        let refused = |why| path.refused(why);
        if path.is_work_dir() && self.has(Flaw::ReclaimTakesWorkDir) {
            self.empty_work_dir();
            return Ok(());
        }
        let names = self.absolute(path);
        let Some(node) = self.get(&names) else {
            if self.has(Flaw::ReclaimRefusesMissing) {
                return Err(refused(FileRefusal::Missing));
            }
            let removed = self.remove_at(path, true, Flaw::ReclaimFollowsLinksInside);
            return removed.map_err(refused);
        };
        let has_content = node.children().is_some_and(|children| !children.is_empty());
        if has_content && self.has(Flaw::ReclaimKeepsContent) {
            return Ok(());
        }
        let removed = self.remove_at(path, true, Flaw::ReclaimFollowsLinksInside);
        removed.map_err(refused)
    }

    fn remove_at(
        &mut self,
        path: &GuestPath,
        recursive: bool,
        follows_inside: Flaw,
    ) -> Result<(), FileRefusal> {
        if path.is_work_dir() {
            if self.has(Flaw::RemoveTakesWorkDir)
                && follows_inside == Flaw::RemoveFollowsLinksInside
            {
                self.empty_work_dir();
                return Ok(());
            }
            return Err(FileRefusal::WorkDir);
        }
        let place = self.place(path, Flaw::RemoveFollowsLinkedParent)?;
        let mut names = place.names;
        if self.has(Flaw::RemoveFollowsLink) {
            names = self.follow(&self.work_dir, path.as_bytes(), Leaf::Follow)?;
        }
        let Some(node) = self.get(&names) else {
            return if self.has(Flaw::RemoveRefusesMissing) {
                Err(FileRefusal::Missing)
            } else {
                Ok(())
            };
        };
        if let What::Directory(children) = &node.what {
            let lies = self.has(Flaw::RemoveTakesTrees)
                || children.is_empty() && self.has(Flaw::RemoveTakesEmptyDirectories);
            if !recursive && !lies {
                return Err(FileRefusal::NeedsRecursive);
            }
        }
        let may = self.may_change(&names, Rights::Guest) && Self::may_empty(node, Rights::Guest);
        if !may && !self.has(Flaw::RemoveIgnoresRights) {
            return Err(FileRefusal::Denied);
        }
        if self.has(Flaw::RemoveDoesNothing) {
            return Ok(());
        }
        if self.has(follows_inside) {
            self.take_targets(&names);
        }
        if self.has(Flaw::RemoveTakesNamesakes) {
            self.take_namesakes(&names);
        }
        self.take(&names);
        Ok(())
    }

    /// The lie: what the links of a tree point to goes with it.
    fn take_targets(&mut self, tree: &Names) {
        let mut targets = Vec::new();
        let mut left = vec![tree.clone()];
        while let Some(at) = left.pop() {
            for (name, node) in self.children(&at) {
                match &node.what {
                    What::Link(target) => {
                        targets.extend(self.follow(&at, target, Leaf::Follow).ok());
                    }
                    What::Directory(_) => {
                        left.push([at.as_slice(), std::slice::from_ref(name)].concat());
                    }
                    _ => {}
                }
            }
        }
        for target in targets {
            self.take(&target);
        }
    }

    /// The lie: what begins alike goes as well.
    fn take_namesakes(&mut self, names: &Names) {
        let Some((name, above)) = names.split_last() else {
            return;
        };
        let alike = self.children(above).map(|(other, _)| other.clone());
        let alike: Vec<Vec<u8>> = alike.filter(|other| other.starts_with(name)).collect();
        for other in alike {
            self.take(&[above, &[other]].concat());
        }
    }

    /// The lie: the work directory itself stays, and nothing in it.
    fn empty_work_dir(&mut self) {
        let work_dir = self.work_dir.clone();
        let node = self.get(&work_dir).and_then(Node::children);
        let names: Vec<Vec<u8>> = node.into_iter().flat_map(|n| n.keys().cloned()).collect();
        for name in names {
            self.take(&[work_dir.as_slice(), &[name]].concat());
        }
    }
}
