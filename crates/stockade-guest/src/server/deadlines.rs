//! Everything that happens because time has passed.

use std::time::Instant;

use stockade_wire::ends::End;
use stockade_wire::inquiry::Detachment;
use stockade_wire::limits::KILL_BOUND;
use stockade_wire::message::Status;

use super::asker::{self, Asker};
use super::run::{Ending, Run};
use super::{ConnectionId, Leaving, PARTING, RunId, Server};

impl Server {
    /// When [`Self::expire`] or [`Self::advance`] has something to do next.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        if self.reap_again {
            return now;
        }
        if let Some(leaving) = &self.leaving {
            return self.leaves_at(leaving, now);
        }
        let connections = self.connections.values();
        let connections = connections.map(|connection| connection.deadline());
        let runs = self.runs.values();
        let runs = runs.flat_map(|run| [run.deadline(), run.pressing(), run.output.deadline(now)]);
        let others = [
            self.ends_at().map(|(at, _)| at),
            self.strays.deadline(),
            self.clearing.as_ref().map(|clearing| clearing.deadline()),
            self.listener.deadline(),
            self.inquiries.deadline(),
        ];
        let askers = self.askers.values().map(Asker::deadline);
        let all = connections.chain(askers);
        let all = all.chain(runs.chain(others).flatten());
        // A day, when nothing is due: the clock cannot hold more for ever.
        all.min()
            .unwrap_or(now + std::time::Duration::from_secs(86_400))
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Instant) {
        let silent: Vec<ConnectionId> = self
            .connections
            .iter_mut()
            .filter_map(|(id, connection)| (!connection.expire(now)).then_some(*id))
            .collect();
        for id in silent {
            self.end_connection(id, Detachment::Silent, now);
        }
        self.askers.retain(|_, asker| now < asker.deadline());
        let due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        let mut late: Vec<RunId> = Vec::new();
        let mut pressing: Vec<RunId> = Vec::new();
        for (id, run) in &self.runs {
            if due(run.deadline()) {
                late.push(*id);
            }
            if due(run.pressing()) {
                pressing.push(*id);
            }
        }
        for id in late {
            self.end(id, Status::TimedOut, now);
        }
        for id in pressing {
            self.press(id, now);
        }
        if let Some((at, why)) = self.ends_at()
            && now >= at
        {
            self.leave(why, now);
        }
    }

    /// When this process ends at the latest, once that is announced: hosts get
    /// less time than those who asked for it, whose answer would end with us.
    fn leaves_at(&self, leaving: &Leaving, now: Instant) -> Instant {
        let hosts = leaving.since + PARTING;
        match self.connections.is_empty() || now >= hosts {
            true => leaving.since + asker::PATIENCE,
            false => hosts,
        }
    }

    /// Whether nobody is left for whom this process goes on.
    pub(super) fn is_over(&self, leaving: &Leaving, now: Instant) -> bool {
        let hosts = self.connections.is_empty() || now >= leaving.since + PARTING;
        let askers = self.askers.is_empty() || now >= leaving.since + asker::PATIENCE;
        hosts && askers
    }

    /// When this process ends by itself, and why. A limit that the clock
    /// cannot hold is none.
    fn ends_at(&self) -> Option<(Instant, End)> {
        let idle = self.host_heard.checked_add(self.idle_limit);
        let age = self.started.checked_add(self.maximum_age);
        let idle = idle.map(|at| (at, End::IdleLimit));
        let age = age.map(|at| (at, End::MaximumAge));
        idle.into_iter().chain(age).min_by_key(|(at, _)| *at)
    }
}

impl Run {
    /// When to press on with a command that does not end.
    fn pressing(&self) -> Option<Instant> {
        let live = self.live()?;
        let ending = live.ending.as_ref()?;
        if !ending.taken_over && live.supervisor.is_some() {
            return Some(ending.since + Ending::PATIENCE);
        }
        (!self.concluded).then(|| ending.since + KILL_BOUND)
    }
}
