//! Many hosts that race on one key, without any agreement: acquire with one of two specs, use,
//! dispose, reap.

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::events::Events;
use super::hosts::{Host, Hosts};
use super::verdict::Verdict;
use crate::cache::Cache;
use crate::engine::{self, Client, Make};
use crate::images;
use crate::progress::{Steps, Stopwatch, answer, say, seconds};

/// How long hosts may take to start, and to finish what they are at, on a loaded machine.
const SLACK: Duration = Duration::from_secs(180);

/// How to race.
#[derive(Debug, Args)]
pub(crate) struct RaceArgs {
    /// How many hosts
    #[arg(long, default_value_t = 20)]
    processes: u32,
    /// For how long
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// What the hosts choose by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// On a provisioned engine of this make, instead of the one that tests use
    #[arg(long, value_name = "MAKE")]
    engine: Option<Make>,
}

/// Races, and fails unless one sandbox or none is left and every error was one that the design
/// names.
pub(crate) fn run(args: &RaceArgs) -> Result<()> {
    let cache = Cache::open()?;
    let mut steps = Steps::default();
    let engine = steps.run("engine", || match args.engine {
        None => engine::up(&cache),
        Some(make) => engine::up_as(&cache, make, Client::Machine),
    })?;
    let image = steps.run("image", || images::ensure_base(&cache, &engine))?;
    let hosts = steps.run("build", || Hosts::new("race", engine, image))?;
    let running = Stopwatch::start();
    say(format_args!(
        "{} hosts race for {} s (seed {})",
        args.processes, args.seconds, args.seed
    ));
    let mut racing = (0..u64::from(args.processes))
        .map(|number| {
            let seed = args.seed.wrapping_mul(1000) + number;
            let words = [
                seed.to_string(),
                "seconds".to_owned(),
                args.seconds.to_string(),
            ];
            hosts.start(&number.to_string(), "race", &words)
        })
        .collect::<Result<Vec<Host>>>()?;
    let mut events = Events::default();
    let mut failed = Vec::new();
    let over = Duration::from_secs(args.seconds.into()) + SLACK;
    for host in &mut racing {
        failed.extend(host.finish(over.saturating_sub(running.elapsed()))?);
        events.read(host.said())?;
    }
    answer(events.table());
    let mut verdict = Verdict::default();
    verdict.tell("hosts", args.processes);
    verdict.tell("took", seconds(running.elapsed()));
    verdict.tell("operations", events.total());
    verdict.none("hosts that failed", &failed);
    verdict.none("ends that the design does not name", &events.unnamed());
    let left = hosts.listed(&["ps", "--all", "--format={{.Names}} {{.Status}}"], true)?;
    verdict.require(
        "sandboxes at the end, at most one",
        left.len(),
        left.len() <= 1,
    );
    hosts.undo(&mut verdict)?;
    hosts.no_files(&mut verdict)?;
    if let Some(make) = args.engine {
        engine::down(&cache, make)?;
    }
    verdict.conclude()
}
