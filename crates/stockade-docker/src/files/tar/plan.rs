//! What is looked at, and what is copied together. Pure.

use std::collections::{BTreeMap, BTreeSet};

use stockade::FileRefusal;
use stockade::files::GuestPath;
use stockade::spec::{Hardening, Storage, WorkDir};
use stockade::{Refusal, SandboxSpec};

use crate::files::look::Held;

/// A directory that must be one, and no link, before a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Where, as an absolute path of the sandbox.
    pub(super) path: Vec<u8>,
    /// Which; nothing for what is above the work directory.
    pub(super) below: Option<GuestPath>,
}

/// Files that are read by one copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Copy {
    /// One file, by its number in the request.
    File(usize),
    /// Several files of one directory, by a copy of that directory.
    Directory {
        /// The directory.
        path: GuestPath,
        /// The files, by their numbers.
        files: Vec<usize>,
        /// Most bytes and entries that the copy may have before it is given
        /// up for copies of the files.
        most: Held,
    },
}

/// What one more copy costs, as bytes that stream by in the same time: a
/// docker process takes some 20 ms, in which an engine sends some 8 MiB.
const COPY_BYTES: u64 = 8 * 1024 * 1024;

/// The same in entries.
const COPY_ENTRIES: u64 = 500;

/// Directories above the work directory that the guest might have swapped for
/// links, outermost first. With a strict root there are none: what is above
/// the work directory's mount cannot be written.
pub(super) fn above(spec: &SandboxSpec) -> Vec<Step> {
    if spec.hardening() == Hardening::Strict {
        return Vec::new();
    }
    let work_dir = spec.work_dir().as_str();
    let ends = work_dir.match_indices('/').skip(1).map(|(end, _)| end);
    let mut steps: Vec<Step> = ends
        .map(|end| Step {
            path: work_dir.as_bytes()[..end].to_vec(),
            below: None,
        })
        .collect();
    // A mount point itself cannot be moved or removed, and is the guest's.
    if spec.storage() == Storage::Root {
        steps.push(step(spec.work_dir(), GuestPath::work_dir()));
    }
    steps
}

/// Every distinct directory on the way to one of the paths, outermost first.
pub(super) fn ancestors<'a>(
    work_dir: &WorkDir,
    paths: impl IntoIterator<Item = &'a GuestPath>,
) -> Vec<Step> {
    let distinct: BTreeSet<GuestPath> = paths.into_iter().flat_map(GuestPath::ancestors).collect();
    let steps = distinct.into_iter().map(|path| step(work_dir, path));
    steps.collect()
}

/// One directory that is looked at.
pub(super) fn step(work_dir: &WorkDir, path: GuestPath) -> Step {
    Step {
        path: path.absolute(work_dir),
        below: Some(path),
    }
}

/// A copy sees the sandbox's root and the work directory's volume, and nothing
/// else that is mounted below.
pub(super) fn check_mounts<'a>(
    work_dir: &WorkDir,
    mounts: &[String],
    paths: impl IntoIterator<Item = &'a GuestPath>,
) -> Result<(), Refusal> {
    let below: Vec<GuestPath> = mounts
        .iter()
        .filter_map(|mount| GuestPath::resolve(work_dir, mount).ok())
        .filter(|mount| !mount.is_work_dir())
        .collect();
    for path in paths {
        let hidden = below
            .iter()
            .find(|mount| path == *mount || path.is_below(mount));
        if let Some(mount) = hidden {
            return Err(path.refused(FileRefusal::MountHidden {
                mount: mount.to_string(),
            }));
        }
    }
    Ok(())
}

/// Most directories that are measured, the outermost ones.
const MEASURED: usize = 64;

/// Directories below which several files are wanted, each worth measuring;
/// outermost first.
pub(super) fn shared(paths: &[GuestPath]) -> Vec<GuestPath> {
    let mut counts: BTreeMap<GuestPath, usize> = BTreeMap::new();
    for path in paths {
        let above = path.ancestors().chain([GuestPath::work_dir()]);
        for directory in above {
            *counts.entry(directory).or_default() += 1;
        }
    }
    let shared = counts.into_iter().filter(|(_, count)| *count > 1);
    let mut shared: Vec<GuestPath> = shared.map(|(path, _)| path).collect();
    shared.sort_by_key(|path| path.names().count());
    shared.truncate(MEASURED);
    shared
}

/// Which copies to make: a directory as a whole, with everything below, where
/// what else is in it costs less than the copies that this saves.
pub(super) fn copies(
    paths: &[GuestPath],
    sizes: &[u64],
    measured: &BTreeMap<GuestPath, Held>,
) -> Vec<Copy> {
    let planner = Planner {
        paths,
        sizes,
        measured,
    };
    let all: Vec<usize> = (0..paths.len()).collect();
    planner.cheapest(&GuestPath::work_dir(), &all).1
}

struct Planner<'a> {
    paths: &'a [GuestPath],
    sizes: &'a [u64],
    measured: &'a BTreeMap<GuestPath, Held>,
}

impl Planner<'_> {
    /// The cheapest copies of files below a directory, and what they cost, in
    /// bytes that stream by in the same time.
    fn cheapest(&self, directory: &GuestPath, files: &[usize]) -> (u64, Vec<Copy>) {
        let mut below: BTreeMap<GuestPath, Vec<usize>> = BTreeMap::new();
        let (mut cost, mut copies) = (0_u64, Vec::new());
        for &file in files {
            match self.next_below(directory, &self.paths[file]) {
                Some(next) => below.entry(next).or_default().push(file),
                None => {
                    cost = cost.saturating_add(COPY_BYTES);
                    copies.push(Copy::File(file));
                }
            }
        }
        for (next, files) in below {
            let (more, rest) = self.cheapest(&next, &files);
            cost = cost.saturating_add(more);
            copies.extend(rest);
        }
        let Some(held) = self.measured.get(directory).filter(|_| files.len() > 1) else {
            return (cost, copies);
        };
        let wanted: u64 = files.iter().filter_map(|&file| self.sizes.get(file)).sum();
        let other_entries = held.entries.saturating_sub(files.len() as u64);
        let whole = COPY_BYTES
            .saturating_add(held.bytes.saturating_sub(wanted))
            .saturating_add(other_entries.saturating_mul(COPY_BYTES / COPY_ENTRIES));
        if whole >= cost {
            return (cost, copies);
        }
        let copy = Copy::Directory {
            path: directory.clone(),
            files: files.to_vec(),
            // What the guest said may be wrong by now; twice as much is not.
            most: Held {
                entries: held.entries.saturating_mul(2).saturating_add(64),
                bytes: held.bytes.saturating_mul(2).saturating_add(COPY_BYTES),
            },
        };
        (whole, vec![copy])
    }

    /// The directory between this one and a file below it, if there is one.
    fn next_below(&self, directory: &GuestPath, file: &GuestPath) -> Option<GuestPath> {
        file.ancestors().find(|above| above.is_below(directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade::Image;

    fn path(text: &str) -> GuestPath {
        GuestPath::new(text).unwrap()
    }

    fn spec(hardening: Hardening, storage: Storage, work_dir: &str) -> std::sync::Arc<SandboxSpec> {
        SandboxSpec::builder("test")
            .image(Image::reference("test"))
            .hardening(hardening)
            .storage(storage)
            .work_dir(work_dir)
            .build()
            .unwrap()
    }

    fn above_of(hardening: Hardening, storage: Storage, work_dir: &str) -> Vec<String> {
        let steps = above(&spec(hardening, storage, work_dir));
        let paths = steps
            .into_iter()
            .map(|step| String::from_utf8(step.path).unwrap());
        paths.collect()
    }

    #[test]
    fn what_the_guest_could_swap_above_the_work_directory_is_looked_at() {
        let none: [&str; 0] = [];
        assert_eq!(above_of(Hardening::Strict, Storage::Tmpfs, "/a/b/c"), none);
        assert_eq!(above_of(Hardening::AsImage, Storage::Tmpfs, "/work"), none);
        assert_eq!(
            above_of(Hardening::AsImage, Storage::Tmpfs, "/a/b/c"),
            ["/a", "/a/b"]
        );
        assert_eq!(
            above_of(Hardening::AsImage, Storage::Root, "/a/b"),
            ["/a", "/a/b"]
        );
        assert_eq!(
            above_of(Hardening::AsImage, Storage::Root, "/work"),
            ["/work"]
        );
    }

    #[test]
    fn each_directory_on_the_way_is_looked_at_once_outermost_first() {
        let work_dir = WorkDir::default();
        let paths = [path("a/b/x"), path("a/b/y"), path("a/z"), path("top")];
        let steps = ancestors(&work_dir, &paths);
        let found: Vec<&[u8]> = steps.iter().map(|step| step.path.as_slice()).collect();
        assert_eq!(found, [b"/work/a".as_slice(), b"/work/a/b"]);
    }

    #[test]
    fn a_path_on_a_mount_that_no_copy_sees_is_refused() {
        let work_dir = WorkDir::default();
        let mounts = ["/", "/work", "/tmp", "/work/run", "/work-too"].map(str::to_owned);
        let check = |name: &str| check_mounts(&work_dir, &mounts, [&path(name)]);
        assert!(check("a").is_ok());
        assert!(check("running").is_ok());
        for hidden in ["run", "run/a"] {
            let refusal = check(hidden).unwrap_err();
            assert_eq!(refusal.code(), "file_mount_hidden");
        }
    }

    #[test]
    fn files_of_one_directory_are_one_copy_when_little_else_is_in_it() {
        let paths = [
            path("a/1"),
            path("a/2"),
            path("b/1"),
            path("b/2"),
            path("c"),
        ];
        let sizes = [10; 5];
        let measured = BTreeMap::from([
            (
                path("a"),
                Held {
                    entries: 3,
                    bytes: 30,
                },
            ),
            (
                path("b"),
                Held {
                    entries: 3,
                    bytes: 1 << 30,
                },
            ),
        ]);
        let copies = copies(&paths, &sizes, &measured);
        assert_eq!(copies.len(), 4);
        let whole = copies.iter().find_map(|copy| match copy {
            Copy::Directory { path, files, .. } => Some((path.to_string(), files.clone())),
            Copy::File(_) => None,
        });
        assert_eq!(whole, Some(("a".to_owned(), vec![0, 1])));
        assert!(copies.contains(&Copy::File(2)) && copies.contains(&Copy::File(4)));
    }

    #[test]
    fn a_tree_is_one_copy_when_that_is_cheaper_than_its_parts() {
        let held = |entries, bytes| Held { entries, bytes };
        let paths: Vec<GuestPath> = (0..20).map(|at| path(&format!("t/{at}/f"))).collect();
        let mut measured = BTreeMap::from([(path("t"), held(40, 200))]);
        measured.insert(GuestPath::work_dir(), held(5000, 1 << 30));
        let copies = super::copies(&paths, &[10; 20], &measured);
        let [
            Copy::Directory {
                path: whole, files, ..
            },
        ] = copies.as_slice()
        else {
            panic!("{copies:?}");
        };
        assert_eq!((whole.to_string(), files.len()), ("t".to_owned(), 20));
        // And its parts when the tree holds much else.
        measured.insert(path("t"), held(40, 1 << 30));
        let copies = super::copies(&paths, &[10; 20], &measured);
        assert_eq!(copies.len(), 20);
    }

    #[test]
    fn a_directory_that_could_not_be_measured_is_not_copied_as_a_whole() {
        let paths = [path("a/1"), path("a/2")];
        assert_eq!(shared(&paths), [GuestPath::work_dir(), path("a")]);
        let copies = copies(&paths, &[1, 1], &BTreeMap::new());
        assert_eq!(copies, [Copy::File(0), Copy::File(1)]);
    }
}
