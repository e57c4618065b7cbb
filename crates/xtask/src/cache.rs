//! The folder outside the repository where xtask keeps what is slow to make.
//!
//! It is `$STOCKADE_CACHE`, else `$XDG_CACHE_HOME/stockade`, else `~/.cache/stockade`, and holds
//!
//! ```text
//! lock          taken by whoever changes anything below
//! engine/       the provisioned engine (see `engine::home`)
//! engines/      those of other makes, each in a folder of its name, with its own lock beside it
//! images/       root file systems of guest images, one archive per recipe
//! data/         the public data set that the demo reads
//! logs/         what the programs that xtask ran have printed
//! scratch/      what the image that holds one program is made of
//! demo/         the report and the chart that the demo brought back
//! ```

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::progress::say;

/// The folders that the cache consists of.
const FOLDERS: [&str; 7] = [
    "engine", "engines", "images", "data", "logs", "scratch", "demo",
];

/// The cache folder.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// The right to change the cache; given back when dropped, or when the process ends however.
#[derive(Debug)]
pub(crate) struct CacheLock {
    _file: File,
}

impl Cache {
    /// The cache of this user, made if it does not exist.
    pub(crate) fn open() -> Result<Self> {
        let folder = choose(|name| std::env::var_os(name).filter(|value| !value.is_empty()))?;
        ensure!(
            folder.is_absolute(),
            "the cache folder {} is not an absolute path; set STOCKADE_CACHE to one",
            folder.display()
        );
        make(&folder)?;
        // Mount points are compared with this path later, so it must be the real one.
        let folder = folder
            .canonicalize()
            .with_context(|| format!("{}", folder.display()))?;
        Ok(Self { folder })
    }

    /// One of the [`FOLDERS`], made if it does not exist.
    pub(crate) fn subfolder(&self, name: &str) -> Result<PathBuf> {
        debug_assert!(FOLDERS.contains(&name), "{name} is not listed");
        let path = self.folder.join(name);
        make(&path)?;
        Ok(path)
    }

    /// Every folder that xtask has made in the cache. Others are none of its business: the cache
    /// may have been put into a folder that holds more.
    pub(crate) fn subfolders(&self) -> Vec<PathBuf> {
        let known = FOLDERS.iter().map(|name| self.folder.join(name));
        known.filter(|path| path.exists()).collect()
    }

    /// The file that takes the output of the program that does `what`.
    pub(crate) fn log(&self, what: &str) -> Result<PathBuf> {
        Ok(self.subfolder("logs")?.join(format!("{what}.log")))
    }

    /// Waits until no other xtask changes the cache.
    pub(crate) fn lock(&self) -> Result<CacheLock> {
        Self::lock_file(&self.folder.join("lock"))
    }

    /// Waits until no other xtask changes the engine of this name in `engines/`. Whoever works
    /// on the rest of the cache is not kept waiting.
    pub(crate) fn lock_engine(&self, name: &str) -> Result<CacheLock> {
        Self::lock_file(&self.subfolder("engines")?.join(format!("{name}.lock")))
    }

    fn lock_file(path: &Path) -> Result<CacheLock> {
        let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say("waiting for another xtask that works on the same cache");
                file.lock()
                    .with_context(|| format!("locking {}", path.display()))?;
            }
            Err(TryLockError::Error(why)) => {
                return Err(why).with_context(|| format!("locking {}", path.display()));
            }
        }
        Ok(CacheLock { _file: file })
    }
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    if let Some(folder) = variable("STOCKADE_CACHE") {
        return Ok(folder.into());
    }
    if let Some(folder) = variable("XDG_CACHE_HOME") {
        return Ok(Path::new(&folder).join("stockade"));
    }
    let home = variable("HOME").ok_or_else(|| {
        anyhow!("no place for the cache: none of STOCKADE_CACHE, XDG_CACHE_HOME, HOME is set")
    })?;
    Ok(Path::new(&home).join(".cache/stockade"))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Option<PathBuf> {
        choose(|name| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.into())
        })
        .ok()
    }

    #[test]
    fn the_most_specific_variable_names_the_folder() {
        let (home, xdg, own) = (
            ("HOME", "/h"),
            ("XDG_CACHE_HOME", "/x"),
            ("STOCKADE_CACHE", "/c"),
        );
        assert_eq!(chosen(&[home, xdg, own]), Some("/c".into()));
        assert_eq!(chosen(&[home, xdg]), Some("/x/stockade".into()));
        assert_eq!(chosen(&[home]), Some("/h/.cache/stockade".into()));
        assert_eq!(chosen(&[]), None);
    }
}
