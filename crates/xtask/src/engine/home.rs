//! Where a provisioned engine keeps what.
//!
//! ```text
//! engine/     or engines/NAME/
//!   root/     the root file system that its daemon runs in
//!   data/     what is stored in it: docker/ and containerd/
//!   run/      docker.sock, the endpoint on the host
//!   etc/      daemon.json and config.toml, as the daemons read them
//!   bin/      docker, the client of the same age, for hosts without one
//!   log/      what its processes say
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::Make;
use crate::cache::{Cache, CacheLock};

/// The longest path that a unix socket can be bound to, without the zero at its end.
const LONGEST_SOCKET: usize = 107;

/// The folder of one provisioned engine.
#[derive(Clone, Debug)]
pub(super) struct Home {
    folder: PathBuf,
    make: Make,
}

impl Home {
    /// The one engine of this make.
    pub(super) fn of(cache: &Cache, make: Make) -> Result<Self> {
        let folder = match make {
            Make::New => cache.subfolder("engine")?,
            other => cache.subfolder("engines")?.join(other.name()),
        };
        Self::at(folder, make)
    }

    pub(super) fn at(folder: PathBuf, make: Make) -> Result<Self> {
        let home = Self { folder, make };
        let length = home.socket().as_os_str().len();
        ensure!(
            length <= LONGEST_SOCKET,
            "the path {} is {length} bytes long and a socket's can be {LONGEST_SOCKET}; \
             set STOCKADE_CACHE to a shorter folder",
            home.socket().display()
        );
        Ok(home)
    }

    /// Makes the folders that a start needs.
    pub(super) fn prepare(&self) -> Result<()> {
        for folder in [
            self.data("docker"),
            self.data("containerd"),
            self.run(),
            self.config(""),
            self.folder.join("bin"),
            self.folder.join("log"),
        ] {
            fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        Ok(())
    }

    /// Waits until no other xtask changes this engine.
    pub(super) fn lock(&self, cache: &Cache) -> Result<CacheLock> {
        match self.make {
            Make::New => cache.lock(),
            other => cache.lock_engine(other.name()),
        }
    }

    pub(super) fn make(&self) -> Make {
        self.make
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    pub(super) fn data(&self, of: &str) -> PathBuf {
        self.folder.join("data").join(of)
    }

    pub(super) fn run(&self) -> PathBuf {
        self.folder.join("run")
    }

    pub(super) fn config(&self, file: &str) -> PathBuf {
        self.folder.join("etc").join(file)
    }

    pub(super) fn client(&self) -> PathBuf {
        self.folder.join("bin/docker")
    }

    pub(super) fn log(&self, of: &str) -> PathBuf {
        self.folder.join("log").join(format!("{of}.log"))
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.run().join("docker.sock")
    }

    /// The endpoint as `DOCKER_HOST` takes it.
    pub(super) fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The parent of its containers' control groups: of its own, so that clearing one engine's
    /// groups cannot touch those of another.
    pub(super) fn cgroup(&self) -> String {
        let digest = Sha256::digest(self.folder.as_os_str().as_encoded_bytes());
        let short: String = digest
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("stockade-engine-{short}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_too_deep_for_a_socket_is_refused() {
        let deep = format!("/{}", "d".repeat(100));
        let why = Home::at(deep.into(), Make::New)
            .expect_err("118 bytes")
            .to_string();
        assert!(why.contains("STOCKADE_CACHE"), "{why}");
    }

    #[test]
    fn two_homes_never_share_control_groups() {
        let cgroup = |path: &str| Home::at(path.into(), Make::New).expect("short").cgroup();
        assert_ne!(cgroup("/a/engine"), cgroup("/b/engine"));
        assert_eq!(cgroup("/a/engine"), cgroup("/a/engine"));
    }
}
