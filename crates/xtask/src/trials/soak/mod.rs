//! Many sandboxes through their life, while what they consist of is killed at random: hosts,
//! relays, guests, and the daemon of an engine that nobody else relies on.
//!
//! Choices come from a seed, moments from the machine.

mod kills;
mod machine;

use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use fastrand::Rng;

use super::events::{Events, Holds};
use super::hosts::{Host, Hosts};
use super::verdict::Verdict;
use crate::cache::Cache;
use crate::engine::{self, Client, Make};
use crate::images;
use crate::progress::{Steps, Stopwatch, answer, say, seconds};

use kills::{Kills, Victim};

/// How many hosts take sandboxes at the same time. The first one is never killed, so that what it
/// holds of the machine's can be compared between begin and end.
const HOSTS: u64 = 4;

/// How long a host may take to finish what it is at.
const FINISHING: Duration = Duration::from_secs(180);

/// How long the processes of hosts that are gone may take to end.
const FADING: Duration = Duration::from_secs(60);

/// How much more the first host may hold at its end than at its begin.
const MORE_DESCRIPTORS: u64 = 8;
const MORE_RESIDENT_KIB: u64 = 32 * 1024;

/// How to soak.
#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// How many sandboxes
    #[arg(long, default_value_t = 500)]
    sandboxes: u64,
    /// What hosts and kills choose by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The longest that sandboxes are taken
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Kill nothing
    #[arg(long)]
    no_kills: bool,
    /// Leave the engine running
    #[arg(long)]
    keep: bool,
}

/// One host after another that take the sandboxes of these numbers.
struct Line {
    host: Host,
    /// The first number that this host takes.
    next: u64,
    end: u64,
    generation: u32,
}

/// Soaks, and fails unless nothing is left, nothing grows, nothing locks up and every error was
/// one that the design names.
pub(crate) fn run(args: &SoakArgs) -> Result<()> {
    let cache = Cache::open()?;
    let mut steps = Steps::default();
    let engine = steps.run("engine", || {
        engine::up_as(&cache, Make::Soak, Client::Machine)
    })?;
    let image = steps.run("image", || images::ensure_base(&cache, &engine))?;
    let hosts = steps.run("build", || Hosts::new("soak", engine, image))?;
    let soaked = soak(args, &cache, &hosts);
    if !args.keep {
        engine::down(&cache, Make::Soak)?;
    }
    soaked?.conclude()
}

fn soak(args: &SoakArgs, cache: &Cache, hosts: &Hosts) -> Result<Verdict> {
    let running = Stopwatch::start();
    say(format_args!(
        "{} sandboxes in {HOSTS} hosts (seed {})",
        args.sandboxes, args.seed
    ));
    let mut course = Course::start(args, hosts)?;
    course.run(args, cache, hosts, running)?;
    let Course {
        lines,
        mut events,
        kills,
        mut failed,
        ..
    } = course;
    let in_time = running.elapsed() < args.longest();
    // That the time is over is no fault of a host's.
    let longest = if in_time { FINISHING } else { Duration::ZERO };
    let mut first = Events::default();
    for (number, mut line) in lines.into_iter().enumerate() {
        let ended = line.host.finish(longest)?;
        failed.extend(ended.filter(|_| in_time));
        events.read(line.host.said())?;
        if number == 0 {
            first.read(line.host.said())?;
        }
    }
    answer(events.table());
    let mut verdict = Verdict::default();
    verdict.tell("took", seconds(running.elapsed()));
    let lives = events.lives.len();
    verdict.tell(
        "lives",
        format_args!("{lives} to their end, of {}", args.sandboxes),
    );
    verdict.tell("kills", kills);
    verdict.none("hosts that failed", &failed);
    verdict.none("ends that the design does not name", &events.unnamed());
    if in_time {
        growth(&mut verdict, &first.holds);
    } else {
        verdict.tell(
            "what the first host held",
            "not told, since the time was over",
        );
    }
    processes(&mut verdict, hosts)?;
    let paused = ["ps", "--filter=status=paused", "--format={{.Names}}"];
    verdict.none("sandboxes that stay paused", &hosts.listed(&paused, false)?);
    hosts.undo(&mut verdict)?;
    unlabelled(&mut verdict, hosts)?;
    say("waiting until the folders of killed hosts may be removed");
    hosts.no_files_of_the_dead(&mut verdict)?;
    Ok(verdict)
}

/// What the first host held at its begin and at its end.
fn growth(verdict: &mut Verdict, holds: &[Holds]) {
    let (Some(begin), Some(end)) = (holds.first(), holds.get(1)) else {
        return verdict.require("what the first host held", "it did not tell", false);
    };
    let pair = |begin: u64, end: u64| format!("{begin} at its begin, {end} at its end");
    verdict.require(
        "descriptors of the first host",
        pair(begin.descriptors, end.descriptors),
        end.descriptors <= begin.descriptors + MORE_DESCRIPTORS,
    );
    verdict.require(
        "resident KiB of the first host",
        pair(begin.resident_kib, end.resident_kib),
        end.resident_kib <= begin.resident_kib + MORE_RESIDENT_KIB,
    );
}

/// Docker clients, guards and whatever else hosts have started and are gone.
fn processes(verdict: &mut Verdict, hosts: &Hosts) -> Result<()> {
    let endpoint = hosts.engine.docker_host.as_deref().unwrap_or_default();
    let waiting = Stopwatch::start();
    let mut left = machine::clients(endpoint, &[])?;
    while !left.is_empty() && waiting.elapsed() < FADING {
        thread::sleep(Duration::from_millis(200));
        left = machine::clients(endpoint, &[])?;
    }
    let lines: Vec<_> = left.iter().map(|process| process.line.clone()).collect();
    verdict.none("processes of hosts left", &lines);
    // The fault is told; the next run shall not find it.
    left.iter().try_for_each(|process| process.kill().map(drop))
}

/// What a label cannot lead to, on an engine that has nothing else.
fn unlabelled(verdict: &mut Verdict, hosts: &Hosts) -> Result<()> {
    let all = ["ps", "--all", "--format={{.Names}} {{.Status}}"];
    verdict.none("containers of anybody left", &hosts.listed(&all, false)?);
    let mut volumes = hosts.listed(&["volume", "ls", "--format={{.Name}}"], false)?;
    // It is shared by all sandboxes, and stays for the next one.
    volumes.retain(|name| !name.starts_with("stockade-runtime-"));
    verdict.none("volumes of anybody left", &volumes);
    Ok(())
}

impl SoakArgs {
    fn longest(&self) -> Duration {
        Duration::from_secs(self.minutes * 60)
    }
}

/// The soak itself, as far as it has come.
struct Course {
    lines: Vec<Line>,
    events: Events,
    kills: Kills,
    failed: Vec<String>,
    random: Rng,
}

impl Course {
    fn start(args: &SoakArgs, hosts: &Hosts) -> Result<Self> {
        let share = args.sandboxes.div_ceil(HOSTS);
        let lines = (0..HOSTS).map(|number| {
            let next = (number * share).min(args.sandboxes);
            let end = (next + share).min(args.sandboxes);
            Ok(Line {
                host: start(hosts, args.seed, number, 0, next, end)?,
                next,
                end,
                generation: 0,
            })
        });
        Ok(Self {
            lines: lines.collect::<Result<_>>()?,
            events: Events::default(),
            kills: Kills::default(),
            failed: Vec::new(),
            random: Rng::with_seed(args.seed),
        })
    }

    /// Kills until every host has ended, or the time is over.
    fn run(
        &mut self,
        args: &SoakArgs,
        cache: &Cache,
        hosts: &Hosts,
        running: Stopwatch,
    ) -> Result<()> {
        let mut told = Stopwatch::start();
        while running.elapsed() < args.longest() && self.goes_on()? {
            thread::sleep(Duration::from_millis(self.random.u64(300..1500)));
            if told.elapsed() > Duration::from_secs(10) {
                told = Stopwatch::start();
                self.progress(running)?;
            }
            if args.no_kills {
                continue;
            }
            match Victim::choose(&mut self.random) {
                Victim::Host => self.kill_host(args, hosts)?,
                other => self.kills.kill(other, &mut self.random, cache, hosts)?,
            }
        }
        Ok(())
    }

    fn goes_on(&mut self) -> Result<bool> {
        for line in &mut self.lines {
            if line.host.running.ended()?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn progress(&self, running: Stopwatch) -> Result<()> {
        let mut lives = self.events.lives.len();
        for line in &self.lines {
            let mut events = Events::default();
            events.read(line.host.said())?;
            lives += events.lives.len();
        }
        let (took, kills) = (seconds(running.elapsed()), &self.kills);
        say(format_args!("{took}: {lives} lives; killed: {kills}"));
        Ok(())
    }

    /// Kills any host but the first, and has another one go on where that one was.
    fn kill_host(&mut self, args: &SoakArgs, hosts: &Hosts) -> Result<()> {
        let number = self.random.usize(1..self.lines.len());
        let line = &mut self.lines[number];
        if line.host.running.ended()?.is_some() {
            return Ok(());
        }
        line.host.running.kill()?;
        self.kills.hosts += 1;
        let mut events = Events::default();
        events.read(line.host.said())?;
        self.events.read(line.host.said())?;
        line.next = events.lives.last().map_or(line.next, |last| last + 1);
        line.generation += 1;
        let (generation, next, end) = (line.generation, line.next, line.end);
        line.host = start(hosts, args.seed, number as u64, generation, next, end)?;
        Ok(())
    }
}

fn start(
    hosts: &Hosts,
    seed: u64,
    number: u64,
    generation: u32,
    next: u64,
    end: u64,
) -> Result<Host> {
    let words = [seed.to_string(), next.to_string(), end.to_string()];
    hosts.start(&format!("{number}-{generation}"), "lives", &words)
}
