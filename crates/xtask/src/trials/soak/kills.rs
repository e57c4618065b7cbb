//! What is killed while sandboxes live, and how often it was.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;

use super::machine;
use crate::cache::Cache;
use crate::engine::{self, Changes, Client, Engine, Make};
use crate::progress::{Stopwatch, say};
use crate::trials::hosts::Hosts;

/// Between two ends of the daemon: it takes seconds to come back.
const BETWEEN_DAEMONS: Duration = Duration::from_secs(20);

/// How long the engine may take to kill a container.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is killed next. Hosts are the caller's own to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    Host,
    Relay,
    Guest,
    FirstProcess,
    Daemon,
}

/// How often each was killed.
#[derive(Debug, Default)]
pub(super) struct Kills {
    pub(super) hosts: u32,
    relays: u32,
    guests: u32,
    first_processes: u32,
    daemons: u32,
    /// Ends of the daemon that its containers outlived.
    with_live_restore: u32,
    /// Ends of the daemon after which it had to be started from nothing.
    healed: u32,
    last_daemon: Option<Stopwatch>,
}

impl Victim {
    pub(super) fn choose(random: &mut Rng) -> Self {
        match random.u8(..100) {
            0..20 => Self::Host,
            20..50 => Self::Relay,
            50..70 => Self::Guest,
            70..90 => Self::FirstProcess,
            _ => Self::Daemon,
        }
    }
}

impl Kills {
    /// Kills one of these, if there is one.
    pub(super) fn kill(
        &mut self,
        victim: Victim,
        random: &mut Rng,
        cache: &Cache,
        hosts: &Hosts,
    ) -> Result<()> {
        match victim {
            Victim::Host => {}
            Victim::Relay => {
                let endpoint = hosts.engine.docker_host.as_deref().unwrap_or_default();
                let mut relays = machine::clients(endpoint, &[])?;
                relays.retain(machine::Process::is_relay);
                if let Some(relay) = random.choice(relays) {
                    self.relays += u32::from(relay.kill()?);
                }
            }
            Victim::Guest => {
                let running = hosts.listed(&["ps", "--quiet", "--no-trunc"], true)?;
                if let Some(id) = random.choice(running) {
                    self.guests += u32::from(end_container(&hosts.engine, &id)?);
                }
            }
            Victim::FirstProcess => {
                let group = engine::control_group(cache, Make::Soak)?;
                if let Some(first) = random.choice(machine::first_processes(&group)?) {
                    self.first_processes += u32::from(first.kill()?);
                }
            }
            Victim::Daemon => self.end_daemon(random, cache)?,
        }
        Ok(())
    }

    /// Ends the daemon, by a signal that it may answer or not, and starts it again; its
    /// containers live on or not.
    fn end_daemon(&mut self, random: &mut Rng, cache: &Cache) -> Result<()> {
        let (live_restore, kill) = (random.bool(), random.bool());
        let recent = self
            .last_daemon
            .is_some_and(|last| last.elapsed() < BETWEEN_DAEMONS);
        if recent {
            return Ok(());
        }
        let changes = Changes {
            live_restore: Some(live_restore),
            userns_remap: None,
        };
        if let Err(why) = engine::restart(cache, Make::Soak, changes, kill) {
            say(format_args!(
                "the daemon did not come back by itself: {why:#}"
            ));
            engine::up_as(cache, Make::Soak, Client::Machine)?;
            self.healed += 1;
        }
        self.daemons += 1;
        self.with_live_restore += u32::from(live_restore);
        self.last_daemon = Some(Stopwatch::start());
        Ok(())
    }
}

/// `false` when it has ended by itself, or the engine is too busy to end it.
fn end_container(engine: &Engine, id: &str) -> Result<bool> {
    let kill = engine.docker().args(["kill", id]).deadline(PATIENCE);
    Ok(kill.finish()?.status.success())
}

impl Display for Kills {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            hosts,
            relays,
            guests,
            first_processes,
            daemons,
            with_live_restore,
            healed,
            ..
        } = self;
        write!(
            f,
            "{hosts} hosts, {relays} relays, {guests} guests by the engine, {first_processes} from \
             outside, {daemons} daemons ({with_live_restore} with live restore, {healed} healed)"
        )
    }
}
