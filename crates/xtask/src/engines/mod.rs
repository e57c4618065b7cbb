//! Engines of every make beside each other, and what is known to differ between them.
//!
//! | module | knows |
//! |---|---|
//! | `expected` | what each engine is known to do, as one table |
//! | `look` | how an engine is looked at |
//! | `report` | how what was found is told to people and to programs |

mod expected;
mod look;
mod report;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use crate::cache::Cache;
use crate::engine::{self, Client, Engine, Make};
use crate::images;
use crate::process::{Program, tail};
use crate::progress::{Steps, answer, say};

use look::{Found, Lookers};

/// What to do with the engines.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EnginesArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Look at engines of this make only
    #[arg(long = "only", value_name = "MAKE")]
    only: Vec<Make>,
    /// Answer as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Leave the engines running
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Provision and start an engine beside the default one, and say where it is
    Up { make: Make },
    /// Stop one of them, or all
    Down { make: Option<Make> },
    /// Stop and delete all of them
    Remove,
}

/// An engine with a client, as it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    New,
    Old,
    /// With the docker client of its own age.
    OldClient,
    Userns,
    Rootless,
    /// Where it has no control groups at all.
    RootlessBare,
}

/// What was found on one engine.
#[derive(Debug)]
struct Seen {
    seat: Seat,
    version: String,
    found: Vec<Found>,
    /// What this machine does not allow to be checked there, and why.
    unchecked: Option<String>,
}

/// How the look at one engine ended.
#[derive(Debug)]
enum Outcome {
    Seen(Seen),
    /// This machine cannot have such an engine, as the reason proves.
    Missing {
        seat: Seat,
        why: String,
    },
    /// It should be there, and is not.
    Broken {
        seat: Seat,
        why: String,
    },
}

/// Runs `cargo xtask engines …`.
pub(crate) fn run(args: &EnginesArgs) -> Result<()> {
    let cache = Cache::open()?;
    match args.action {
        None => matrix(&cache, args),
        Some(Action::Up { make }) => {
            let engine = engine::up_as(&cache, make, Client::Machine)?;
            let host = engine.docker_host.unwrap_or_default();
            answer(format_args!("DOCKER_HOST={host}"));
            Ok(())
        }
        Some(Action::Down { make }) => each(make, |make| engine::down(&cache, make)),
        Some(Action::Remove) => {
            each(None, |make| engine::remove(&cache, make))?;
            say("the engines beside the default one are removed");
            Ok(())
        }
    }
}

fn each(make: Option<Make>, what: impl Fn(Make) -> Result<()>) -> Result<()> {
    match make {
        Some(make) => what(make),
        None => Make::OTHERS.into_iter().try_for_each(what),
    }
}

/// Looks at every engine, and fails unless all is as it is known to be.
fn matrix(cache: &Cache, args: &EnginesArgs) -> Result<()> {
    let mut steps = Steps::default();
    let lookers = steps.run("build", Lookers::build)?;
    let mut outcomes = Vec::new();
    for seat in Seat::ALL {
        if !args.only.is_empty() && !args.only.contains(&seat.make()) {
            continue;
        }
        let seen = steps.run(seat.name(), || look(cache, &lookers, seat));
        outcomes.push(match seen {
            Ok(seen) => Outcome::Seen(seen),
            Err(why) => match missing(seat)? {
                Some(proof) => Outcome::Missing { seat, why: proof },
                None => Outcome::Broken {
                    seat,
                    why: format!("{why:#}"),
                },
            },
        });
        if !args.keep && seat.make() != Make::New {
            engine::down(cache, seat.make())?;
        }
    }
    if args.json {
        answer(report::object(&outcomes));
    } else {
        answer(report::table(&outcomes));
        answer(report::remarks(&outcomes));
    }
    match report::deviations(&outcomes).len() {
        0 => Ok(()),
        1 => bail!("one difference between engines is not as it is known"),
        count => bail!("{count} differences between engines are not as they are known"),
    }
}

fn look(cache: &Cache, lookers: &Lookers, seat: Seat) -> Result<Seen> {
    let engine = match seat.make() {
        Make::New => engine::up(cache)?,
        make => engine::up_as(cache, make, seat.client())?,
    };
    let image = images::ensure_base(cache, &engine)?;
    lookers.look(seat.on(&engine)?, &engine, &image)
}

/// Why this machine cannot have such an engine, proved by what is tried here; nothing when it
/// can, and the failure is one.
fn missing(seat: Seat) -> Result<Option<String>> {
    if seat.make() != Make::Rootless {
        return Ok(None);
    }
    let namespaces = Program::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["unshare", "--user", "--map-root-user", "true"]);
    let tried = namespaces.finish()?;
    if tried.status.success() {
        return Ok(None);
    }
    let said = tail(&tried.stderr);
    Ok(Some(format!(
        "all of it, since a user without privileges cannot have a namespace of ids here: \
         `{namespaces}`: {said}"
    )))
}

impl Seat {
    /// Every one that is looked at; what is found there may make it a barer one.
    const ALL: [Self; 5] = [
        Self::New,
        Self::Old,
        Self::OldClient,
        Self::Userns,
        Self::Rootless,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Old => "old",
            Self::OldClient => "old, own client",
            Self::Userns => "userns",
            Self::Rootless | Self::RootlessBare => "rootless",
        }
    }

    const fn make(self) -> Make {
        match self {
            Self::New => Make::New,
            Self::Old | Self::OldClient => Make::Old,
            Self::Userns => Make::Userns,
            Self::Rootless | Self::RootlessBare => Make::Rootless,
        }
    }

    const fn client(self) -> Client {
        match self {
            Self::OldClient => Client::Own,
            _ => Client::Machine,
        }
    }

    /// What this machine lets the engine be.
    fn on(self, engine: &Engine) -> Result<Self> {
        if self != Self::Rootless {
            return Ok(self);
        }
        let driver = engine
            .docker()
            .args(["info", "--format", "{{.CgroupDriver}}"]);
        Ok(match driver.read()?.trim() {
            "none" => Self::RootlessBare,
            _ => self,
        })
    }
}

impl Outcome {
    fn seat(&self) -> Seat {
        match self {
            Self::Seen(seen) => seen.seat,
            Self::Missing { seat, .. } | Self::Broken { seat, .. } => *seat,
        }
    }

    fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Seen(seen) => Some(seen),
            _ => None,
        }
    }

    fn unchecked(&self) -> Option<(Seat, &str)> {
        let why = match self {
            Self::Seen(seen) => seen.unchecked.as_deref()?,
            Self::Missing { why, .. } => why,
            Self::Broken { .. } => return None,
        };
        Some((self.seat(), why))
    }
}
