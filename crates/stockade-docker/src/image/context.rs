//! What is in a build directory: whether it has changed since it was looked
//! at, and a digest of what it is.
//!
//! The look is cheap (names, sizes, times and numbers of files, as the file
//! system tells them) and is taken before every use; the digest reads every
//! file, and is taken when the look says that something has changed. The
//! digest is of content only, so that two checkouts of the same files are the
//! same to it, whatever their times are.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::names;

/// Deepest directory that is looked into: far deeper than sources are, and a
/// depth that every thread's stack holds.
const DEPTH: usize = 256;

/// Most entries of a build directory.
const ENTRIES: usize = 65_536;

/// Most bytes of all its files.
const BYTES: u64 = 1024 * 1024 * 1024;

/// How much of a file is read at once.
const CHUNK: usize = 64 * 1024;

/// A build directory, as it was when it was looked at.
#[derive(Debug)]
pub(super) struct Context {
    directory: PathBuf,
    entries: Vec<Entry>,
    stamp: Stamp,
}

/// What the file system says of a whole directory. Equal stamps are of equal
/// content, as far as a file system tells of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(String);

/// Why a directory is no use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It never was any.
    Refused(String),
    /// It changed while it was read.
    Changed(String),
    /// Nobody waits any more.
    Abandoned,
}

/// Ends work on another thread when it is dropped.
#[derive(Debug, Default)]
pub(super) struct StopOnDrop(Arc<AtomicBool>);

/// Whether that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Stopped(Arc<AtomicBool>);

#[derive(Debug)]
struct Entry {
    /// Below the directory.
    path: PathBuf,
    kind: Kind,
    mode: u32,
    size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    /// Neither is sent to the engine.
    Other,
}

impl Context {
    /// Looks at a directory with a Dockerfile. Blocks.
    pub(super) fn look(directory: &Path, stopped: &Stopped) -> Result<Self, Unfit> {
        let directory = fs::canonicalize(directory).map_err(|error| no_directory(&error))?;
        if !directory.is_dir() {
            return Err(Unfit::Refused("it is not a directory".to_owned()));
        }
        let dockerfile = directory.join("Dockerfile");
        if !dockerfile.is_file() {
            return Err(Unfit::Refused("there is no Dockerfile in it".to_owned()));
        }
        let mut found = Found::default();
        found.below(&directory, Path::new(""), stopped)?;
        Ok(Self {
            directory,
            entries: found.entries,
            stamp: Stamp(names::hex(&found.hash.finalize())),
        })
    }

    /// The directory, without links on the way.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// The digest of what is in it. Blocks, for as long as it takes to read it.
    pub(super) fn digest(&self, stopped: &Stopped) -> Result<String, Unfit> {
        let mut hash = Sha256::new();
        for entry in &self.entries {
            part(&mut hash, entry.path.as_os_str());
            hash.update([entry.kind as u8]);
            hash.update(entry.mode.to_le_bytes());
            let path = self.directory.join(&entry.path);
            match entry.kind {
                Kind::File => content(&mut hash, entry, &path, stopped)?,
                Kind::Link => {
                    let to = fs::read_link(&path).map_err(|error| changed(&entry.path, &error))?;
                    part(&mut hash, to.as_os_str());
                }
                Kind::Directory | Kind::Other => {}
            }
        }
        let mut digest = names::hex(&hash.finalize());
        digest.truncate(32);
        Ok(digest)
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    entries: Vec<Entry>,
    bytes: u64,
    hash: Sha256,
}

impl Found {
    /// Takes in everything below a directory, in the order of names.
    fn below(&mut self, root: &Path, folder: &Path, stopped: &Stopped) -> Result<(), Unfit> {
        stopped.check()?;
        if folder.components().count() > DEPTH {
            return Err(Unfit::Refused(format!(
                "it has directories more than {DEPTH} levels deep"
            )));
        }
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => changed(folder, &error),
            _ => Unfit::Refused(format!("{} cannot be read ({error})", shown(folder))),
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(root.join(folder)).map_err(unreadable)? {
            names.push(entry.map_err(unreadable)?.file_name());
            if self.entries.len() + names.len() > ENTRIES {
                return Err(Unfit::Refused(format!(
                    "it holds more than {ENTRIES} files and directories"
                )));
            }
        }
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let facts = fs::symlink_metadata(root.join(&path));
            let facts = facts.map_err(|error| changed(&path, &error))?;
            let kind = self.take(path.clone(), &facts)?;
            if kind == Kind::Directory {
                self.below(root, &path, stopped)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf, facts: &Metadata) -> Result<Kind, Unfit> {
        let kind = Kind::of(facts);
        part(&mut self.hash, path.as_os_str());
        self.hash.update([kind as u8]);
        self.hash.update(facts.mode().to_le_bytes());
        // Times and numbers of directories change with what is in them, which
        // is looked at itself.
        if kind != Kind::Directory {
            for number in [facts.size(), facts.ino(), facts.dev()] {
                self.hash.update(number.to_le_bytes());
            }
            for number in [
                facts.mtime(),
                facts.mtime_nsec(),
                facts.ctime(),
                facts.ctime_nsec(),
            ] {
                self.hash.update(number.to_le_bytes());
            }
        }
        let size = if kind == Kind::File { facts.size() } else { 0 };
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > BYTES {
            return Err(Unfit::Refused(format!(
                "it holds more than {} MiB",
                BYTES / (1024 * 1024)
            )));
        }
        self.entries.push(Entry {
            path,
            kind,
            mode: facts.mode() & 0o777,
            size,
        });
        Ok(kind)
    }
}

impl Kind {
    fn of(facts: &Metadata) -> Self {
        let kind = facts.file_type();
        match () {
            () if kind.is_file() => Self::File,
            () if kind.is_dir() => Self::Directory,
            () if kind.is_symlink() => Self::Link,
            () => Self::Other,
        }
    }
}

impl StopOnDrop {
    pub(super) fn stopped(&self) -> Stopped {
        Stopped(Arc::clone(&self.0))
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Stopped {
    fn check(&self) -> Result<(), Unfit> {
        if self.0.load(Ordering::Relaxed) {
            Err(Unfit::Abandoned)
        } else {
            Ok(())
        }
    }
}

fn content(hash: &mut Sha256, entry: &Entry, path: &Path, stopped: &Stopped) -> Result<(), Unfit> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => changed(&entry.path, &error),
        _ => Unfit::Refused(format!("{} cannot be read ({error})", shown(&entry.path))),
    };
    hash.update(entry.size.to_le_bytes());
    let mut file = open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        let error = io::Error::other("it is no file any more");
        return Err(changed(&entry.path, &error));
    }
    let mut chunk = vec![0; CHUNK];
    let mut read = 0;
    loop {
        stopped.check()?;
        match file.read(&mut chunk).map_err(unreadable)? {
            0 => break,
            more => {
                read += more as u64;
                hash.update(&chunk[..more]);
            }
        }
        if read > entry.size {
            break;
        }
    }
    if read == entry.size {
        Ok(())
    } else {
        Err(Unfit::Changed(shown(&entry.path)))
    }
}

/// A part with its length, so that no two lists of parts are one text.
fn part(hash: &mut Sha256, text: &OsStr) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

/// Opens what was a file when it was looked at, and follows and waits for
/// nothing that has come in its place.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(path)
}

fn changed(path: &Path, error: &io::Error) -> Unfit {
    Unfit::Changed(format!("{} ({error})", shown(path)))
}

fn no_directory(error: &io::Error) -> Unfit {
    Unfit::Refused(match error.kind() {
        io::ErrorKind::NotFound => "there is no such directory".to_owned(),
        _ => format!("it cannot be looked at ({error})"),
    })
}

fn shown(path: &Path) -> String {
    let path = path.display().to_string();
    if path.is_empty() {
        "it".to_owned()
    } else {
        path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    fn directory() -> TempDir {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("Dockerfile"), "FROM scratch\n").unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/a"), "one").unwrap();
        folder
    }

    fn seen(folder: &Path) -> (Stamp, String) {
        let stop = StopOnDrop::default();
        let context = Context::look(folder, &stop.stopped()).unwrap();
        let digest = context.digest(&stop.stopped()).unwrap();
        (context.stamp().clone(), digest)
    }

    #[test]
    fn a_directory_that_is_too_deep_is_refused_and_no_stack_overflows() {
        let folder = directory();
        let level = |depth: usize| folder.path().join("d/".repeat(depth));
        fs::create_dir_all(level(DEPTH)).unwrap();
        seen(folder.path());
        fs::create_dir_all(level(DEPTH + 500)).unwrap();
        assert!(refused(folder.path()).contains("levels deep"));
    }

    #[test]
    fn what_is_no_file_any_more_is_neither_waited_for_nor_followed() {
        let folder = directory();
        let stop = StopOnDrop::default();
        let file = folder.path().join("src/a");
        for change in ["link", "pipe"] {
            let context = Context::look(folder.path(), &stop.stopped()).unwrap();
            fs::remove_file(&file).unwrap();
            match change {
                "link" => symlink("/dev/zero", &file).unwrap(),
                _ => rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &file,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::RUSR,
                    0,
                )
                .unwrap(),
            }
            assert!(context.digest(&stop.stopped()).is_err(), "{change}");
            fs::remove_file(&file).unwrap();
            fs::write(&file, "one").unwrap();
        }
    }

    fn refused(folder: &Path) -> String {
        let stop = StopOnDrop::default();
        match Context::look(folder, &stop.stopped()) {
            Err(Unfit::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_the_same_has_one_digest_wherever_it_is_and_a_stamp_of_its_own() {
        let (one, two) = (directory(), directory());
        let (first, second) = (seen(one.path()), seen(two.path()));
        assert_eq!(first.1, second.1);
        assert_ne!(first.0, second.0);
        assert_eq!(seen(one.path()), first);
    }

    #[test]
    fn every_change_shows_in_the_stamp_and_every_change_of_content_in_the_digest() {
        type Change = fn(&Path);
        let changes: [(&str, Change, bool); 8] = [
            (
                "content",
                |at| fs::write(at.join("src/a"), "two").unwrap(),
                true,
            ),
            (
                "name",
                |at| fs::rename(at.join("src/a"), at.join("src/b")).unwrap(),
                true,
            ),
            ("new file", |at| fs::write(at.join("b"), "").unwrap(), true),
            (
                "new directory",
                |at| fs::create_dir(at.join("d")).unwrap(),
                true,
            ),
            (
                "new link",
                |at| symlink("src/a", at.join("l")).unwrap(),
                true,
            ),
            (
                "removal",
                |at| fs::remove_file(at.join("src/a")).unwrap(),
                true,
            ),
            (
                "mode",
                |at| {
                    fs::set_permissions(at.join("src/a"), fs::Permissions::from_mode(0o755))
                        .unwrap()
                },
                true,
            ),
            (
                "the same once more",
                |at| fs::write(at.join("src/a"), "one").unwrap(),
                false,
            ),
        ];
        for (name, change, is_content) in changes {
            let folder = directory();
            let before = seen(folder.path());
            // A clock of coarse ticks must not hide a write of equal length.
            let times = fs::metadata(folder.path().join("src/a")).unwrap();
            while fs::metadata(folder.path().join("src/a"))
                .is_ok_and(|now| now.ctime_nsec() == times.ctime_nsec())
            {
                fs::set_permissions(folder.path().join("src/a"), times.permissions()).unwrap();
            }
            change(folder.path());
            let after = seen(folder.path());
            assert_ne!(after.0, before.0, "{name}");
            assert_eq!(after.1 != before.1, is_content, "{name}");
        }
    }

    #[test]
    fn what_nothing_can_be_built_from_is_refused_with_the_reason() {
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        assert!(refused(&at.join("missing")).contains("no such directory"));
        assert!(refused(at).contains("no Dockerfile"));
        fs::create_dir(at.join("Dockerfile")).unwrap();
        assert!(refused(at).contains("no Dockerfile"));
        fs::write(at.join("file"), "").unwrap();
        assert!(refused(&at.join("file")).contains("not a directory"));
    }

    #[test]
    fn a_directory_that_is_too_large_is_refused_before_it_is_read() {
        let folder = directory();
        let file = File::create(folder.path().join("large")).unwrap();
        file.set_len(BYTES + 1).unwrap();
        assert!(refused(folder.path()).contains("more than 1024 MiB"));
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read_is_a_change() {
        let folder = directory();
        let stop = StopOnDrop::default();
        let context = Context::look(folder.path(), &stop.stopped()).unwrap();
        fs::write(folder.path().join("src/a"), "").unwrap();
        let digest = context.digest(&stop.stopped());
        assert_eq!(digest, Err(Unfit::Changed("src/a".to_owned())));
    }

    #[test]
    fn nobody_reads_on_for_nobody() {
        let folder = directory();
        let stopped = StopOnDrop::default().stopped();
        let looked = Context::look(folder.path(), &stopped);
        assert_eq!(looked.err(), Some(Unfit::Abandoned));
    }
}
