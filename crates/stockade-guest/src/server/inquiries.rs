//! What is asked from outside, and how PID 1 is told to retire.
//!
//! Those who ask have a door of their own beside that of the hosts, so that
//! they are never taken for hosts, need none of their places, and one who
//! looks never keeps another's question from being answered with yes.

use std::time::{Duration, Instant};

use stockade_wire::ends::End;
use stockade_wire::inquiry::{Busy, Inquiry, Retired};

use super::asker::{ASKERS, Asker, Heard};
use super::connection::Connection;
use super::run::Run;
use super::{AskerId, Server, Token, millis};
use crate::poller::Event;

impl Server {
    pub(super) fn accept_askers(&mut self, now: Instant) {
        if self.leaving.is_some() {
            return;
        }
        let room = ASKERS.saturating_sub(self.askers.len());
        let let_in = self.inquiries.accept(&self.sandbox.processes, room, now);
        for socket in let_in {
            let id = AskerId(self.next_id());
            let source = self.poller.source(socket, Token::Asker(id).to_bits());
            self.askers.insert(id, Asker::new(source, now));
        }
    }

    pub(super) fn hear_asker(&mut self, id: AskerId, event: Event, now: Instant) {
        let Some(asker) = self.askers.get_mut(&id) else {
            return;
        };
        if !event.readable && !event.hangup {
            return;
        }
        let answer = match asker.hear(&mut self.space) {
            Heard::Nothing => return,
            Heard::Asked(Inquiry::Status { journal }) => {
                serde_json::to_vec(&self.activity(journal, now)).ok()
            }
            Heard::Asked(Inquiry::Retire { idle_for_ms }) => {
                let idle_for = Duration::from_millis(idle_for_ms);
                serde_json::to_vec(&self.retire(idle_for, now)).ok()
            }
            Heard::Asked(_) | Heard::End => None,
        };
        match (answer, self.askers.get_mut(&id)) {
            (Some(answer), Some(asker)) => asker.answer(&answer, now),
            _ => drop(self.askers.remove(&id)),
        }
    }

    /// Begins to end, if nobody uses the sandbox, or says why not.
    fn retire(&mut self, idle_for: Duration, now: Instant) -> Retired {
        // Whoever has come before this moment has come in time.
        self.accept(now);
        let busy = self.busy(now);
        let used = busy.channels > 0 || busy.runs > 0;
        let long_enough = now.duration_since(self.last_used) >= idle_for;
        if self.leaving.is_none() && (used || !long_enough) {
            return Retired {
                retired: false,
                busy: Some(busy),
            };
        }
        self.leave(End::Retired, now);
        Retired {
            retired: true,
            busy: None,
        }
    }

    /// Who uses the sandbox.
    pub(super) fn busy(&self, now: Instant) -> Busy {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let channels = self.connections.values();
        let channels = count(channels.filter(|channel| !channel.is_parting()).count());
        let runs = count(self.runs.values().filter(|run| run.is_of_use()).count());
        let idle = match (channels, runs) {
            (0, 0) => now.duration_since(self.last_used),
            _ => Duration::ZERO,
        };
        Busy {
            channels,
            runs,
            idle_ms: millis(idle),
        }
    }

    /// Takes note that what was in use at the end of the last turn was so
    /// until now.
    pub(super) fn note_use(&mut self, now: Instant) {
        let attached = |connection: &Connection| !connection.is_parting();
        if self.connections.values().any(attached) || self.runs.values().any(Run::is_of_use) {
            self.last_used = now;
        }
    }
}

impl Run {
    /// Whether somebody may want it: it waits or is alive, and is not just
    /// being ended without anybody to tell. What its program left in the
    /// background is nobody's.
    fn is_of_use(&self) -> bool {
        let ending = self.live().is_some_and(|live| live.ending.is_some());
        !self.concluded && (self.owner.is_some() || !ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::server::ConnectionId;
    use crate::server::run::{Ending, Live, Owner, State};

    #[test]
    fn a_command_is_of_use_until_it_is_settled_or_ended_for_nobody() {
        let now = clock::now();
        let owner = Owner {
            connection: ConnectionId(1),
            number: 1,
        };
        let request = br#"{"program":"files","stdin":true,"tty":null,"timeout_ms":null,"output_limit":null,"background":false}"#;
        let settings = serde_json::from_slice(request).unwrap();
        let mut run = Run::new(owner, settings, Vec::new(), now);
        assert!(run.is_of_use(), "it waits");
        run.state = State::Live(Live::new(now));
        assert!(run.is_of_use(), "it is alive");
        run.owner = None;
        assert!(run.is_of_use(), "it is alive in the background");
        let ending = Ending {
            since: now,
            why: None,
            taken_over: false,
        };
        run.live_mut().unwrap().ending = Some(ending);
        assert!(!run.is_of_use(), "nobody is told of its end");
        run.owner = Some(owner);
        assert!(run.is_of_use(), "somebody is told of its end");
        run.concluded = true;
        assert!(!run.is_of_use(), "its end was told");
    }
}
