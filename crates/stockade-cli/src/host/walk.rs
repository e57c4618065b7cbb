//! What a source holds. Nothing but regular files is ever opened, and
//! everything that cannot be sent is named before anything is.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::OFlags;
use stockade::{GuestPath, TransferLimits};

use super::Source;

/// Files and directories to send: directories before what is in them, nothing
/// twice.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) entries: Vec<Entry>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) host: PathBuf,
    pub(crate) guest: GuestPath,
    /// Bytes of a file; nothing for a directory.
    pub(crate) size: Option<u64>,
    pub(crate) mode: u32,
    pub(crate) modified: SystemTime,
    follow: bool,
}

/// What bounds a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Follow links, which are refused otherwise.
    pub(crate) follow: bool,
    /// Most bytes of one file.
    pub(crate) file_bytes: u64,
    /// Most files and directories.
    pub(crate) entries: usize,
}

/// Looks at every source, and names everything that cannot be sent.
pub(crate) fn walk(sources: &[Source], bounds: Bounds) -> Result<Tree, Vec<String>> {
    let mut walk = Walk {
        bounds,
        tree: Tree::default(),
        places: BTreeMap::new(),
        faults: Vec::new(),
        above: Vec::new(),
        full: false,
    };
    for source in sources {
        walk.visit(&source.host, &source.guest);
    }
    walk.check_shadowed();
    if walk.faults.is_empty() {
        Ok(walk.tree)
    } else {
        Err(walk.faults)
    }
}

impl Tree {
    /// Number of files.
    pub(crate) fn files(&self) -> u64 {
        self.entries
            .iter()
            .filter(|entry| entry.size.is_some())
            .count() as u64
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().filter_map(|entry| entry.size).sum()
    }
}

impl Entry {
    /// Opens a file, which may have become something else meanwhile.
    pub(crate) fn open(&self) -> io::Result<File> {
        let (file, _) = open(&self.host, self.follow)?;
        Ok(file)
    }
}

impl Bounds {
    pub(crate) fn new(follow: bool, limits: &TransferLimits, entries: u64) -> Self {
        Self {
            follow,
            file_bytes: limits.max_bytes_per_file,
            entries: usize::try_from(entries).unwrap_or(usize::MAX),
        }
    }
}

struct Walk {
    bounds: Bounds,
    tree: Tree,
    /// Whether each place is a directory, and what of the host goes there.
    places: BTreeMap<GuestPath, (bool, PathBuf)>,
    faults: Vec<String>,
    /// The directories that are open above, to find a loop of links.
    above: Vec<(u64, u64)>,
    full: bool,
}

impl Walk {
    fn visit(&mut self, host: &Path, guest: &GuestPath) {
        if self.full {
            return;
        }
        let metadata = match host.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() && !self.bounds.follow => {
                return self.fault(host, "is a link; give --follow to send what it leads to");
            }
            Ok(metadata) if metadata.is_symlink() => host.metadata(),
            other => other,
        };
        match metadata {
            Ok(metadata) if metadata.is_dir() => self.directory(host, guest, &metadata),
            Ok(metadata) if metadata.is_file() => self.file(host, guest),
            Ok(metadata) => {
                let kind = kind(&metadata);
                self.fault(
                    host,
                    &format!("is {kind}; only files and directories are sent"),
                );
            }
            Err(error) => self.fault(host, &format!("cannot be looked at: {error}")),
        }
    }

    fn file(&mut self, host: &Path, guest: &GuestPath) {
        let metadata = match open(host, self.bounds.follow) {
            Ok((_, metadata)) => metadata,
            Err(error) => return self.fault(host, &format!("cannot be read: {error}")),
        };
        let (size, most) = (metadata.len(), self.bounds.file_bytes);
        if size > most {
            let text = format!("has {size} bytes, and one file may have {most}; split it");
            return self.fault(host, &text);
        }
        if guest.is_work_dir() {
            return self.fault(host, "is a file and cannot take the work directory's place");
        }
        self.take(host, guest, Some(size), &metadata);
    }

    fn directory(&mut self, host: &Path, guest: &GuestPath, metadata: &Metadata) {
        let identity = (metadata.dev(), metadata.ino());
        if self.above.contains(&identity) {
            return self.fault(host, "leads back to a directory that it is in");
        }
        let listed = std::fs::read_dir(host).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut children = match listed {
            Ok(children) => children,
            Err(error) => return self.fault(host, &format!("cannot be listed: {error}")),
        };
        if !guest.is_work_dir() {
            self.take(host, guest, None, metadata);
        }
        children.sort_by_key(std::fs::DirEntry::file_name);
        self.above.push(identity);
        for child in children {
            let path = child.path();
            match super::source::Source::within(&path, guest) {
                Ok(source) => self.visit(&path, &source.guest),
                Err(fault) => self.faults.push(fault),
            }
        }
        self.above.pop();
    }

    fn take(&mut self, host: &Path, guest: &GuestPath, size: Option<u64>, metadata: &Metadata) {
        let directory = size.is_none();
        match self.places.get(guest) {
            Some((true, _)) if directory => return,
            Some((_, other)) => {
                let text = format!("and `{}` both go to `{guest}`", other.display());
                return self.fault(host, &text);
            }
            None => {}
        }
        if self.tree.entries.len() >= self.bounds.entries {
            self.full = true;
            let most = self.bounds.entries;
            let text =
                format!("is one too many: {most} files and directories fit the work directory");
            return self.fault(host, &text);
        }
        self.places
            .insert(guest.clone(), (directory, host.to_owned()));
        // Its owner must be able to put files into a directory.
        let mode = metadata.mode() & 0o777 | if directory { 0o700 } else { 0 };
        self.tree.entries.push(Entry {
            host: host.to_owned(),
            guest: guest.clone(),
            size,
            mode,
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            follow: self.bounds.follow,
        });
    }

    /// A file in whose place another source needs a directory.
    fn check_shadowed(&mut self) {
        let mut faults = Vec::new();
        for (guest, (_, host)) in &self.places {
            let file = guest
                .ancestors()
                .find_map(|above| match self.places.get(&above) {
                    Some((false, file)) => Some(file),
                    _ => None,
                });
            if let Some(file) = file {
                let (file, host) = (file.display(), host.display());
                faults.push(format!(
                    "`{file}` is a file, and `{host}` would go below it"
                ));
            }
        }
        self.faults.extend(faults);
    }

    fn fault(&mut self, host: &Path, text: &str) {
        self.faults.push(format!("`{}` {text}", host.display()));
    }
}

/// Opens a regular file; anything else that took its place meanwhile is not
/// waited for, and not read.
fn open(host: &Path, follow: bool) -> io::Result<(File, Metadata)> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(host)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(io::Error::other("it is no regular file any more"))
    }
}

fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a fifo"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "neither a file nor a directory"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    const BOUNDS: Bounds = Bounds {
        follow: false,
        file_bytes: 1000,
        entries: 100,
    };

    /// A source of this folder, as `in`.
    pub(crate) fn source(folder: &Path) -> Source {
        Source::exactly(folder, GuestPath::new("in").unwrap())
    }

    fn names(tree: &Tree) -> Vec<String> {
        tree.entries
            .iter()
            .map(|entry| entry.guest.to_string())
            .collect()
    }

    #[test]
    fn directories_come_before_what_is_in_them_with_modes_sizes_and_times() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("b/c")).unwrap();
        fs::write(folder.path().join("b/c/d"), "four").unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o4751)).unwrap();
        fs::set_permissions(folder.path().join("b/c"), fs::Permissions::from_mode(0o555)).unwrap();
        let tree = walk(&[source(folder.path())], BOUNDS).unwrap();
        assert_eq!(names(&tree), ["in", "in/a", "in/b", "in/b/c", "in/b/c/d"]);
        assert_eq!((tree.files(), tree.bytes()), (2, 4));
        assert_eq!(tree.entries[1].mode, 0o751);
        assert_eq!(tree.entries[3].mode, 0o755);
        let written = folder
            .path()
            .join("b/c/d")
            .metadata()
            .unwrap()
            .modified()
            .unwrap();
        assert_eq!(tree.entries[4].modified, written);
    }

    #[test]
    fn a_fifo_a_socket_and_a_loop_of_links_are_all_named_and_none_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        symlink(folder.path(), path("loop")).unwrap();
        fs::write(path("file"), "x").unwrap();
        let faults = walk(&[source(folder.path())], BOUNDS).unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
        for (name, word) in [
            ("fifo", "a fifo"),
            ("socket", "a socket"),
            ("loop", "--follow"),
        ] {
            assert!(
                faults
                    .iter()
                    .any(|fault| fault.contains(name) && fault.contains(word)),
                "{faults:?}"
            );
        }
        let follow = Bounds {
            follow: true,
            ..BOUNDS
        };
        let faults = walk(&[source(folder.path())], follow).unwrap_err();
        assert!(
            faults.iter().any(|fault| fault.contains("leads back")),
            "{faults:?}"
        );
    }

    #[test]
    fn a_followed_link_is_sent_as_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("real"), "12345").unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        symlink("nothing", folder.path().join("broken")).unwrap();
        let follow = Bounds {
            follow: true,
            ..BOUNDS
        };
        let faults = walk(&[source(folder.path())], follow).unwrap_err();
        assert!(
            faults.len() == 1 && faults[0].contains("broken"),
            "{faults:?}"
        );
        fs::remove_file(folder.path().join("broken")).unwrap();
        let tree = walk(&[source(folder.path())], follow).unwrap();
        assert_eq!((tree.files(), tree.bytes()), (2, 10));
    }

    #[test]
    fn files_over_the_limit_and_missing_sources_are_all_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("large"), vec![0; 1001]).unwrap();
        fs::write(folder.path().join("right"), vec![0; 1000]).unwrap();
        let missing = Source::exactly(&folder.path().join("none"), GuestPath::new("none").unwrap());
        let faults = walk(&[source(folder.path()), missing], BOUNDS).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].contains("large") && faults[0].contains("1000"),
            "{faults:?}"
        );
        assert!(faults[1].contains("none"), "{faults:?}");
    }

    #[test]
    fn two_sources_may_share_a_directory_but_no_file_and_no_file_has_files_below() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["one", "two"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join(name), "").unwrap();
        }
        let tree = walk(&[source(&path("one")), source(&path("two"))], BOUNDS).unwrap();
        assert_eq!(names(&tree), ["in", "in/one", "in/two"]);
        let faults = walk(&[source(&path("one")), source(&path("one"))], BOUNDS).unwrap_err();
        assert!(faults[0].contains("both go to `in/one`"), "{faults:?}");
        let shadow = Source::exactly(&path("two/two"), GuestPath::new("in/one/x").unwrap());
        let faults = walk(&[source(&path("one")), shadow], BOUNDS).unwrap_err();
        assert!(faults[0].contains("below it"), "{faults:?}");
    }

    #[test]
    fn a_walk_ends_at_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        for at in 0..200 {
            fs::write(folder.path().join(format!("{at:03}")), "").unwrap();
        }
        let faults = walk(&[source(folder.path())], BOUNDS).unwrap_err();
        assert!(faults.len() == 1 && faults[0].contains("100"), "{faults:?}");
    }
}
