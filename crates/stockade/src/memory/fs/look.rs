//! What the host reads and looks at.

use bytes::Bytes;

use super::node::{Node, Rights, What};
use super::tree::Tree;
use super::walk::Leaf;
use crate::files::{Download, EntryKind, FileContent, FileStat, GuestPath, ReadFile};
use crate::memory::Flaw;
use crate::refusal::{FileRefusal, Refusal};

/// The size at which two of the lies lose a byte.
pub(super) const UNLUCKY: usize = 64 * 1024;

impl Tree {
    pub(in crate::memory) fn stat(&self, path: &GuestPath) -> Result<Option<FileStat>, Refusal> {
        let place = match self.place(path, Flaw::StatFollowsLinkedParent) {
            Err(FileRefusal::ParentNotDirectory { .. })
                if self.has(Flaw::StatTakesFileParentForMissing) =>
            {
                return Ok(None);
            }
            place => place.map_err(|why| path.refused(why))?,
        };
        let mut node = self.get(&place.names);
        if self.has(Flaw::StatFollowsLink)
            && let Ok(names) = self.follow(&self.work_dir, path.as_bytes(), Leaf::Follow)
        {
            node = self.get(&names);
        }
        if node.is_none() && self.has(Flaw::StatRefusesMissing) {
            return Err(path.refused(FileRefusal::Missing));
        }
        Ok(node.map(|node| self.described(node)))
    }

    /// What a node says of itself, lies included.
    pub(super) fn described(&self, node: &Node) -> FileStat {
        let mut stat = node.stat();
        if let What::Link(target) = &node.what
            && self.has(Flaw::StatSizesLinks)
        {
            stat.size = Some(target.len() as u64);
        }
        if self.has(Flaw::StatIsOffByOne) {
            stat.size = stat.size.map(|size| size + 1);
        }
        if self.has(Flaw::StatFakesMode) {
            stat.mode = 0o644;
        }
        stat
    }

    pub(in crate::memory) fn read(&self, download: &Download) -> Result<Vec<ReadFile>, Refusal> {
        let mut found = Vec::with_capacity(download.files().len());
        for (path, _) in download.files() {
            let node = self.readable(path).map_err(|why| path.refused(why))?;
            found.push((path, node));
        }
        let sizes = found.iter().map(|(_, (_, content))| content.len() as u64);
        match download.check_sizes(sizes) {
            Err(Refusal::File {
                why: FileRefusal::TooLarge { most, .. },
                ..
            }) if self.has(Flaw::ReadCutsAtLimit) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                for (_, (_, content)) in &mut found {
                    content.truncate(most);
                }
            }
            Err(Refusal::File {
                why: FileRefusal::BatchTooLarge { .. },
                ..
            }) if self.has(Flaw::ReadIgnoresBatchLimit) => {}
            checked => checked?,
        }
        if self.has(Flaw::ReadSortsAnswers) {
            found.sort_by_key(|(path, _)| (*path).clone());
        }
        let read = found.into_iter().map(|(path, (stat, content))| {
            let content = FileContent::from_bytes(self.garbled(content));
            ReadFile::new(path.clone(), stat, content)
        });
        Ok(read.collect())
    }

    fn readable(&self, path: &GuestPath) -> Result<(FileStat, Bytes), FileRefusal> {
        let place = self.place(path, Flaw::ReadFollowsLinkedParent)?;
        let mut names = place.names;
        if self.has(Flaw::ReadFollowsLink) {
            names = self.follow(&self.work_dir, path.as_bytes(), Leaf::Follow)?;
        }
        let as_empty = |flaw, why: FileRefusal, kind| {
            let stat = FileStat::new(kind, Some(0), 0o644, std::time::SystemTime::now());
            let lie = (stat, Bytes::new());
            if self.has(flaw) { Ok(lie) } else { Err(why) }
        };
        let Some(node) = self.get(&names) else {
            let flaw = Flaw::ReadTakesMissingForEmpty;
            return as_empty(flaw, FileRefusal::Missing, EntryKind::File);
        };
        match &node.what {
            What::File(content) => {
                if !node.may_read(Rights::Guest) && !self.has(Flaw::ReadIgnoresRights) {
                    return Err(FileRefusal::Denied);
                }
                Ok((node.stat(), content.clone()))
            }
            What::Link(_) => Err(FileRefusal::Link),
            What::Directory(_) => {
                let flaw = Flaw::ReadTakesDirectoryForEmpty;
                as_empty(flaw, FileRefusal::IsDirectory, EntryKind::File)
            }
            What::Special(kind) => {
                let flaw = Flaw::ReadTakesSpecialForEmpty;
                as_empty(flaw, FileRefusal::NotRegular { kind: *kind }, *kind)
            }
        }
    }

    /// Content as it is handed over, lies included.
    fn garbled(&self, content: Bytes) -> Bytes {
        if self.has(Flaw::ReadLosesByteAt64KiB) && content.len() == UNLUCKY {
            return content.slice(..UNLUCKY - 1);
        }
        if self.has(Flaw::ReadMakesText) {
            return Bytes::from(String::from_utf8_lossy(&content).into_owned());
        }
        content
    }
}
