//! Engines of every make beside each other, and what is known to differ between them.
//!
//! | module | knows |
//! |---|---|
//! | `expected` | what each engine is known to do, as one table |
//! | `look` | how an engine is looked at |
//! | `report` | how what was found is told to people and to programs |

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::cache::Cache;
use crate::engine::{self, Client, Make};
use crate::progress::{answer, say};

/// What to do with the engines.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EnginesArgs {
    #[command(subcommand)]
    action: Option<Action>,
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

pub(crate) fn run(args: &EnginesArgs) -> Result<()> {
    let cache = Cache::open()?;
    match args.action {
        None => Ok(()),
        Some(Action::Up { make }) => {
            let engine = engine::up_as(&cache, make, Client::Machine)?;
            answer(format_args!(
                "DOCKER_HOST={}",
                engine.docker_host.unwrap_or_default()
            ));
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
