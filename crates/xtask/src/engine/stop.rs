//! How the engine is stopped and removed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::Signal;

use super::cgroups;
use super::home::Home;
use super::leftovers::{self, Processes};
use super::start::STOPPING;
use crate::process::Program;
use crate::progress::say;

/// Stops the engine and clears what it leaves. What is stored in it stays.
pub(super) fn down(home: &Home) -> Result<()> {
    let processes = Processes::of(home)?;
    if let Some(dockerd) = processes.dockerd {
        leftovers::send(dockerd, Signal::TERM)?;
        // It would give each container ten seconds to end by itself, which nobody waits for.
        cgroups::kill(&home.cgroup())?;
        if !leftovers::wait(dockerd, STOPPING)? {
            say("dockerd does not stop by itself, so it is killed");
        }
    }
    if let Some(containerd) = processes.containerd {
        leftovers::send(containerd, Signal::TERM)?;
        leftovers::wait(containerd, Duration::from_secs(5))?;
    }
    leftovers::clear(home)
}

/// Deletes a folder tree, but never what is mounted in it.
pub(super) fn delete(folder: &Path) -> Result<()> {
    leftovers::clear_mounts(folder)?;
    Program::new("rm")
        .args(["-rf", "--one-file-system", "--"])
        .arg(folder)
        .read()?;
    ensure!(!folder.exists(), "{} is still there", folder.display());
    Ok(())
}
