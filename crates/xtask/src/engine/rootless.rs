//! What an engine needs to be run by a user without privileges.
//!
//! That user is in the engine's root file system only. The namespaces that hold the engine are
//! made by root, as for every make; in them nothing but the user's own rights is used, and the
//! user's own namespaces are made by `rootlesskit`, as Docker's own start script does it.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::home::Home;
use super::remap;

/// Who runs the engine, and the group of the same number.
const ID: u32 = 987;

/// Inside the root file system, who that is, and which ids stand for those of its containers.
const LINES: [(&str, &str); 4] = [
    ("etc/passwd", "x:987:987::/run/user/987:/bin/sh"),
    ("etc/group", "x:987:"),
    ("etc/subuid", "331072:65536"),
    ("etc/subgid", "331072:65536"),
];

/// The name of the user.
const USER: &str = "dockerrootless";

/// What the user may write to while the engine runs, in memory.
pub(super) const RUNTIME: &str = "/run/user/987";

/// From the first process's namespaces to the daemon in the user's own.
pub(super) const LINE: [&str; 16] = [
    "setpriv",
    "--reuid=987",
    "--regid=987",
    "--clear-groups",
    "--",
    "rootlesskit",
    "--net=slirp4netns",
    "--mtu=65520",
    "--slirp4netns-sandbox=auto",
    "--slirp4netns-seccomp=auto",
    "--disable-host-loopback",
    "--port-driver=builtin",
    "--copy-up=/etc",
    "--copy-up=/run",
    "--propagation=rslave",
    "--",
];

/// Gives the user what is the engine's own in its home, and a name in the root file system.
pub(super) fn prepare(home: &Home) -> Result<()> {
    remap::write(&home.root(), USER, &LINES)?;
    for folder in [
        home.run(),
        home.data("docker"),
        home.data("containerd"),
        home.config(""),
    ] {
        own(&folder)?;
    }
    Ok(())
}

/// In the new namespaces, before their root is entered: the user's folder, and the device that
/// gives a network namespace of the user's a way out.
pub(super) fn enter(root: &Path) -> Result<()> {
    let folder = root.join(RUNTIME.trim_start_matches('/'));
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    own(&folder)?;
    let devices = root.join("dev/net");
    fs::create_dir_all(&devices).with_context(|| format!("creating {}", devices.display()))?;
    let tun = devices.join("tun");
    let everybody = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    // Its number is fixed (Documentation/admin-guide/devices.txt of Linux).
    mknodat(
        CWD,
        &tun,
        FileType::CharacterDevice,
        everybody,
        makedev(10, 200),
    )
    .with_context(|| format!("making {}", tun.display()))?;
    // Whatever this process's mask took away.
    rustix::fs::chmod(&tun, everybody).with_context(|| format!("opening {}", tun.display()))
}

fn own(path: &Path) -> Result<()> {
    chown(path, Some(ID), Some(ID)).with_context(|| format!("giving away {}", path.display()))
}
