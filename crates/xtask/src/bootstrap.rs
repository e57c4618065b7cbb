//! Makes the root file system of a distribution from its packages.

use std::path::Path;

use anyhow::{Result, bail};

use crate::apt::{self, HostApt, Suite};
use crate::process::Program;

/// What never matters in a root file system that only runs programs.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/share/i18n/*",
    "/usr/share/lintian/*",
];

/// What tells of the host that the bootstrap ran on, mirror and proxy among it, or of its run.
const FORGOTTEN: [&str; 7] = [
    "etc/apt/apt.conf.d/99mmdebstrap",
    "etc/apt/sources.list*",
    "etc/hostname",
    "etc/resolv.conf",
    "var/log/*",
    "var/cache/debconf/*",
    "var/cache/ldconfig/*",
];

/// Fails unless this process may make root file systems.
pub(crate) fn check_permission() -> Result<()> {
    #[cfg(target_os = "linux")]
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    bail!("only root can make a root file system from packages")
}

/// Installs `suite`'s essential packages and those named into `target`, a folder that does not
/// exist yet, or a file whose name ends with `.tar`.
///
/// What the programs say goes to `log`. What is written on failure is for the caller to remove. The
/// result holds neither package lists
/// nor the mirror and proxy that it came through.
pub(crate) fn bootstrap(
    host: &HostApt,
    suite: &Suite,
    packages: &[&str],
    target: &Path,
    log: &Path,
) -> Result<()> {
    check_permission()?;
    apt::install("mmdebstrap", "mmdebstrap")?;
    Program::new("mmdebstrap")
        .args(["--mode=root", "--variant=essential"])
        .arg(format!("--include={}", packages.join(",")))
        .args(
            host.settings()
                .iter()
                .map(|setting| format!("--aptopt={setting}")),
        )
        .arg("--aptopt=Acquire::Languages \"none\"")
        .arg("--aptopt=APT::Install-Recommends \"false\"")
        .args(LEFT_OUT.map(|pattern| format!("--dpkgopt=path-exclude={pattern}")))
        .arg("--dpkgopt=path-include=/usr/share/doc/*/copyright")
        .args(FORGOTTEN.map(|what| format!("--customize-hook=rm -rf \"$1\"/{what}")))
        .arg(&suite.name)
        .arg(target)
        .args(&suite.sources)
        .log_to(log)
}
