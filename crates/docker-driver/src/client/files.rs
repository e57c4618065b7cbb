//! The files of one call: variables that only a file can carry, and the id
//! that docker writes down before it says anything else.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::argv::{Argv, ContainerId, ImageId, Secret};
use crate::bind::private_file;

/// A folder of their own, which is removed with them.
pub(super) struct CallFiles(Option<TempDir>);

/// What docker wrote that it had made.
#[derive(Default)]
pub(super) struct Made {
    pub(super) container: Option<ContainerId>,
    pub(super) image: Option<ImageId>,
}

impl CallFiles {
    /// Makes what the words need, if they need anything.
    pub(super) async fn make(folder: &Path, argv: &Argv) -> io::Result<Self> {
        let variables = argv.env_file();
        if variables.is_none() && !argv.wants_id_file() {
            return Ok(Self(None));
        }
        let folder = folder.to_owned();
        off_the_runtime(move || make(&folder, variables.as_ref()))
            .await
            .map(Some)
            .map(Self)
    }

    /// The words that the process is started with.
    pub(super) fn words(&self, argv: &Argv) -> Vec<OsString> {
        let folder = self.0.as_ref().map_or(Path::new(""), TempDir::path);
        argv.with_files(&env_file(folder), &id_file(folder))
    }

    /// Removes the files, and gives what docker wrote that it had made.
    pub(super) async fn finish(self) -> Made {
        let Some(folder) = self.0 else {
            return Made::default();
        };
        let id = off_the_runtime(move || {
            let id = fs::read_to_string(id_file(folder.path()));
            // What cannot be removed is removed with the folder around it.
            let _ = folder.close();
            id
        });
        let id = id.await.unwrap_or_default();
        Made {
            container: ContainerId::new(&*id).ok(),
            image: ImageId::new(id.trim_ascii_end()).ok(),
        }
    }
}

fn make(folder: &Path, variables: Option<&Secret>) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("call-")
        .tempdir_in(folder)?;
    if let Some(variables) = variables {
        let mut file = private_file(&env_file(folder.path()))?;
        file.write_all(variables.reveal().as_bytes())?;
    }
    Ok(folder)
}

fn env_file(folder: &Path) -> PathBuf {
    folder.join("env")
}

fn id_file(folder: &Path) -> PathBuf {
    folder.join("id")
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
