//! The engine that demo and tests run against.
//!
//! [`up`] takes the engine that `docker` reaches, when that is Docker Engine 28 or newer. Where
//! there is none, root on a Debian-like system gets a provisioned one: a root file system of its
//! own in the cache, and a daemon in its own process, mount and network namespaces, so that
//! nothing of it (files, mounts, firewall rules, processes) mixes with the host's, and all of it
//! is gone when its first process is.
//!
//! | module | knows |
//! |---|---|
//! | `find` | which client and daemon this machine has |
//! | `home` | where the provisioned engine keeps what |
//! | `provision` | how its root file system is made |
//! | `start` | how its processes are started, and what is healed when some of them are dead |
//! | `inside` | what its first process does in the new namespaces |
//! | `stop` | how it is stopped and removed |
//! | `leftovers` | which processes and mounts of it exist, and how they are cleared |
//! | `cgroups` | the control groups of its containers |
//! | `remap` | what it needs to remap the user ids of its containers |

#[cfg(target_os = "linux")]
mod cgroups;
mod find;
#[cfg(target_os = "linux")]
mod home;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod provision;
#[cfg(target_os = "linux")]
mod remap;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod stop;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cache::Cache;
use crate::process::Program;
use crate::progress::{Stopwatch, answer, say, seconds};

pub(crate) use find::OLDEST_MAJOR;

/// An engine that answers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Engine {
    pub(crate) kind: Kind,
    /// The endpoint as `DOCKER_HOST` takes it; nothing when it is the client's own default and
    /// cannot be said in a variable (a context with certificates, for one).
    pub(crate) docker_host: Option<String>,
    /// The docker client to use, of at least the age that the daemon must have.
    pub(crate) client: PathBuf,
    /// The daemon's version.
    pub(crate) version: String,
}

/// Whose engine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// It was there already, and is not ours to restart or to remove.
    Found,
    /// It is ours.
    Provisioned,
}

/// What to do with the engine.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Find an engine, or provision and start one
    Up {
        /// Answer as JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Stop the provisioned engine; what is stored in it stays
    Down,
    /// Say which engine is there
    Status {
        /// Answer as JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Restart the daemon of the provisioned engine
    Restart(RestartArgs),
    /// Stop the provisioned engine and delete everything that xtask keeps in its cache
    Remove,
    /// Become the first process of the provisioned engine
    #[command(hide = true)]
    Inside { home: PathBuf },
}

#[derive(Debug, Args)]
struct RestartArgs {
    /// Containers keep running while the daemon is away
    #[arg(long, conflicts_with = "no_live_restore")]
    live_restore: bool,
    /// Containers stop with the daemon
    #[arg(long)]
    no_live_restore: bool,
    /// User ids of containers are others than the daemon's. It keeps what it stores apart then,
    /// images too: `cargo xtask images` brings them, or `cargo xtask env`
    #[arg(long, conflicts_with = "no_userns_remap")]
    userns_remap: bool,
    /// User ids of containers are the daemon's
    #[arg(long)]
    no_userns_remap: bool,
    /// End the daemon with SIGKILL instead of asking it to stop
    #[arg(long)]
    kill: bool,
}

impl Engine {
    /// The docker client, pointed at this engine.
    pub(crate) fn docker(&self) -> Program {
        let program = Program::new(&self.client);
        match &self.docker_host {
            Some(host) => program.env("DOCKER_HOST", host),
            None => program,
        }
    }
}

/// Settings of the provisioned engine that a restart changes; nothing leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    live_restore: Option<bool>,
    userns_remap: Option<bool>,
}

/// What a flag and its opposite ask for.
fn choice(on: bool, off: bool) -> Option<bool> {
    match (on, off) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Runs `cargo xtask engine …`.
pub(crate) fn run(args: EngineArgs) -> Result<()> {
    match args.action {
        Action::Up { json } => {
            let engine = up(&Cache::open()?)?;
            report(Some(&engine), json)
        }
        Action::Status { json } => report(status(&Cache::open()?)?.as_ref(), json),
        Action::Down => provisioned::down(&Cache::open()?),
        Action::Remove => {
            provisioned::remove(&Cache::open()?)?;
            say("the engine is removed, with its images and the data beside it");
            Ok(())
        }
        Action::Restart(restart) => {
            let changes = Changes {
                live_restore: choice(restart.live_restore, restart.no_live_restore),
                userns_remap: choice(restart.userns_remap, restart.no_userns_remap),
            };
            provisioned::restart(&Cache::open()?, changes, restart.kill)
        }
        Action::Inside { home } => provisioned::inside(home),
    }
}

/// An engine to work with: the one that `docker` reaches, else the provisioned one, provisioned
/// and started as far as it is not yet.
pub(crate) fn up(cache: &Cache) -> Result<Engine> {
    let running = Stopwatch::start();
    let engine = match find::found(provisioned::endpoint(cache)?.as_deref())? {
        find::Found::Engine(engine) => engine,
        find::Found::Nothing { client, why } => match provisioned::up(cache, client) {
            Ok(engine) => engine,
            Err(failure) => {
                return Err(failure.context(format!(
                    "no engine to work with. The one that docker reaches cannot be used: {why}. \
                     Start Docker Engine {OLDEST_MAJOR} or newer, or run this as root on a \
                     Debian-like system. Provisioning one failed"
                )));
            }
        },
    };
    let kind = match engine.kind {
        Kind::Found => "found",
        Kind::Provisioned => "provisioned",
    };
    say(format_args!(
        "engine: {kind}, version {}, ready after {}",
        engine.version,
        seconds(running.elapsed())
    ));
    Ok(engine)
}

fn status(cache: &Cache) -> Result<Option<Engine>> {
    match find::found(provisioned::endpoint(cache)?.as_deref())? {
        find::Found::Engine(engine) => Ok(Some(engine)),
        find::Found::Nothing { client, .. } => provisioned::running(cache, client),
    }
}

fn report(engine: Option<&Engine>, json: bool) -> Result<()> {
    if json {
        answer(serde_json::to_string(&engine)?);
    } else if let Some(engine) = engine {
        let host = engine
            .docker_host
            .as_deref()
            .unwrap_or("(the client's default)");
        answer(format_args!("DOCKER_HOST={host}"));
        answer(format_args!("client {}", engine.client.display()));
        answer(format_args!("daemon {}", engine.version));
    } else {
        answer("no engine is up");
    }
    if engine.is_none() && json {
        bail!("no engine is up");
    }
    Ok(())
}

/// What can be done with a provisioned engine.
#[cfg(target_os = "linux")]
mod provisioned {
    use super::home::Home;
    use super::*;

    pub(super) fn endpoint(cache: &Cache) -> Result<Option<String>> {
        Ok(Some(Home::current(cache)?.endpoint()))
    }

    pub(super) fn up(cache: &Cache, client: Option<PathBuf>) -> Result<Engine> {
        let _lock = cache.lock()?;
        let home = Home::current(cache)?;
        provision::ensure(cache, &home, &provision::CURRENT)?;
        start::ensure(&home)?;
        find::provisioned(&home.endpoint(), client.unwrap_or_else(|| home.client()))
    }

    pub(super) fn running(cache: &Cache, client: Option<PathBuf>) -> Result<Option<Engine>> {
        let home = Home::current(cache)?;
        if !leftovers::Processes::of(&home)?.complete() {
            return Ok(None);
        }
        find::provisioned(&home.endpoint(), client.unwrap_or_else(|| home.client())).map(Some)
    }

    pub(super) fn down(cache: &Cache) -> Result<()> {
        let _lock = cache.lock()?;
        stop::down(&Home::current(cache)?)
    }

    pub(super) fn remove(cache: &Cache) -> Result<()> {
        let _lock = cache.lock()?;
        stop::down(&Home::current(cache)?)?;
        cache
            .subfolders()
            .iter()
            .try_for_each(|folder| stop::delete(folder))
    }

    pub(super) fn restart(cache: &Cache, changes: Changes, kill: bool) -> Result<()> {
        let _lock = cache.lock()?;
        start::restart(&Home::current(cache)?, changes, kill)
    }

    pub(super) fn inside(home: PathBuf) -> Result<()> {
        inside::enter(&Home::at(home)?)
    }
}

/// A provisioned engine needs Linux namespaces.
#[cfg(not(target_os = "linux"))]
mod provisioned {
    use super::*;

    pub(super) fn endpoint(_: &Cache) -> Result<Option<String>> {
        Ok(None)
    }

    pub(super) fn up(_: &Cache, _: Option<PathBuf>) -> Result<Engine> {
        none()
    }

    pub(super) fn running(_: &Cache, _: Option<PathBuf>) -> Result<Option<Engine>> {
        Ok(None)
    }

    pub(super) fn down(_: &Cache) -> Result<()> {
        none()
    }

    pub(super) fn remove(_: &Cache) -> Result<()> {
        none()
    }

    pub(super) fn restart(_: &Cache, _: Changes, _: bool) -> Result<()> {
        none()
    }

    pub(super) fn inside(_: PathBuf) -> Result<()> {
        none()
    }

    fn none<T>() -> Result<T> {
        bail!("an engine can be provisioned on Linux only")
    }
}
