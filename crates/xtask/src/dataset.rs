//! The public data set that the demo reads: every block of network addresses that the IEEE has
//! assigned, with its holder's name and postal address, as comma-separated values. The IEEE asserts
//! no copyright in it. It comes with the Debian package `ieee-data`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::apt;
use crate::cache::Cache;
use crate::engine::Engine;
use crate::process::{Program, on_path};
use crate::progress::say;
use crate::workspace;

/// Where the package has the file.
const INSTALLED: &str = "usr/share/ieee-data/oui.csv";

/// Fewer rows than this, and the file is not what it should be.
const LEAST_ROWS: usize = 10_000;

/// The file, fetched when it is not there.
pub(crate) fn ensure(cache: &Cache, engine: &Engine) -> Result<PathBuf> {
    let path = path(cache)?;
    if path.exists() {
        return Ok(path);
    }
    let _lock = cache.lock()?;
    say("fetching the data set of the demo");
    let fetched = tempfile::tempdir_in(cache.subfolder("data")?).context("making a folder")?;
    let file = if on_path("apt-get").is_some() && on_path("dpkg-deb").is_some() {
        from_package(fetched.path())?
    } else {
        from_image(engine, fetched.path())?
    };
    let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let rows = text.split(|&byte| byte == b'\n').count();
    ensure!(
        rows >= LEAST_ROWS,
        "{} has only {rows} rows",
        file.display()
    );
    fs::rename(&file, &path).with_context(|| format!("renaming {}", file.display()))?;
    Ok(path)
}

/// Where the file is, or will be.
pub(crate) fn path(cache: &Cache) -> Result<PathBuf> {
    Ok(cache.subfolder("data")?.join("oui.csv"))
}

fn from_package(folder: &Path) -> Result<PathBuf> {
    let package = apt::download("ieee-data", folder)?;
    Program::new("dpkg-deb")
        .arg("-x")
        .arg(package)
        .arg(folder)
        .read()?;
    Ok(folder.join(INSTALLED))
}

fn from_image(engine: &Engine, folder: &Path) -> Result<PathBuf> {
    let context = workspace::root().join("images/oui");
    let docker = || engine.docker();
    let image = docker().args(["build", "--quiet"]).arg(context).read()?;
    let container = docker().args(["create", image.trim()]).read()?;
    let file = folder.join("oui.csv");
    let copied = docker()
        .args(["cp", &format!("{}:/{INSTALLED}", container.trim())])
        .arg(&file)
        .read();
    docker().args(["rm", "--force", container.trim()]).read()?;
    copied.map(|_| file)
}
