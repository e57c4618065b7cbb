//! One lock per container on this host, so that processes know of each other.
//!
//! A lock is a file that exists while it is held, locked with `flock`. Whoever
//! thaws inherits the open file, so it stays locked until the container is
//! thawed, even when the process that took it is gone. Whoever has paused the
//! container writes so into the file, and whoever has thawed it removes the
//! file. One that says so and is not locked is therefore of a hold of this
//! host that did not end properly.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

/// Between two looks at a lock that somebody else has: there is no event for
/// the end of a lock that can be waited for and given up. Short, so that a
/// host that copies one file after another does not take it back each time
/// before anybody else has looked.
const LOOK: Duration = Duration::from_millis(2);

/// Longer than any sandbox lives.
const OUTLIVED: Duration = Duration::from_secs(8 * 24 * 3600);

/// A lock that is held. Dropped, it is given back unless a guard has it too.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    /// Whether it says that a hold of this host did not end properly.
    left_behind: bool,
}

/// Where locks are.
#[derive(Debug, Clone)]
pub(crate) struct LockFolder(PathBuf);

impl LockFolder {
    /// The user's own folder: below `XDG_RUNTIME_DIR`, or below the temporary
    /// directory. Other users on this host count as other hosts.
    pub(crate) fn of_this_user() -> Self {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute());
        Self(match runtime {
            Some(folder) => folder.join("stockade"),
            None => {
                let user = rustix::process::getuid().as_raw();
                std::env::temp_dir().join(format!("stockade-{user}"))
            }
        })
    }

    /// The lock's file of one container of one engine.
    fn path(&self, engine: &str, container: &str) -> PathBuf {
        let mut hasher = Sha256::new();
        hasher.update(engine.as_bytes());
        hasher.update([0]);
        hasher.update(container.as_bytes());
        let digest = hasher.finalize();
        let name: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.0.join(format!("{name}.hold"))
    }

    /// Makes the folder, which must be nobody else's: in a shared temporary
    /// directory others may have made it first.
    fn make(&self) -> io::Result<()> {
        let made = DirBuilder::new().mode(0o700).create(&self.0);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&self.0)?;
        if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() {
            let path = self.0.display();
            return Err(io::Error::other(format!("{path} belongs to somebody else")));
        }
        Ok(())
    }

    /// Removes what hosts left that were killed between taking a lock and
    /// pausing, and the records of pauses so old that no sandbox can be in
    /// them any more. What cannot be looked at stays.
    pub(crate) fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_lock = path
                .extension()
                .is_some_and(|extension| extension == "hold");
            let is_old = |found: fs::Metadata| {
                let age = found.modified().ok().and_then(|time| time.elapsed().ok());
                found.len() == 0 || age.is_some_and(|age| age > OUTLIVED)
            };
            if is_lock && entry.metadata().is_ok_and(is_old) {
                // Nobody else's, and the file of that name, by its own rules.
                if let Ok(Some(lock)) = Lock::try_take(&path)
                    && lock.file.metadata().is_ok_and(is_old)
                {
                    lock.give_back();
                }
            }
        }
    }

    /// Takes the lock, when it is free.
    ///
    /// Cancel safe.
    pub(super) async fn take(&self, engine: &str, container: &str) -> io::Result<Lock> {
        self.make()?;
        let path = self.path(engine, container);
        loop {
            if let Some(lock) = Lock::try_take(&path)? {
                return Ok(lock);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Lock {
    /// `None` while somebody else has it.
    fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let mut open = OpenOptions::new();
        open.read(true).write(true).mode(0o600);
        let file = open.create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let left_behind = file.metadata()?.len() > 0;
        let lock = Self {
            file,
            path: path.to_owned(),
            left_behind,
        };
        // Whoever had it may have removed the file before we locked it.
        Ok(lock.is_there()?.then_some(lock))
    }

    /// Whether the file of its name is the one that we have locked.
    fn is_there(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        let there = fs::metadata(&self.path);
        Ok(there.is_ok_and(|there| there.dev() == ours.dev() && there.ino() == ours.ino()))
    }

    /// Whether a hold of this host ended without a thaw; asked once, since
    /// whoever is told does it.
    pub(super) fn is_left_behind(&mut self) -> io::Result<bool> {
        if self.left_behind {
            self.file.set_len(0)?;
        }
        Ok(std::mem::take(&mut self.left_behind))
    }

    /// The open file, for who thaws.
    pub(crate) fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Where it is, for who thaws.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it back, after the container is known to run.
    pub(super) fn give_back(self) {
        // The guard may have removed it already, and somebody else have one of
        // that name by now.
        if self.is_there().unwrap_or_default() {
            // One that cannot be removed counts as left behind, which costs
            // whoever comes next one look.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn folder() -> (tempfile::TempDir, LockFolder) {
        let home = tempfile::tempdir().unwrap();
        let folder = LockFolder(home.path().join("locks"));
        (home, folder)
    }

    #[tokio::test]
    async fn a_lock_is_one_holders_until_it_is_given_back() {
        let (_home, folder) = folder();
        let lock = folder.take("engine", "container").await.unwrap();
        let path = lock.path().to_owned();
        assert!(Lock::try_take(&path).unwrap().is_none());
        assert!(folder.take("engine", "another").await.is_ok());
        lock.give_back();
        assert!(!path.exists(), "nothing is left of it");
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_lock_stays_taken_as_long_as_somebody_shares_it() {
        let (_home, folder) = folder();
        let lock = folder.take("engine", "container").await.unwrap();
        let path = lock.path().to_owned();
        let mut shared = lock.share().unwrap();
        drop(lock);
        assert!(Lock::try_take(&path).unwrap().is_none());
        shared.write_all(b"paused").unwrap();
        drop(shared);
        let mut lock = Lock::try_take(&path).unwrap().unwrap();
        assert!(lock.is_left_behind().unwrap(), "nobody saw that hold's end");
        assert!(!lock.is_left_behind().unwrap(), "it is told once");
        drop(lock);
        let mut lock = Lock::try_take(&path).unwrap().unwrap();
        assert!(!lock.is_left_behind().unwrap(), "it was dealt with");
    }

    #[tokio::test]
    async fn who_waited_for_a_lock_that_is_removed_takes_a_new_one() {
        let (_home, folder) = folder();
        let lock = folder.take("engine", "container").await.unwrap();
        let (waits, folder) = (folder.clone(), folder);
        let waiting = tokio::spawn(async move { waits.take("engine", "container").await });
        tokio::task::yield_now().await;
        lock.give_back();
        let next = waiting.await.unwrap().unwrap();
        assert!(next.path().exists());
        assert!(Lock::try_take(next.path()).unwrap().is_none());
        drop(folder);
    }

    #[tokio::test]
    async fn a_sweep_takes_what_dead_hosts_left_and_no_lock_and_no_record() {
        let (_home, folder) = folder();
        let held = folder.take("engine", "held").await.unwrap();
        let dead = folder.take("engine", "dead").await.unwrap();
        let (dead_path, held_path) = (dead.path().to_owned(), held.path().to_owned());
        // Killed before it had paused.
        drop(dead);
        let mut paused = folder.take("engine", "paused").await.unwrap();
        let paused_path = paused.path().to_owned();
        paused.file.write_all(b"paused").unwrap();
        drop(paused);
        fs::write(folder.0.join("other"), "").unwrap();
        folder.sweep();
        assert!(!dead_path.exists());
        assert!(held_path.exists() && paused_path.exists() && folder.0.join("other").exists());
        let mut record = Lock::try_take(&paused_path).unwrap().unwrap();
        assert!(
            record.is_left_behind().unwrap(),
            "whoever comes next thaws it"
        );
        drop(held);
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("locks");
        fs::write(&path, "a file").unwrap();
        let error = LockFolder(path).make().unwrap_err();
        assert!(error.to_string().contains("belongs to somebody else"));
    }
}
