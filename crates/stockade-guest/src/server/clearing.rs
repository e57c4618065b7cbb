//! Killing what nobody answers for, and killing everything.

use std::time::{Duration, Instant};

use rustix::process::Pid;
use stockade_wire::Kind;
use stockade_wire::inquiry::Happening;
use stockade_wire::limits::KILL_BOUND;
use stockade_wire::message::{KilledAll, Status};

use super::run::{Ending, Run};
use super::{ConnectionId, RunId, Server};
use crate::kill::{self, Pass, Trees};
use crate::proc::{Process, Processes};
use crate::sys;

/// Pauses between two passes of killing.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Passes in a row that must find nothing before nothing is believed to be
/// there. One pass can miss a process whose parent's pid was passed before
/// the numbers wrapped; two in a row would have to be missed the same way.
const CLEAN_PASSES: u32 = 2;

/// The search for processes that belong to no living command: children of
/// PID 1 that are no supervisors, and everything below them.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// When to look next; `None` when there is no reason to.
    due: Option<Instant>,
    clean: u32,
    pause: Duration,
}

/// Killing everything on a host's demand.
#[derive(Debug)]
pub(super) struct Clearing {
    since: Instant,
    due: Instant,
    pause: Duration,
    /// Who waits for the answer. Nobody when the demand was a signal, which
    /// also kills the relays.
    askers: Vec<ConnectionId>,
}

impl Strays {
    /// Something was lost: look for what it left.
    pub(super) fn look(&mut self, now: Instant) {
        self.due = Some(now);
        self.clean = 0;
        self.pause = SHORTEST_PAUSE;
    }

    /// When to go on.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// There is certainly nothing.
    fn stop(&mut self) {
        self.due = None;
    }

    /// Takes note of a pass. True when nothing is left.
    fn note(&mut self, pass: Pass, complete: bool, now: Instant) -> bool {
        if pass.found == 0 && complete {
            self.clean += 1;
            self.due = (self.clean < CLEAN_PASSES).then_some(now);
        } else {
            self.clean = 0;
            self.due = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        self.due.is_none()
    }
}

impl Clearing {
    /// Whether relays are killed, too.
    pub(super) fn spares_nobody(&self) -> bool {
        self.askers.is_empty()
    }

    /// When to go on.
    pub(super) fn deadline(&self) -> Instant {
        self.due
    }
}

impl Server {
    /// Begins to kill everything; `asker` waits for the answer, and without
    /// one the relays go as well. Commands in the queue end unstarted.
    pub(super) fn begin_clearing(&mut self, asker: Option<ConnectionId>, now: Instant) {
        let clearing = self.clearing.get_or_insert(Clearing {
            since: now,
            due: now,
            pause: SHORTEST_PAUSE,
            askers: Vec::new(),
        });
        match asker {
            Some(asker) if !clearing.askers.contains(&asker) => clearing.askers.push(asker),
            Some(_) => {}
            None => clearing.askers.clear(),
        }
        clearing.due = now;
        let ids: Vec<RunId> = self.runs.keys().copied().collect();
        for id in ids {
            self.end(id, Status::Cancelled, now);
            let live = self.runs.get_mut(&id).and_then(Run::live_mut);
            if let Some(ending) = live.and_then(|live| live.ending.as_mut()) {
                ending.taken_over = true;
            }
        }
    }

    /// Goes on with killing everything, if it is due.
    pub(super) fn clear(&mut self, now: Instant) {
        let Some(clearing) = &mut self.clearing else {
            return;
        };
        if now < clearing.due {
            return;
        }
        clearing.due = now + clearing.pause;
        clearing.pause = (clearing.pause * 2).min(LONGEST_PAUSE);
        let since = clearing.since;
        let found = match clearing.spares_nobody() {
            true => {
                let _ = sys::kill_everything();
                None
            }
            false => Some(kill_all_but_relays(&self.sandbox.processes)),
        };
        // Finding no child proves it, and ends the clearing there.
        self.reap(now);
        if self.clearing.is_some() && now >= since + KILL_BOUND {
            let count = || kill::count(&self.sandbox.processes, Trees::of(is_inside));
            let left = found.unwrap_or_else(count);
            self.finish_clearing(left.max(1), now);
        }
    }

    /// PID 1 has no child: nothing that a command started is alive.
    pub(super) fn note_childless(&mut self, now: Instant) {
        self.strays.stop();
        self.conclude_lost(0, now);
        if self.clearing.is_some() {
            self.finish_clearing(0, now);
        }
    }

    /// Goes on with the search for strays, if it is due.
    pub(super) fn sweep(&mut self, now: Instant) {
        if self.strays.due.is_none_or(|due| now < due) {
            return;
        }
        let live = self.runs.values().filter_map(Run::live);
        let supervisors: Vec<Pid> = live
            .filter_map(|live| live.supervisor.as_ref())
            .map(|supervisor| supervisor.pid)
            .collect();
        let is_stray = |process: &Process| {
            process.parent == Some(Pid::INIT) && !supervisors.contains(&process.pid)
        };
        let (pass, result) = kill::kill_once(&self.sandbox.processes, Trees::of(is_stray));
        if self.strays.note(pass, result.is_ok(), now) {
            self.conclude_lost(0, now);
        }
    }

    /// Deals with commands that do not end although they should.
    pub(super) fn press(&mut self, id: RunId, now: Instant) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let concluded = run.concluded;
        let Some(live) = run.live_mut() else {
            return;
        };
        let Some(ending) = &mut live.ending else {
            return;
        };
        if now < ending.since + Ending::PATIENCE {
            return;
        }
        if let Some(supervisor) = &live.supervisor
            && !ending.taken_over
        {
            ending.taken_over = true;
            let _ = sys::signal(supervisor.pid, libc::SIGKILL);
        }
        if !concluded && now >= ending.since + KILL_BOUND {
            let left = self.count_of(id);
            self.conclude(id, left.max(1), now);
        }
    }

    /// Living processes that may be of a command's tree.
    fn count_of(&self, id: RunId) -> u32 {
        let live = self.runs.get(&id).and_then(Run::live);
        let supervisor = live.and_then(|live| live.supervisor.as_ref());
        let parent = supervisor.map_or(Pid::INIT, |supervisor| supervisor.pid);
        let below = |process: &Process| process.parent == Some(parent);
        kill::count(&self.sandbox.processes, Trees::of(below))
    }

    fn finish_clearing(&mut self, left: u32, now: Instant) {
        let Some(clearing) = self.clearing.take() else {
            return;
        };
        self.kill_generation += 1;
        let generation = self.kill_generation;
        let what = Happening::KilledAll { generation, left };
        self.journal.note(what, now);
        let killed = KilledAll { generation, left };
        for asker in clearing.askers {
            if let Some(connection) = self.connections.get_mut(&asker) {
                connection.send_json(Kind::KilledAll, 0, &killed);
            }
        }
        if left > 0 {
            self.strays.look(now);
        }
    }
}

impl Ending {
    /// How long a supervisor may take. It gives up a second earlier itself,
    /// and a second later the host is told.
    pub(super) const PATIENCE: Duration = Duration::from_secs(4);
}

/// Kills every process but PID 1 and those that the engine started, once.
/// Answers how many were alive. When the processes cannot be told apart, for
/// want of descriptors, the relays go as well: hosts attach again.
pub(super) fn kill_all_but_relays(processes: &Processes) -> u32 {
    let (pass, result) = kill::kill_once(processes, Trees::of(is_inside));
    if result.is_err() {
        let _ = sys::kill_everything();
    }
    pass.found
}

/// PID 1 has no parent that it can see, nor has what the engine starts.
fn is_inside(process: &Process) -> bool {
    process.parent.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn strays_are_believed_gone_only_after_two_clean_passes() {
        let (now, clean, found) = (now(), Pass { found: 0 }, Pass { found: 2 });
        let mut strays = Strays::default();
        strays.look(now);
        assert!(!strays.note(clean, true, now));
        assert!(!strays.note(found, true, now));
        assert!(!strays.note(clean, true, now));
        assert!(!strays.note(clean, false, now));
        assert!(!strays.note(clean, true, now));
        assert!(strays.note(clean, true, now));
        assert_eq!(strays.deadline(), None);
    }
}
