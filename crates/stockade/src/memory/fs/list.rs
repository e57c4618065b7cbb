//! What the host lists.

use super::node::{Node, What};
use super::tree::{Names, Tree};
use super::walk::Leaf;
use crate::files::{EntryKind, ListEntry, ListRequest, Listing};
use crate::memory::Flaw;
use crate::refusal::{FileRefusal, Refusal};

impl Tree {
    pub(in crate::memory) fn list(&self, request: &ListRequest) -> Result<Listing, Refusal> {
        let path = request.path();
        let refused = |why| path.refused(why);
        let place = self.place(path, Flaw::ListFollowsLinkedParent);
        let mut names = place.map_err(refused)?.names;
        if self.has(Flaw::ListFollowsLink)
            && let Ok(followed) = self.follow(&self.work_dir, path.as_bytes(), Leaf::Follow)
        {
            names = followed;
        }
        match self.get(&names).map(|node| &node.what) {
            Some(What::Directory(_)) => {}
            Some(What::Link(_)) => return Err(refused(FileRefusal::Link)),
            Some(_) => return Err(refused(FileRefusal::NotDirectory)),
            None if self.has(Flaw::ListTakesMissingForEmpty) => return Ok(Listing::default()),
            None => return Err(refused(FileRefusal::Missing)),
        }
        let mut entries = Vec::new();
        self.collect(&names, b"", request.is_recursive(), &mut entries);
        if self.has(Flaw::ListNamesWholePaths) {
            for entry in &mut entries {
                entry.name = [path.as_bytes(), &entry.name].join(&b'/');
            }
        }
        let most = request.most() as usize;
        let truncated = entries.len() > most && !self.has(Flaw::ListNeverSaysTruncated);
        if !self.has(Flaw::ListIgnoresBound) {
            entries.truncate(most);
        }
        Ok(Listing::new(entries, truncated))
    }

    /// A directory before what is in it.
    fn collect(&self, at: &Names, prefix: &[u8], recursive: bool, into: &mut Vec<ListEntry>) {
        for (name, node) in self.children(at) {
            if name.starts_with(b".") && self.has(Flaw::ListOmitsHidden) {
                continue;
            }
            let shown = match prefix {
                b"" => name.clone(),
                prefix => [prefix, name].join(&b'/'),
            };
            into.extend(self.entry(&shown, node));
            let below = [at.as_slice(), std::slice::from_ref(name)].concat();
            if recursive && !self.has(Flaw::ListIsFlat) {
                let lie = self.has(Flaw::ListDescendsLinks).then(|| match &node.what {
                    What::Link(target) => self.follow(at, target, Leaf::Follow).ok(),
                    _ => None,
                });
                let below = lie.flatten().unwrap_or(below);
                self.collect(&below, &shown, true, into);
            }
        }
    }

    fn entry(&self, name: &[u8], node: &Node) -> Option<ListEntry> {
        let mut stat = self.described(node);
        if stat.kind == EntryKind::Link {
            if self.has(Flaw::ListOmitsLinks) {
                return None;
            }
            if self.has(Flaw::ListNamesLinksFiles) {
                stat.kind = EntryKind::File;
            }
        }
        Some(ListEntry::new(name.to_vec(), stat))
    }
}
