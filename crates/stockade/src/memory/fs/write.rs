//! What the host writes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;

use super::look::UNLUCKY;
use super::node::{Node, Owner, Rights, What};
use super::tree::{Making, Names, Tree};
use super::walk::Leaf;
use crate::error::{Error, Operation};
use crate::files::{Arrived, GuestPath, UploadEntry, UploadKind};
use crate::memory::Flaw;
use crate::refusal::FileRefusal;

impl Tree {
    /// Writes a batch, each entry with its content; what could not be written
    /// is told together with what was.
    pub(in crate::memory) fn write(
        &mut self,
        entries: &[(UploadEntry, Bytes)],
    ) -> Result<(), Error> {
        if !self.has(Flaw::WriteChecksAsItGoes) {
            for (entry, _) in entries {
                let checked = self.destination(entry);
                checked.map_err(|why| failed(entry, why, Arrived::default()))?;
            }
        }
        for (at, (entry, content)) in entries.iter().enumerate() {
            if at >= 64 && self.has(Flaw::WriteStopsAt64Files) {
                break;
            }
            let written = self.write_one(entry, content);
            if let Err(why) = written {
                let whole = entries[..at].iter().map(|(entry, _)| entry.path.clone());
                let silent =
                    self.has(Flaw::WriteFullSaysNothing) || self.has(Flaw::WriteChecksAsItGoes);
                let arrived = if silent {
                    Arrived::default()
                } else {
                    Arrived::whole(whole)
                };
                return Err(failed(entry, why, arrived));
            }
        }
        Ok(())
    }

    /// Where an entry goes, if it may.
    fn destination(&self, entry: &UploadEntry) -> Result<(Names, usize), FileRefusal> {
        let place = self.place(&entry.path, Flaw::WriteFollowsLinkedParent)?;
        let mut names = place.names;
        if place.missing > 0 && self.has(Flaw::WriteNeedsParents) {
            return Err(FileRefusal::Missing);
        }
        let is_file = matches!(entry.kind, UploadKind::File(_));
        match self.get(&names).map(|node| &node.what) {
            None => {}
            Some(What::File(_)) if is_file => {}
            Some(What::Directory(children))
                if is_file && children.is_empty() && self.has(Flaw::WriteReplacesDirectory) => {}
            Some(What::Directory(_)) if is_file => return Err(FileRefusal::IsDirectory),
            Some(What::Directory(_)) => return Ok((names, 0)),
            Some(What::Link(_)) if is_file && self.has(Flaw::WriteFollowsLink) => {
                names = self.follow(&self.work_dir, entry.path.as_bytes(), Leaf::Follow)?;
            }
            Some(What::Link(_)) if is_file && self.has(Flaw::WriteReplacesLink) => {}
            Some(What::Link(_)) => return Err(FileRefusal::Link),
            Some(What::Special(kind)) if is_file => {
                return Err(FileRefusal::NotRegular { kind: *kind });
            }
            Some(_) => return Err(FileRefusal::NotDirectory),
        }
        let existing = names.len() - place.missing;
        let may = self.may_change(&names[..existing], Rights::Guest);
        if !may && !self.has(Flaw::WriteIgnoresRights) {
            return Err(FileRefusal::Denied);
        }
        Ok((names, place.missing))
    }

    fn write_one(&mut self, entry: &UploadEntry, content: &Bytes) -> Result<(), FileRefusal> {
        if entry.is_empty() && self.has(Flaw::WriteSkipsEmptyFiles) {
            return Ok(());
        }
        let (mut names, missing) = self.destination(entry)?;
        if self.has(Flaw::WriteRestampsDirectories) {
            self.restamp(&entry.path);
        }
        for end in names.len() - missing..names.len() {
            let owner = self.owner_of_made(Flaw::DirectoriesBelongToHost);
            let directory = Node::directory(0o755).owned_by(owner);
            self.put(&names[..end], directory, Making::Beside)?;
        }
        if self.has(Flaw::WriteMakesTextOfNames) {
            for name in &mut names {
                *name = String::from_utf8_lossy(name).into_owned().into_bytes();
            }
        }
        let mut node = match &entry.kind {
            UploadKind::Directory if self.get(&names).is_some() => return Ok(()),
            UploadKind::Directory => {
                let owner = self.owner_of_made(Flaw::DirectoriesBelongToHost);
                Node::directory(entry.mode).owned_by(owner)
            }
            UploadKind::File(_) => {
                let owner = self.owner_of_made(Flaw::WriteBelongsToHost);
                let content = self.written(&names, content);
                Node::file(content, entry.mode).owned_by(owner)
            }
        };
        node.modified = entry.modified;
        if self.has(Flaw::WriteIgnoresMode) && node.children().is_none() {
            node.mode = 0o644;
        }
        if self.has(Flaw::WriteIgnoresTime) {
            node.modified = SystemTime::now();
        }
        self.put_or_lie(&names, node)
    }

    fn put_or_lie(&mut self, names: &Names, node: Node) -> Result<(), FileRefusal> {
        let lies = self.has(Flaw::WriteFullCuts) || self.has(Flaw::WriteFullLeavesPart);
        let whole = lies.then(|| node.clone());
        let put = self.put(names, node, Making::Beside);
        let (Err(errno), Some(mut part)) = (put, whole) else {
            return Ok(put?);
        };
        if let What::File(content) = &mut part.what {
            let free = usize::try_from(self.free().bytes / 2).unwrap_or(usize::MAX);
            content.truncate(free);
        }
        let put = self.put(names, part, Making::Beside);
        if self.has(Flaw::WriteFullLeavesPart) {
            return Err(errno.into());
        }
        Ok(put?)
    }

    fn owner_of_made(&self, flaw: Flaw) -> Owner {
        if self.has(flaw) {
            Owner::Host
        } else {
            Owner::Guest
        }
    }

    /// Content as it is written, lies included.
    fn written(&self, names: &Names, content: &Bytes) -> Bytes {
        let old = match self.get(names).map(|node| &node.what) {
            Some(What::File(old)) => old.as_ref(),
            _ => &[],
        };
        if self.has(Flaw::WriteAppends) {
            return Bytes::from([old, content].concat());
        }
        if self.has(Flaw::WriteKeepsOldTail) && old.len() > content.len() {
            return Bytes::from([content, &old[content.len()..]].concat());
        }
        if self.has(Flaw::WriteLosesByteAt64KiB) && content.len() == UNLUCKY {
            return content.slice(..UNLUCKY - 1);
        }
        if self.has(Flaw::WriteTranslatesLineEnds) {
            let mut kept = content.to_vec();
            kept.retain(|&byte| byte != b'\r');
            return Bytes::from(kept);
        }
        content.clone()
    }

    /// The lie: directories that were there are made anew.
    fn restamp(&mut self, path: &GuestPath) {
        let ancestors: Vec<Names> = path.ancestors().map(|a| self.absolute(&a)).collect();
        for names in ancestors.into_iter().chain([self.absolute(path)]) {
            if let Some(node) = self.get_mut(&names)
                && matches!(node.what, What::Directory(_))
            {
                node.mode = 0o755;
                node.modified = SystemTime::now();
            }
        }
    }

    /// Another tree's work directory, for a sandbox that was not emptied.
    pub(in crate::memory) fn inherit(&mut self, other: &Self) {
        let children = other.get(&other.work_dir).and_then(Node::children);
        let children: BTreeMap<Vec<u8>, Node> = children.cloned().unwrap_or_default();
        for (name, node) in children {
            let names = [self.work_dir.as_slice(), &[name]].concat();
            // What does not fit was not there.
            let _ = self.put(&names, node, Making::Beside);
        }
    }
}

fn failed(entry: &UploadEntry, why: FileRefusal, arrived: Arrived) -> Error {
    let error = Error::refused(Operation::WriteFiles, entry.path.refused(why));
    error.reopen().arrived(arrived).build()
}
