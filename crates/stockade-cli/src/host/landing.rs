//! Where files of a sandbox land on the host.
//!
//! What the user named (a folder, a destination) is opened as it is; what the
//! guest named below it is one name at a time, never `..`, and never through
//! a link. Everything is written under temporary names first, so that no half
//! file is ever seen, and that nothing lands unless all of it can where that
//! is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::fs::{
    futimens, linkat, mkdirat, open, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use stockade::files::FileContent;

use super::Place;
use crate::unmet::Unmet;

/// A file, or a directory, to land.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) place: Place,
    /// Nothing for a directory.
    pub(crate) content: Option<FileContent>,
    pub(crate) mode: u32,
    pub(crate) modified: SystemTime,
}

/// What to do about a file that cannot have its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtConflict {
    /// Nothing lands, and all can be asked for again.
    LandNothing,
    /// The others land: what they come from goes away.
    LandTheRest,
}

/// What has landed.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    /// Where files have landed.
    pub(crate) files: BTreeSet<PathBuf>,
    pub(crate) bytes: u64,
    /// What has not, each for a reason of its own.
    pub(crate) in_the_way: Vec<Unmet>,
}

/// Lands what can be landed, or nothing unless all can.
pub(crate) async fn land(landings: &[Landing], overwrite: bool, at_conflict: AtConflict) -> Landed {
    let faults = check(landings, overwrite);
    let careful = at_conflict == AtConflict::LandNothing;
    if careful && !faults.is_empty() {
        return Landed::nothing(faults.into_values());
    }
    let mut staged = Staged::default();
    let mut failed = Vec::new();
    for (at, landing) in landings.iter().enumerate() {
        if faults.contains_key(&at) {
            continue;
        }
        let Err(error) = staged.stage(landing).await else {
            continue;
        };
        let path = landing.place.path();
        let mut text = format!("`{}` cannot be written: {error}", path.display());
        if careful {
            staged.undo();
            text.push_str("; nothing has landed");
            return Landed::nothing([Unmet::host(&path, "not_written", text)]);
        }
        failed.push(Unmet::host(&path, "not_written", text));
    }
    let mut landed = staged.commit(overwrite, at_conflict);
    landed.in_the_way.extend(failed);
    landed.in_the_way.extend(faults.into_values());
    landed.told_once()
}

impl Landed {
    fn nothing(in_the_way: impl IntoIterator<Item = Unmet>) -> Self {
        let landed = Self {
            in_the_way: in_the_way.into_iter().collect(),
            ..Self::default()
        };
        landed.told_once()
    }

    /// Many files may be below one thing that is in the way.
    fn told_once(mut self) -> Self {
        let mut told = BTreeSet::new();
        self.in_the_way
            .retain(|unmet| told.insert(unmet.to_string()));
        self
    }
}

/// What is wrong with each of them, by its number.
fn check(landings: &[Landing], overwrite: bool) -> BTreeMap<usize, Unmet> {
    let mut faults = BTreeMap::new();
    let mut taken: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for (at, landing) in landings.iter().enumerate() {
        let path = landing.place.path();
        let directory = landing.content.is_none();
        if let Some(other) = taken.get(&path) {
            if !(directory && *other) {
                let text = format!("two outputs both go to `{}`", path.display());
                faults.insert(at, Unmet::host(&path, "duplicate", text));
            }
            continue;
        }
        if !directory && let Some(unmet) = landing.place.obstacle(overwrite) {
            faults.insert(at, unmet);
        }
        taken.insert(path, directory);
    }
    for (at, landing) in landings.iter().enumerate() {
        let path = landing.place.path();
        let below_file = path
            .ancestors()
            .skip(1)
            .any(|above| taken.get(above) == Some(&false));
        if below_file {
            let text = format!(
                "`{}` would go below another output, which is a file",
                path.display()
            );
            faults.insert(at, Unmet::host(&path, "below_a_file", text));
        }
    }
    faults
}

/// Files under temporary names, and directories that were made for them.
#[derive(Default)]
struct Staged {
    files: Vec<StagedFile>,
    made: Vec<(Arc<OwnedFd>, OsString)>,
    /// How many of them, from the first, are wanted even without a file.
    asked_for: usize,
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
            self.directory(&landing.place.folder, &landing.place.names)?;
            self.asked_for = self.made.len();
            return Ok(());
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
        let file = File::from(openat(&*directory, &temporary, flags, mode)?);
        if let Err(error) = fill(file, content, landing.modified).await {
            // What cannot be removed is a file with a name that says what it is.
            let _ = unlinkat(&*directory, &temporary, AtFlags::empty());
            return Err(error);
        }
        self.files.push(StagedFile {
            directory,
            temporary,
            name: name.clone(),
            shown: landing.place.path(),
            bytes: content.len(),
        });
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

    /// Gives every file its name. When one cannot have it and nothing may land
    /// then, those that have are taken back, unless they have replaced what
    /// was there.
    fn commit(mut self, overwrite: bool, at_conflict: AtConflict) -> Landed {
        let mut landed = Landed::default();
        for at in 0..self.files.len() {
            let file = &self.files[at];
            let Err(error) = file.give_name(overwrite) else {
                landed.files.insert(file.shown.clone());
                landed.bytes += file.bytes;
                continue;
            };
            let shown = file.shown.clone();
            let mut text = format!("`{}` cannot be put in its place: {error}", shown.display());
            if at_conflict == AtConflict::LandTheRest {
                let _ = unlinkat(&*file.directory, &file.temporary, AtFlags::empty());
                let unmet = Unmet::host(&shown, "not_placed", text);
                landed.in_the_way.push(unmet);
                continue;
            }
            let kept = overwrite && at > 0;
            text.push_str(&if kept {
                format!("; {at} files have landed before it")
            } else {
                "; nothing has landed".to_owned()
            });
            if !overwrite {
                for file in &mut self.files[..at] {
                    file.temporary.clone_from(&file.name);
                }
            }
            self.undo();
            if !kept {
                landed = Landed::default();
            }
            landed
                .in_the_way
                .push(Unmet::host(&shown, "not_placed", text));
            return landed;
        }
        // Those that no file came into; the others are not empty.
        self.remove_directories(self.asked_for);
        landed
    }

    /// Removes the files, and the directories that nobody needs then.
    fn undo(self) {
        for file in &self.files {
            // What cannot be removed is a file with a name that says what it is.
            let _ = unlinkat(&*file.directory, &file.temporary, AtFlags::empty());
        }
        self.remove_directories(0);
    }

    fn remove_directories(&self, from: usize) {
        for (at, name) in self.made[from..].iter().rev() {
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

/// Writes a file, whose time is set by the last of all writes.
async fn fill(file: File, content: &FileContent, modified: SystemTime) -> io::Result<()> {
    let handle = file.try_clone()?;
    let mut writer = tokio::fs::File::from_std(file);
    content.copy_to(&mut writer).await?;
    drop(writer.into_std().await);
    let time = timespec(modified);
    futimens(
        &handle,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    )?;
    Ok(())
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
        told(land(&landings, overwrite, AtConflict::LandNothing).await)
    }

    fn told(landed: Landed) -> Result<Landed, Vec<String>> {
        if landed.in_the_way.is_empty() {
            return Ok(landed);
        }
        assert!(landed.files.is_empty(), "all or nothing");
        Err(landed.in_the_way.iter().map(ToString::to_string).collect())
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
        staged.commit(false, AtConflict::LandNothing);
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
        assert_eq!((result.files.len(), result.bytes), (1, 4));
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
            let landings = [landing(folder.path(), "d/fine", Some("1")), bad];
            let faults = told(land(&landings, false, AtConflict::LandNothing).await).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(entries(folder.path()).is_empty());
        }
    }

    #[tokio::test]
    async fn what_is_in_the_way_keeps_only_itself_when_the_rest_would_be_lost() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "old").unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let long = format!("long/{}", "n".repeat(300));
        let landings = [
            landing(folder.path(), "old", Some("new")),
            landing(folder.path(), "new", Some("1")),
            landing(folder.path(), "new", Some("2")),
            landing(folder.path(), "file/below", Some("x")),
            landing(folder.path(), &long, Some("x")),
            landing(folder.path(), "d/last", Some("last")),
        ];
        let landed = land(&landings, false, AtConflict::LandTheRest).await;
        assert_eq!((landed.files.len(), landed.bytes), (2, 5));
        let mut reasons: Vec<String> = landed
            .in_the_way
            .iter()
            .map(|unmet| unmet.object()["reason"].to_string())
            .collect();
        reasons.sort();
        let wanted = [
            "\"duplicate\"",
            "\"exists\"",
            "\"not_directory\"",
            "\"not_placed\"",
        ];
        assert_eq!(reasons, wanted);
        let content = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((content("old"), content("new")), ("old".into(), "1".into()));
        assert_eq!(content("d/last"), "last");
        assert_eq!(entries(folder.path()), ["d", "file", "new", "old"]);
    }
}
