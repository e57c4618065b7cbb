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
//! | `make` | which makes of engine there are |
//! | `find` | which client and daemon this machine has |
//! | `home` | where the provisioned engine keeps what |
//! | `provision` | how its root file system is made |
//! | `start` | how its processes are started, and what is healed when some of them are dead |
//! | `inside` | what its first process does in the new namespaces |
//! | `stop` | how it is stopped and removed |
//! | `leftovers` | which processes and mounts of it exist, and how they are cleared |
//! | `cgroups` | the control groups of its containers |
//! | `remap` | what it needs to remap the user ids of its containers |
//! | `rootless` | what it needs to be run by a user without privileges |
//!
//! One such engine is what demo and tests use. Others, each of a [`Make`] and in a home of its own,
//! exist beside it for whoever asks for them by name: they share no process, no socket and nothing
//! that is stored.

#[cfg(target_os = "linux")]
mod cgroups;
mod find;
#[cfg(target_os = "linux")]
mod home;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod leftovers;
mod make;
#[cfg(target_os = "linux")]
mod provision;
#[cfg(target_os = "linux")]
mod remap;
#[cfg(target_os = "linux")]
mod rootless;
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
pub(crate) use make::Make;

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
    /// Become the first process of a provisioned engine
    #[command(hide = true)]
    Inside { make: Make, home: PathBuf },
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

/// Settings of a provisioned engine that a restart changes; nothing leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) live_restore: Option<bool>,
    pub(crate) userns_remap: Option<bool>,
}

/// Which docker client drives a provisioned engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// The machine's, where it is new enough, else the engine's own.
    Machine,
    /// The one of the engine's age.
    Own,
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
        Action::Down => down(&Cache::open()?, Make::New),
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
            self::restart(&Cache::open()?, Make::New, changes, restart.kill)
        }
        Action::Inside { make, home } => provisioned::inside(home, make),
    }
}

/// An engine to work with: the one that `docker` reaches, else the provisioned one, provisioned
/// and started as far as it is not yet.
pub(crate) fn up(cache: &Cache) -> Result<Engine> {
    let running = Stopwatch::start();
    let engine = match find::found(provisioned::endpoint(cache)?.as_deref())? {
        find::Found::Engine(engine) => engine,
        find::Found::Nothing { client, why } => match provisioned::up(cache, Make::New, client) {
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

/// The provisioned engine of this make, provisioned and started as far as it is not yet.
pub(crate) fn up_as(cache: &Cache, make: Make, client: Client) -> Result<Engine> {
    let client = match client {
        Client::Machine => provisioned::client()?,
        Client::Own => None,
    };
    provisioned::up(cache, make, client)
}

/// Stops the provisioned engine of this make. What is stored in it stays.
pub(crate) fn down(cache: &Cache, make: Make) -> Result<()> {
    provisioned::down(cache, make)
}

/// Stops the provisioned engine of this make, and deletes all of it.
pub(crate) fn remove(cache: &Cache, make: Make) -> Result<()> {
    provisioned::remove_home(cache, make)
}

/// Ends the daemon of a provisioned engine and starts it again.
pub(crate) fn restart(cache: &Cache, make: Make, changes: Changes, kill: bool) -> Result<()> {
    provisioned::restart(cache, make, changes, kill)
}

/// The control group that is above those of a provisioned engine's containers.
#[cfg(target_os = "linux")]
pub(crate) fn control_group(cache: &Cache, make: Make) -> Result<String> {
    Ok(home::Home::of(cache, make)?.cgroup())
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
        Ok(Some(Home::of(cache, Make::New)?.endpoint()))
    }

    pub(super) fn client() -> Result<Option<PathBuf>> {
        find::client()
    }

    pub(super) fn up(cache: &Cache, make: Make, client: Option<PathBuf>) -> Result<Engine> {
        let home = Home::of(cache, make)?;
        let _lock = home.lock(cache)?;
        provision::ensure(cache, &home)?;
        start::ensure(&home)?;
        reached(&home, client)
    }

    pub(super) fn running(cache: &Cache, client: Option<PathBuf>) -> Result<Option<Engine>> {
        let home = Home::of(cache, Make::New)?;
        if !leftovers::Processes::of(&home)?.complete() {
            return Ok(None);
        }
        reached(&home, client).map(Some)
    }

    fn reached(home: &Home, client: Option<PathBuf>) -> Result<Engine> {
        let client = client.unwrap_or_else(|| home.client());
        find::provisioned(home.make(), &home.endpoint(), client)
    }

    pub(super) fn down(cache: &Cache, make: Make) -> Result<()> {
        let home = Home::of(cache, make)?;
        let _lock = home.lock(cache)?;
        stop::down(&home)
    }

    pub(super) fn remove_home(cache: &Cache, make: Make) -> Result<()> {
        let home = Home::of(cache, make)?;
        let _lock = home.lock(cache)?;
        stop::down(&home)?;
        stop::delete(home.folder())
    }

    pub(super) fn remove(cache: &Cache) -> Result<()> {
        for make in Make::OTHERS {
            remove_home(cache, make)?;
        }
        let home = Home::of(cache, Make::New)?;
        let _lock = home.lock(cache)?;
        stop::down(&home)?;
        cache
            .subfolders()
            .iter()
            .try_for_each(|folder| stop::delete(folder))
    }

    pub(super) fn restart(cache: &Cache, make: Make, changes: Changes, kill: bool) -> Result<()> {
        let home = Home::of(cache, make)?;
        let _lock = home.lock(cache)?;
        start::restart(&home, changes, kill)
    }

    pub(super) fn inside(home: PathBuf, make: Make) -> Result<()> {
        inside::enter(&Home::at(home, make)?)
    }
}

/// A provisioned engine needs Linux namespaces.
#[cfg(not(target_os = "linux"))]
mod provisioned {
    use super::*;

    pub(super) fn endpoint(_: &Cache) -> Result<Option<String>> {
        Ok(None)
    }

    pub(super) fn client() -> Result<Option<PathBuf>> {
        Ok(None)
    }

    pub(super) fn up(_: &Cache, _: Make, _: Option<PathBuf>) -> Result<Engine> {
        none()
    }

    pub(super) fn running(_: &Cache, _: Option<PathBuf>) -> Result<Option<Engine>> {
        Ok(None)
    }

    pub(super) fn down(_: &Cache, _: Make) -> Result<()> {
        none()
    }

    pub(super) fn remove_home(_: &Cache, _: Make) -> Result<()> {
        none()
    }

    pub(super) fn remove(_: &Cache) -> Result<()> {
        none()
    }

    pub(super) fn restart(_: &Cache, _: Make, _: Changes, _: bool) -> Result<()> {
        none()
    }

    pub(super) fn inside(_: PathBuf, _: Make) -> Result<()> {
        none()
    }

    fn none<T>() -> Result<T> {
        bail!("an engine can be provisioned on Linux only")
    }
}
