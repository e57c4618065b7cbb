//! How the root file system of a provisioned engine is made.
//!
//! It is built beside its final place and renamed when it is complete, so a half-built one is
//! never used; whatever an interrupted run left is discarded by the next one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::home::Home;
use super::{Make, stop};
use crate::apt::{HostApt, Suite};
use crate::bootstrap::{bootstrap, check_permission};
use crate::cache::Cache;
use crate::process::Program;
use crate::progress::{Stopwatch, say, seconds};

/// Inside a root file system: the digest of the recipe that made it.
const STAMP: &str = "etc/stockade-engine";

/// Which engine to make.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    /// What it is for.
    make: Make,
    /// Where to look for one, first choice first.
    suites: fn(&HostApt) -> Vec<Suite>,
    packages: &'static [&'static str],
}

/// The newest that the distribution has.
const NEWEST: Recipe = Recipe {
    make: Make::New,
    suites: HostApt::newest_suites,
    packages: &[
        "docker.io",
        "docker-cli", // for hosts without a client
        "iproute2",   // brings the loopback interface up
        "kmod",       // loads what the kernel has as modules
        "tini",       // the first process
    ],
};

/// The oldest that is bound. Its client is in the same package.
const OLD: Recipe = Recipe {
    make: Make::Old,
    suites: HostApt::old_suites,
    packages: &["docker.io", "iproute2", "kmod", "tini"],
};

/// The newest, with what its daemon needs to be run by a user without privileges.
const ROOTLESS: Recipe = Recipe {
    make: Make::Rootless,
    suites: HostApt::newest_suites,
    packages: &[
        "docker.io",
        "docker-cli",
        "iproute2",
        "kmod",
        "tini",
        "rootlesskit", // makes the user's namespaces
        "slirp4netns", // a network namespace of the user's, with a way out
        "uidmap",      // gives the user more ids than its own
    ],
};

/// Makes the root file system of `home`, unless it is there.
///
/// The caller holds the home's lock.
pub(super) fn ensure(cache: &Cache, home: &Home) -> Result<()> {
    let recipe = Recipe::of(home.make());
    let stamp = recipe.stamp();
    let root = home.root();
    if fs::read_to_string(root.join(STAMP)).is_ok_and(|found| found == stamp) {
        return Ok(());
    }
    check_permission()?;
    home.prepare()?;
    let running = Stopwatch::start();
    discard_partials(home)?;
    let partial = home
        .folder()
        .join(format!("{PARTIAL}{}", std::process::id()));
    let made = match twin(cache, &stamp)? {
        Some(twin) => copy(&twin, &partial),
        None => recipe.bootstrap(home, &partial),
    };
    if let Err(failure) = made {
        discard_partials(home)?;
        return Err(failure);
    }
    let write = |path: &Path, text: &str| {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    };
    write(&partial.join(STAMP), &stamp)?;
    write(&home.client(), &client(&root)?)?;
    fs::set_permissions(home.client(), fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", home.client().display()))?;
    if root.exists() {
        // Made by an older recipe: its processes must not see their root change.
        stop::down(home)?;
        stop::delete(&root)?;
    }
    fs::rename(&partial, &root).with_context(|| format!("renaming {}", partial.display()))?;
    say(format_args!("made in {}", seconds(running.elapsed())));
    Ok(())
}

/// The root file system of another home that was made by the same recipe.
fn twin(cache: &Cache, stamp: &str) -> Result<Option<PathBuf>> {
    for make in Make::OTHERS.into_iter().chain([Make::New]) {
        let root = Home::of(cache, make)?.root();
        if fs::read_to_string(root.join(STAMP)).is_ok_and(|found| found == stamp) {
            return Ok(Some(root));
        }
    }
    Ok(None)
}

/// Copies a root file system: programs are shared as hard links, since nobody writes to them;
/// what an engine writes into is its own.
fn copy(twin: &Path, target: &Path) -> Result<()> {
    say(format_args!("taking the engine from {}", twin.display()));
    let copy = Program::new("cp").args(["--archive", "--one-file-system"]);
    copy.clone().arg("--link").arg(twin).arg(target).read()?;
    for written in ["etc", "var"] {
        stop::delete(&target.join(written))?;
        copy.clone().arg(twin.join(written)).arg(target).read()?;
    }
    Ok(())
}

impl Recipe {
    fn of(make: Make) -> Self {
        match make {
            Make::New | Make::Userns | Make::Soak => NEWEST,
            Make::Old => OLD,
            Make::Rootless => ROOTLESS,
        }
    }

    fn bootstrap(&self, home: &Home, target: &Path) -> Result<()> {
        let host = HostApt::read()?;
        let suite = self.choose(&host)?;
        say(format_args!(
            "bootstrapping an engine from {} (about half a minute)",
            suite.name
        ));
        bootstrap(&host, &suite, self.packages, target, &home.log("bootstrap"))
    }

    fn choose(&self, host: &HostApt) -> Result<Suite> {
        let mut seen = Vec::new();
        for suite in (self.suites)(host) {
            match host.major_version(&suite, "docker.io") {
                Ok(Some(major)) if self.make.accepts(major) => return Ok(suite),
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
            ..NEWEST
        };
        assert_ne!(NEWEST.stamp(), other.stamp());
        assert_eq!(NEWEST.stamp(), NEWEST.stamp());
    }
}
