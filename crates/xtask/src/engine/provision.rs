//! How the root file system of a provisioned engine is made.
//!
//! It is built beside its final place and renamed when it is complete, so a half-built one is
//! never used; whatever an interrupted run left is discarded by the next one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::home::Home;
use super::stop;
use crate::apt::{HostApt, Suite};
use crate::bootstrap::{bootstrap, check_permission};
use crate::cache::Cache;
use crate::progress::{Stopwatch, say, seconds};

/// Inside a root file system: the digest of the recipe that made it.
const STAMP: &str = "etc/stockade-engine";

/// Which engine to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// The major versions that will do.
    accepts: fn(u32) -> bool,
    /// Where to look for one, first choice first.
    suites: fn(&HostApt) -> Vec<Suite>,
    packages: &'static [&'static str],
}

/// The engine that demo and tests use: the newest that the distribution has.
pub(super) const CURRENT: Recipe = Recipe {
    accepts: |major| major >= super::OLDEST_MAJOR,
    suites: HostApt::newest_suites,
    packages: &[
        "docker.io",
        "docker-cli", // for hosts without a client
        "iproute2",   // brings the loopback interface up
        "kmod",       // loads what the kernel has as modules
        "tini",       // the first process
    ],
};

/// Makes the root file system of `home` by `recipe`, unless it is there.
///
/// The caller holds the cache's lock.
pub(super) fn ensure(cache: &Cache, home: &Home, recipe: &Recipe) -> Result<()> {
    let stamp = recipe.stamp();
    let root = home.root();
    if fs::read_to_string(root.join(STAMP)).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    check_permission()?;
    let host = HostApt::read()?;
    let suite = recipe.choose(&host)?;
    say(format_args!(
        "bootstrapping an engine from {} (about half a minute)",
        suite.name
    ));
    let running = Stopwatch::start();
    discard_partials(home)?;
    let partial = home
        .folder()
        .join(format!("{PARTIAL}{}", std::process::id()));
    if let Err(failure) = bootstrap(cache, &host, &suite, recipe.packages, &partial) {
        discard_partials(home)?;
        return Err(failure);
    }
    let write = |path: &Path, text: &str| {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    };
    write(&partial.join(STAMP), &stamp)?;
    home.prepare()?;
    write(&home.client(), &client(&root)?)?;
    fs::set_permissions(home.client(), fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", home.client().display()))?;
    if root.exists() {
        // Made by an older recipe: its processes must not see their root change.
        stop::down(home)?;
        stop::delete(&root)?;
    }
    fs::rename(&partial, &root).with_context(|| format!("renaming {}", partial.display()))?;
    say(format_args!(
        "bootstrapped in {}",
        seconds(running.elapsed())
    ));
    Ok(())
}

impl Recipe {
    fn choose(&self, host: &HostApt) -> Result<Suite> {
        let mut seen = Vec::new();
        for suite in (self.suites)(host) {
            match host.major_version(&suite, "docker.io") {
                Ok(Some(major)) if (self.accepts)(major) => return Ok(suite),
                Ok(Some(major)) => seen.push(format!("{} has {major}", suite.name)),
                Ok(None) => seen.push(format!("{} has none", suite.name)),
                Err(why) => seen.push(format!("{}: {why:#}", suite.name)),
            }
        }
        bail!(
            "no suite on this host's mirror carries a docker.io that will do: {}",
            seen.join("; ")
        )
    }

    fn stamp(&self) -> String {
        let mut digest = Sha256::new();
        for package in self.packages {
            digest.update(package.as_bytes());
            digest.update(b"\n");
        }
        digest
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

const PARTIAL: &str = "partial-";

fn discard_partials(home: &Home) -> Result<()> {
    let folder = home.folder();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            stop::delete(&entry.path())?;
        }
    }
    Ok(())
}

/// A script that runs the client of the root file system on the host, with the C library that it
/// was built for.
fn client(root: &Path) -> Result<String> {
    let (loader, libraries) = match std::env::consts::ARCH {
        "x86_64" => ("lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"),
        "aarch64" => ("lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"),
        other => bail!("no engine can be provisioned on {other}"),
    };
    let root = root.display().to_string().replace('\'', r"'\''");
    Ok(format!(
        "#!/bin/sh\nexec '{root}/{loader}' --argv0 docker --library-path '{root}/{libraries}' \
         '{root}/usr/bin/docker' \"$@\"\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_list_of_packages_is_another_root() {
        let other = Recipe {
            packages: &["docker.io"],
            ..CURRENT
        };
        assert_ne!(CURRENT.stamp(), other.stamp());
        assert_eq!(CURRENT.stamp(), CURRENT.stamp());
    }
}
