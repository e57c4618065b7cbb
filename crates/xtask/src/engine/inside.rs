//! What the first process of the engine's namespaces does: it makes the engine's root file system
//! its own, and then becomes a process that only reaps.
//!
//! The root is entered with `pivot_root`. Under a plain `chroot` the old root would stay in the
//! mount namespace, and what the daemon starts through `setns` would find itself there.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};

use super::home::Home;
use super::{Make, rootless};
use crate::process::Program;
use crate::progress::answer;

/// The path that the engine's programs get.
pub(super) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// What [`enter`] says on standard output when the namespaces are ready for the daemons.
pub(super) const READY: &str = "ready";

/// The program that the first process becomes.
pub(super) const FIRST: &str = "tini-static";

const QUIET: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Turns this process, the first of its new namespaces, into the engine's first process.
pub(super) fn enter(home: &Home) -> Result<()> {
    // Nothing that is mounted below shows on the host.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .context("making mounts private")?;
    let root = home.root();
    bind(&root, &root)?;
    mount_kernel(&root)?;
    mount_devices(&root.join("dev"))?;
    mount_own(home, &root)?;
    if home.make() == Make::Rootless {
        rootless::enter(&root)?;
    }
    pivot(&root)?;
    rustix::system::sethostname(b"stockade-engine").context("naming the host")?;
    let program = |name: &str| Program::new(name).only_env().env("PATH", PATH);
    program("ip")
        .args(["link", "set", "dev", "lo", "up"])
        .read()?;
    answer(READY);
    Err(program(FIRST)
        .args(["-s", "--", "sleep", "infinity"])
        .replace())
}

/// The kernel's own file systems, of these namespaces.
fn mount_kernel(root: &Path) -> Result<()> {
    fresh("proc", &root.join("proc"), QUIET, "")?;
    fresh("sysfs", &root.join("sys"), QUIET, "")?;
    // Whatever the host has: version 1, version 2, or both side by side.
    let groups = root.join("sys/fs/cgroup");
    mount_bind_recursive("/sys/fs/cgroup", &groups)
        .with_context(|| format!("mounting control groups on {}", groups.display()))?;
    let modules = Path::new("/lib/modules");
    if modules.exists() {
        bind(modules, &folder(root.join("usr/lib/modules"))?)?;
    }
    Ok(())
}

fn mount_devices(dev: &Path) -> Result<()> {
    fresh("tmpfs", dev, MountFlags::NOSUID, "mode=755")?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        let node = dev.join(name);
        File::create(&node).with_context(|| format!("creating {}", node.display()))?;
        bind(&Path::new("/dev").join(name), &node)?;
    }
    let no_exec = MountFlags::NOSUID | MountFlags::NOEXEC;
    let terminals = folder(dev.join("pts"))?;
    fresh(
        "devpts",
        &terminals,
        no_exec,
        "newinstance,ptmxmode=0666,mode=0620",
    )?;
    fresh("tmpfs", &folder(dev.join("shm"))?, QUIET, "mode=1777")?;
    for (link, to) in [("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd")] {
        symlink(to, dev.join(link)).with_context(|| format!("linking {link}"))?;
    }
    Ok(())
}

/// The folders of the engine's home. Everything else that its programs write, process files and
/// sockets among it, is in memory and gone with the mount namespace.
fn mount_own(home: &Home, root: &Path) -> Result<()> {
    fresh(
        "tmpfs",
        &root.join("run"),
        MountFlags::NOSUID | MountFlags::NODEV,
        "mode=755",
    )?;
    fresh(
        "tmpfs",
        &root.join("tmp"),
        MountFlags::NOSUID | MountFlags::NODEV,
        "mode=1777",
    )?;
    bind(&home.run(), &folder(root.join("run/stockade"))?)?;
    bind(&home.config(""), &folder(root.join("etc/docker"))?)?;
    bind(&home.data("docker"), &folder(root.join("var/lib/docker"))?)?;
    bind(
        &home.data("containerd"),
        &folder(root.join("var/lib/containerd"))?,
    )
}

fn pivot(root: &Path) -> Result<()> {
    std::env::set_current_dir(root).with_context(|| format!("entering {}", root.display()))?;
    // The old root lands on top of the new one, and is unmounted from there.
    rustix::process::pivot_root(".", ".").context("pivot_root")?;
    unmount(".", UnmountFlags::DETACH).context("unmounting the old root")?;
    std::env::set_current_dir("/").context("entering the new root")
}

fn fresh(kind: &str, on: &Path, flags: MountFlags, options: &str) -> Result<()> {
    let options = std::ffi::CString::new(options).context("mount options")?;
    mount(kind, on, kind, flags, options.as_c_str())
        .with_context(|| format!("mounting {kind} on {}", on.display()))
}

fn bind(from: &Path, on: &Path) -> Result<()> {
    mount_bind(from, on).with_context(|| format!("mounting {} on {}", from.display(), on.display()))
}

fn folder(path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    Ok(path)
}
