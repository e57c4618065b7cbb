//! Where files of a sandbox land on the host.
//!
//! What the user named (a folder, a destination) is opened as it is; what the
//! guest named below it is one name at a time, never `..`, and never through
//! a link. Everything is written under temporary names first, so that no half
//! file is ever seen and nothing lands unless all of it can.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::fs::{
    futimens, linkat, mkdirat, open, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use stockade::files::FileContent;

/// A place below a folder that the user named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The user's folder; links in it are the user's own.
    folder: PathBuf,
    /// Names below it, which may be the guest's; never empty, `.` or `..`,
    /// and none of them is followed when it is a link.
    names: Vec<OsString>,
}

/// A file, or a directory, to land.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) place: Place,
    /// Nothing for a directory.
    pub(crate) content: Option<FileContent>,
    pub(crate) mode: u32,
    pub(crate) modified: SystemTime,
}

/// What has landed.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Place {
    /// The place of these names below a folder.
    pub(crate) fn below<'a>(
        folder: &Path,
        names: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, String> {
        let names: Vec<OsString> = names
            .into_iter()
            .map(|name| OsString::from_vec(name.to_vec()))
            .collect();
        let unfit = |name: &OsString| {
            let bytes = name.as_bytes();
            bytes.is_empty()
                || bytes == b"."
                || bytes == b".."
                || bytes.contains(&b'/')
                || bytes.contains(&0)
        };
        if let Some(name) = names.iter().find(|name| unfit(name)) {
            return Err(format!("{name:?} is no name of a file"));
        }
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        Ok(Self {
            folder: folder.to_owned(),
            names,
        })
    }

    /// A place that the user named as a whole.
    pub(crate) fn named(path: &Path) -> Result<Self, String> {
        let Some(name) = path.file_name() else {
            return Err(format!(
                "`{}` names no file; give it a name",
                path.display()
            ));
        };
        Self::below(path.parent().unwrap_or(Path::new("")), [name.as_bytes()])
    }

    /// The whole path, for people and for comparing.
    pub(crate) fn path(&self) -> PathBuf {
        let folder = if self.folder == Path::new(".") {
            Path::new("")
        } else {
            &self.folder
        };
        self.names
            .iter()
            .fold(folder.to_owned(), |path, name| path.join(name))
    }

    /// What is wrong with landing a file here, as far as can be told before
    /// anything is made.
    pub(crate) fn obstacle(&self, overwrite: bool) -> Option<String> {
        let shown = self.path();
        let shown = shown.display();
        let mut path = self.folder.clone();
        for (at, name) in self.names.iter().enumerate() {
            path.push(name);
            let last = at + 1 == self.names.len();
            let kind = match path.symlink_metadata() {
                Ok(metadata) => metadata.file_type(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                Err(error) => return Some(format!("`{shown}` cannot be looked at: {error}")),
            };
            let path = path.display();
            if kind.is_symlink() {
                return Some(format!(
                    "`{path}` is a link, and links are not followed; remove it"
                ));
            }
            match (last, kind.is_dir()) {
                (false, true) => {}
                (false, false) => return Some(format!("`{path}` is no directory")),
                (true, true) => return Some(format!("`{path}` is a directory")),
                (true, false) if overwrite && kind.is_file() => {}
                (true, false) if overwrite => {
                    return Some(format!("`{path}` is no regular file; remove it"));
                }
                (true, false) => {
                    return Some(format!("`{path}` exists; give --overwrite to replace it"));
                }
            }
        }
        None
    }
}

/// Lands everything or, unless the host fails in its last step, nothing.
///
/// The error names everything that is in the way.
pub(crate) async fn land(landings: &[Landing], overwrite: bool) -> Result<Landed, Vec<String>> {
    check(landings, overwrite)?;
    let mut staged = Staged::default();
    for landing in landings {
        if let Err(error) = staged.stage(landing).await {
            staged.undo();
            let shown = landing.place.path();
            return Err(vec![format!(
                "`{}` cannot be written: {error}; nothing has landed",
                shown.display()
            )]);
        }
    }
    staged.commit(overwrite)
}

fn check(landings: &[Landing], overwrite: bool) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    let mut seen = BTreeMap::new();
    for landing in landings {
        let path = landing.place.path();
        let directory = landing.content.is_none();
        match seen.insert(path.clone(), directory) {
            Some(true) if directory => continue,
            Some(_) => faults.push(format!("two outputs both go to `{}`", path.display())),
            None => {}
        }
        if !directory {
            faults.extend(landing.place.obstacle(overwrite));
        }
    }
    let shadowed = seen.keys().filter(|path| {
        path.ancestors()
            .skip(1)
            .any(|above| seen.get(above) == Some(&false))
    });
    faults.extend(shadowed.map(|path| {
        format!(
            "`{}` would go below another output, which is a file",
            path.display()
        )
    }));
    faults.sort();
    faults.dedup();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Files under temporary names, and directories that were made for them.
#[derive(Default)]
struct Staged {
    files: Vec<StagedFile>,
    made: Vec<(Arc<OwnedFd>, OsString)>,
    made_folders: BTreeSet<PathBuf>,
    /// Directories that are open, each once: descriptors are few.
    open: BTreeMap<PathBuf, Arc<OwnedFd>>,
}

struct StagedFile {
    directory: Arc<OwnedFd>,
    /// The name that it has, while it must be removed when something fails.
    temporary: OsString,
    name: OsString,
    shown: PathBuf,
    bytes: u64,
}

impl Staged {
    async fn stage(&mut self, landing: &Landing) -> io::Result<()> {
        let Some(content) = &landing.content else {
            return self
                .directory(&landing.place.folder, &landing.place.names)
                .map(drop);
        };
        let Some((name, above)) = landing.place.names.split_last() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let directory = self.directory(&landing.place.folder, above)?;
        let temporary = temporary_name()?;
        // The bits of the guest's file, less what the user's mask takes away;
        // the owner can always read and replace what is theirs.
        let mode = Mode::from_raw_mode(landing.mode & 0o777 | 0o600);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&*directory, &temporary, flags, mode)?;
        let file = File::from(file);
        let handle = file.try_clone()?;
        self.files.push(StagedFile {
            directory,
            temporary,
            name: name.clone(),
            shown: landing.place.path(),
            bytes: content.len(),
        });
        let mut writer = tokio::fs::File::from_std(file);
        content.copy_to(&mut writer).await?;
        // The last write of all, so that the time stays as it is set.
        drop(writer.into_std().await);
        let time = timespec(landing.modified);
        futimens(
            &handle,
            &Timestamps {
                last_access: time,
                last_modification: time,
            },
        )?;
        Ok(())
    }

    /// Opens a directory below a folder of the user's, and makes what is missing.
    fn directory(&mut self, folder: &Path, names: &[OsString]) -> io::Result<Arc<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if self.made_folders.insert(folder.to_owned()) {
            std::fs::create_dir_all(folder)?;
        }
        let mut path = folder.to_owned();
        let mut at = match self.open.get(&path) {
            Some(open) => Arc::clone(open),
            None => self.opened(&path, open(folder, flags, Mode::empty())?),
        };
        for name in names {
            path.push(name);
            if let Some(open) = self.open.get(&path) {
                at = Arc::clone(open);
                continue;
            }
            match mkdirat(&*at, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.made.push((Arc::clone(&at), name.clone())),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let below = openat(&*at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
            at = self.opened(&path, below);
        }
        Ok(at)
    }

    fn opened(&mut self, path: &Path, directory: OwnedFd) -> Arc<OwnedFd> {
        let directory = Arc::new(directory);
        self.open.insert(path.to_owned(), Arc::clone(&directory));
        directory
    }

    /// Gives every file its name. When one cannot have it, those that have are
    /// taken back, unless they have replaced what was there.
    fn commit(mut self, overwrite: bool) -> Result<Landed, Vec<String>> {
        let mut landed = Landed::default();
        for at in 0..self.files.len() {
            let file = &self.files[at];
            let Err(error) = file.give_name(overwrite) else {
                landed.files += 1;
                landed.bytes += file.bytes;
                continue;
            };
            let state = match (overwrite, landed.files) {
                (true, files) if files > 0 => format!("{files} files have landed before it"),
                _ => "nothing has landed".to_owned(),
            };
            let shown = file.shown.display();
            let text = format!("`{shown}` cannot be put in its place: {error}; {state}");
            if !overwrite {
                for file in &mut self.files[..at] {
                    file.temporary.clone_from(&file.name);
                }
            }
            self.undo();
            return Err(vec![text]);
        }
        Ok(landed)
    }

    /// Removes the files, and the directories that nobody needs then.
    fn undo(self) {
        for file in &self.files {
            // What cannot be removed is a file with a name that says what it is.
            let _ = unlinkat(&*file.directory, &file.temporary, AtFlags::empty());
        }
        for (at, name) in self.made.iter().rev() {
            let _ = unlinkat(&**at, name, AtFlags::REMOVEDIR);
        }
    }
}

impl StagedFile {
    fn give_name(&self, overwrite: bool) -> io::Result<()> {
        let (at, from, to) = (&*self.directory, &self.temporary, &self.name);
        if overwrite {
            // A rename replaces a link and never follows it; it is refused
            // all the same, as it was when it was looked for.
            return match statat(at, to, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                    Err(io::Error::other("something else took its place"))
                }
                Ok(_) | Err(Errno::NOENT) => Ok(renameat(at, from, at, to)?),
                Err(error) => Err(error.into()),
            };
        }
        match renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // Not every file system can; a hard link is as exclusive.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(at, from, at, to, AtFlags::empty())?;
                Ok(unlinkat(at, from, AtFlags::empty())?)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A name that nobody else has, and that says whose it is.
fn temporary_name() -> io::Result<OsString> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!(".stockade-{:016x}.part", u64::from_le_bytes(bytes)).into())
}

fn timespec(time: SystemTime) -> Timespec {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: since.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    /// Names in a folder, sorted.
    fn entries(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn landing(folder: &Path, path: &str, content: Option<&str>) -> Landing {
        Landing {
            place: Place::below(folder, path.split('/').map(str::as_bytes)).unwrap(),
            content: content.map(|text| FileContent::from_bytes(text.to_owned().into())),
            mode: 0o4755,
            modified: UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        }
    }

    async fn landed(
        folder: &Path,
        files: &[(&str, Option<&str>)],
        overwrite: bool,
    ) -> Result<Landed, Vec<String>> {
        let landings: Vec<Landing> = files
            .iter()
            .map(|(path, content)| landing(folder, path, *content))
            .collect();
        land(&landings, overwrite).await
    }

    #[tokio::test]
    async fn a_directory_of_many_files_takes_one_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        let mut staged = Staged::default();
        for number in 0..100 {
            let landing = landing(folder.path(), &format!("a/{number}"), Some("x"));
            staged.stage(&landing).await.unwrap();
        }
        // Other tests of this process may have some open, too.
        assert!(open() < before + 50, "{} more", open() - before);
        staged.commit(false).unwrap();
        assert_eq!(entries(&folder.path().join("a")).len(), 100);
    }

    #[tokio::test]
    async fn files_land_with_their_mode_and_time_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let result = landed(
            folder.path(),
            &[("a/b", Some("text")), ("empty", None)],
            false,
        )
        .await
        .unwrap();
        assert_eq!((result.files, result.bytes), (1, 4));
        assert_eq!(entries(folder.path()), ["a", "empty"]);
        assert_eq!(entries(&folder.path().join("a")), ["b"]);
        let metadata = folder.path().join("a/b").metadata().unwrap();
        assert_eq!(
            metadata.permissions().mode() & 0o7700,
            0o700,
            "setuid never lands"
        );
        assert_eq!(
            metadata.modified().unwrap(),
            UNIX_EPOCH + Duration::from_secs(1_000_000_000)
        );
    }

    #[tokio::test]
    async fn what_exists_is_refused_by_name_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "old").unwrap();
        let files = [("new", Some("new")), ("old", Some("new"))];
        let faults = landed(folder.path(), &files, false).await.unwrap_err();
        assert!(
            faults.len() == 1 && faults[0].contains("old") && faults[0].contains("--overwrite"),
            "{faults:?}"
        );
        assert_eq!(entries(folder.path()), ["old"]);
        landed(folder.path(), &files, true).await.unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("old")).unwrap(),
            "new"
        );
        assert_eq!(entries(folder.path()), ["new", "old"]);
    }

    #[tokio::test]
    async fn a_link_is_never_followed_neither_as_the_file_nor_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "kept").unwrap();
        symlink(outside.path().join("secret"), folder.path().join("file")).unwrap();
        symlink(outside.path(), folder.path().join("way")).unwrap();
        symlink(outside.path().join("nothing"), folder.path().join("broken")).unwrap();
        for overwrite in [false, true] {
            for path in ["file", "way/secret", "way/new", "broken"] {
                let faults = landed(folder.path(), &[(path, Some("no"))], overwrite)
                    .await
                    .unwrap_err();
                assert!(faults[0].contains("is a link"), "{path}: {faults:?}");
            }
        }
        assert_eq!(entries(outside.path()), ["secret"]);
        assert_eq!(
            fs::read_to_string(outside.path().join("secret")).unwrap(),
            "kept"
        );
    }

    #[tokio::test]
    async fn a_directory_through_a_link_is_refused_when_it_is_opened_too() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), folder.path().join("way")).unwrap();
        let faults = landed(folder.path(), &[("new", Some("x")), ("way", None)], false)
            .await
            .unwrap_err();
        assert!(faults[0].contains("nothing has landed"), "{faults:?}");
        assert_eq!(entries(folder.path()), ["way"]);
    }

    #[tokio::test]
    async fn two_outputs_never_share_a_place_and_none_is_below_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let faults = landed(folder.path(), &[("a", Some("1")), ("a", Some("2"))], false)
            .await
            .unwrap_err();
        assert!(faults[0].contains("both go to"), "{faults:?}");
        let faults = landed(
            folder.path(),
            &[("a", Some("1")), ("a/b", Some("2"))],
            false,
        )
        .await
        .unwrap_err();
        assert!(faults[0].contains("below another output"), "{faults:?}");
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn a_name_of_the_guest_cannot_lead_out_of_the_folder() {
        for names in [
            &[b"..".as_slice()][..],
            &[b"a", b".."],
            &[b"."],
            &[b""],
            &[b"a/b"],
            &[b"a\0"],
        ] {
            assert!(Place::below(Path::new("out"), names.iter().copied()).is_err());
        }
        let bytes = Place::below(Path::new("out"), [b"\xff\n-".as_slice()]).unwrap();
        assert_eq!(bytes.path().as_os_str().as_bytes(), b"out/\xff\n-");
        assert!(Place::named(Path::new("x/..")).is_err());
        assert_eq!(Place::named(Path::new("x")).unwrap().path(), Path::new("x"));
        assert_eq!(
            Place::named(Path::new("../x")).unwrap().path(),
            Path::new("../x")
        );
    }

    #[tokio::test]
    async fn a_host_that_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let long = "n".repeat(300);
        let place = Place::below(folder.path(), [b"d".as_slice(), long.as_bytes()]).unwrap();
        let bad = Landing {
            place,
            ..landing(folder.path(), "x", Some("x"))
        };
        let place = Place::below(folder.path(), [b"d".as_slice(), long.as_bytes(), b"x"]).unwrap();
        let worse = Landing {
            place,
            ..landing(folder.path(), "x", Some("x"))
        };
        for bad in [bad, worse] {
            let faults = land(&[landing(folder.path(), "d/fine", Some("1")), bad], false)
                .await
                .unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(entries(folder.path()).is_empty());
        }
    }
}
