//! A private folder that a dead process does not leave for ever.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::{BindError, Environment};

const PREFIX: &str = "docker-driver-";

/// Held for as long as the process lives; the system lets go of it when the
/// process dies, however it dies.
const LOCK: &str = "lock";

/// A folder that is younger than this may be about to be locked.
const SETTLED: Duration = Duration::from_secs(60);

/// A folder that only we can read, for what docker is to read: its
/// configuration, with credentials, and the files of single calls.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    folder: TempDir,
    lock: File,
    /// How many processes that outlive us may need it.
    loans: AtomicUsize,
}

/// The folder, as lent to a process that may outlive us.
///
/// That process inherits the folder's lock, so that no other one takes it for
/// a dead one's. Unless it is given back, the folder is not removed with its
/// owner, but by whoever finds it unlocked.
#[derive(Debug)]
#[must_use]
pub(crate) struct FolderLoan(Arc<PrivateFolder>);

impl PrivateFolder {
    /// Makes one, and removes those that dead processes have left.
    pub(super) fn make(environment: &Environment) -> Result<Self, BindError> {
        let parent = parent(environment);
        make_in(&parent).map_err(|source| BindError::NoPrivateFolder {
            path: parent,
            source,
        })
    }

    /// Where docker's configuration is.
    pub(super) fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// Where the certificates of a host that is no context's are.
    pub(super) fn certificates(&self) -> PathBuf {
        self.folder.path().join("tls")
    }

    /// Where the files of single calls are.
    pub(crate) fn calls(&self) -> &Path {
        self.folder.path()
    }
}

impl FolderLoan {
    /// Lends the folder, with the lock to be inherited.
    pub(crate) fn of(folder: &Arc<PrivateFolder>) -> io::Result<(Self, OwnedFd)> {
        let lock = folder.lock.try_clone()?;
        folder.loans.fetch_add(1, Ordering::Relaxed);
        Ok((Self(Arc::clone(folder)), lock.into()))
    }

    /// The process has ended.
    pub(crate) fn give_back(self) {
        self.0.loans.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if *self.loans.get_mut() > 0 {
            self.folder.disable_cleanup(true);
        }
    }
}

/// Creates a file that only we may read.
pub(crate) fn private_file(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Memory that ends with the login is the better place for credentials.
fn parent(environment: &Environment) -> PathBuf {
    let of = |name: &str| {
        environment
            .value(name)
            .map(PathBuf::from)
            .filter(|path| path.is_dir())
    };
    of("XDG_RUNTIME_DIR")
        .or_else(|| of("TMPDIR"))
        .unwrap_or_else(std::env::temp_dir)
}

fn make_in(parent: &Path) -> io::Result<PrivateFolder> {
    sweep(parent);
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(private_permissions())
        .tempdir_in(parent)?;
    let lock = File::create(folder.path().join(LOCK))?;
    lock.lock()?;
    Ok(PrivateFolder {
        folder,
        lock,
        loans: AtomicUsize::new(0),
    })
}

fn private_permissions() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    fs::Permissions::from_mode(0o700)
}

/// Removes the folders whose owners are dead. Other users' folders cannot be
/// opened, and so are left alone.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            // What cannot be removed now is left to the next sweep.
            let _ = remove_if_dead(&entry.path());
        }
    }
}

fn remove_if_dead(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let age = metadata.modified()?.elapsed().unwrap_or_default();
    if !metadata.is_dir() || age < SETTLED {
        return Ok(());
    }
    let lock = match File::open(folder.join(LOCK)) {
        // Its owner was ended while it removed the folder, lock first.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fs::remove_dir_all(folder);
        }
        lock => lock?,
    };
    match lock.try_lock() {
        Ok(()) => fs::remove_dir_all(folder),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::SystemTime;

    use super::*;

    /// Sets the time that a sweep judges by.
    fn age(folder: &Path) {
        let old = SystemTime::now() - 2 * SETTLED;
        File::open(folder).unwrap().set_modified(old).unwrap();
    }

    #[test]
    fn only_the_owner_may_look_into_it() {
        let parent = tempfile::tempdir().unwrap();
        let private = make_in(parent.path()).unwrap();
        let mode = fs::metadata(private.calls()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn it_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        drop(make_in(parent.path()).unwrap());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_of_a_dead_process_is_removed_by_the_next_one() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        fs::write(dead.join("config.json"), "{}").unwrap();
        age(&dead);
        let _alive = make_in(parent.path()).unwrap();
        assert!(!dead.exists());
    }

    #[test]
    fn a_folder_that_its_owner_removed_in_part_is_removed_by_the_next_one() {
        let parent = tempfile::tempdir().unwrap();
        let cut = parent.path().join(format!("{PREFIX}cut"));
        fs::create_dir(&cut).unwrap();
        fs::write(cut.join("config.json"), "{}").unwrap();
        age(&cut);
        let _alive = make_in(parent.path()).unwrap();
        assert!(!cut.exists());
    }

    #[test]
    fn a_folder_of_a_living_process_is_left_alone_however_old_it_is() {
        let parent = tempfile::tempdir().unwrap();
        let alive = make_in(parent.path()).unwrap();
        age(alive.calls());
        let _another = make_in(parent.path()).unwrap();
        assert!(alive.calls().exists());
    }

    #[test]
    fn a_folder_that_is_lent_outlives_its_owner_and_goes_when_it_is_unlocked() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Arc::new(make_in(parent.path()).unwrap());
        let path = folder.calls().to_owned();
        let (loan, lock) = FolderLoan::of(&folder).unwrap();
        drop((folder, loan));
        age(&path);
        let another = Arc::new(make_in(parent.path()).unwrap());
        assert!(path.exists(), "its lock is inherited");
        drop(lock);
        drop(make_in(parent.path()).unwrap());
        assert!(!path.exists());
        let (loan, _lock) = FolderLoan::of(&another).unwrap();
        let path = another.calls().to_owned();
        loan.give_back();
        drop(another);
        assert!(!path.exists(), "it was given back");
    }

    #[test]
    fn a_folder_that_is_just_being_made_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let young = parent.path().join(format!("{PREFIX}young"));
        fs::create_dir(&young).unwrap();
        fs::write(young.join(LOCK), "").unwrap();
        let _another = make_in(parent.path()).unwrap();
        assert!(young.exists());
    }
}
