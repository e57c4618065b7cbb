//! PID 1: serves relays, runs commands, reaps, and ends everything in time.
//!
//! One loop over one epoll descriptor, no threads (a process with threads
//! cannot fork safely), and no state that guest code can reach. Every part of
//! it follows three rules:
//!
//! - **Nothing blocks.** Each descriptor is read or written once per turn, as
//!   much as it takes, so that none starves another.
//! - **What to wait for is computed from the state** before each wait
//!   ([`Server::watch`]), and never kept in step by hand.
//! - **Everything that is held for somebody is bounded**, because it counts
//!   against the sandbox's own memory: per connection 320 KiB on the way out
//!   and 256 KiB on the way in, for at most 16 connections; 256 KiB of
//!   standard input for each of at most 64 running commands; 8 MiB of requests
//!   and standard input for all waiting commands together; 512 KiB for each of
//!   at most 4 who ask. That is 35 MiB at the very most, and under 1 MiB while
//!   nobody is slow.
//!
//! A failed system call never ends this process: what it was for is refused,
//! or tried again after a pause.

mod activity;
mod asker;
mod clearing;
mod connection;
mod deadlines;
mod ending;
mod frames;
mod hello;
mod inquiries;
mod journal;
mod listener;
mod name;
mod outbound;
mod output;
mod run;
mod starting;
mod stdin;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use stockade_wire::Kind;
use stockade_wire::ends::End;
use stockade_wire::inquiry::Detachment;
use stockade_wire::message::Goodbye;

use crate::args::Init;
use crate::cgroup::Cgroup;
use crate::clock;
use crate::limits::OpenFiles;
use crate::poller::{Event, Interest, Poller, Source};
use crate::sandbox::Sandbox;
use crate::sys;

use activity::Spaces;
use asker::{ASKERS, Asker};
use clearing::{Clearing, Strays};
use connection::{Connection, Received};
use hello::Greeting;
use journal::Journal;
use listener::Listener;
use output::Taken;
use run::{Owner, Run};
use starting::Capacity;

pub(crate) use hello::is_shielded;
pub(crate) use listener::Door;

/// How many hosts may be attached at a time.
const CONNECTIONS: usize = 16;

/// How much is read of a host at a time, in bytes.
const CHUNK: usize = 64 * 1024;

/// How long a host may take to answer the hello.
const GREETING: Duration = Duration::from_secs(10);

/// How long a relay gets to carry a goodbye away.
const PARTING: Duration = Duration::from_millis(500);

/// How soon to try again when the kernel had no memory to watch a descriptor.
const WATCH_AGAIN: Duration = Duration::from_millis(50);

/// A connection's name among ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionId(u64);

/// A run's name among ours. Hosts have their own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RunId(u64);

/// The name of somebody who asks, among ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AskerId(u64);

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Signals,
    Listener,
    Connection(ConnectionId),
    Control(RunId),
    Stdin(RunId),
    Stdout(RunId),
    Stderr(RunId),
    Inquiries,
    Asker(AskerId),
}

/// The end of this process, once it is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leaving {
    since: Instant,
    why: End,
}

struct Server {
    sandbox: Sandbox,
    poller: Poller,
    signals: Source,
    listener: Listener,
    greeting: Greeting,
    cgroup: Cgroup,
    spaces: Spaces,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Where those come in who only ask.
    inquiries: Listener,
    askers: BTreeMap<AskerId, Asker>,
    runs: BTreeMap<RunId, Run>,
    /// Runs that wait for a place, the next one first.
    queue: VecDeque<RunId>,
    capacity: Capacity,
    last_id: u64,
    strays: Strays,
    clearing: Option<Clearing>,
    kill_generation: u64,
    journal: Journal,
    /// Where bytes of hosts are read to.
    space: Vec<u8>,
    /// A death was noticed, and there may be more.
    reap_again: bool,
    host_heard: Instant,
    /// When a host was attached or a command alive for the last time; never
    /// earlier than that.
    last_used: Instant,
    started: Instant,
    idle_limit: Duration,
    maximum_age: Duration,
    leaving: Option<Leaving>,
}

/// Serves until it is time to end, and answers why it is.
///
/// # Errors
///
/// A sentence on why it could not even begin.
pub(crate) fn serve(init: Init, shielded: bool) -> Result<End, String> {
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return Err("`guest init` must be the first process of its own pid namespace".into());
    }
    Ok(Server::open(init, shielded)?.run())
}

/// As the wire has durations.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Server {
    fn open(init: Init, shielded: bool) -> Result<Self, String> {
        let cannot = |what: &'static str| {
            move |error: std::io::Error| format!("cannot {what} at the start: {error}")
        };
        let started = clock::now();
        let spaces = Spaces::open(&init.work);
        let sandbox = Sandbox::open(init.work).map_err(cannot("read /dev and /proc"))?;
        let (greeting, cgroup) = Greeting::read(&init.runtime_dir, shielded, started)?;
        sandbox.limits.restore(OpenFiles::Runtime);
        let poller = Poller::new().map_err(cannot("wait for events"))?;
        let signals = [libc::SIGCHLD, libc::SIGTERM, libc::SIGUSR1];
        let signals = sys::take_signals(&signals).map_err(cannot("take signals"))?;
        sys::handle_no_signals();
        let signals = poller.source(signals, Token::Signals.to_bits());
        let listen = |door, token: Token| Listener::open(door, &poller, token.to_bits());
        let listener = listen(Door::Hosts, Token::Listener).map_err(cannot("listen"))?;
        let inquiries = listen(Door::Inquiries, Token::Inquiries).map_err(cannot("listen"))?;
        Ok(Self {
            capacity: Capacity::of(&cgroup),
            sandbox,
            signals,
            listener,
            poller,
            greeting,
            cgroup,
            spaces,
            connections: BTreeMap::new(),
            inquiries,
            askers: BTreeMap::new(),
            runs: BTreeMap::new(),
            queue: VecDeque::new(),
            last_id: 0,
            strays: Strays::default(),
            clearing: None,
            kill_generation: 0,
            journal: Journal::new(started),
            space: vec![0; CHUNK],
            reap_again: false,
            host_heard: started,
            last_used: started,
            started,
            idle_limit: init.idle_limit,
            maximum_age: init.maximum_age,
            leaving: None,
        })
    }

    fn run(&mut self) -> End {
        let mut events = Vec::new();
        loop {
            let now = clock::now();
            let all_watched = self.watch(now);
            let mut patience = self.deadline(now).saturating_duration_since(now);
            if !all_watched {
                patience = patience.min(WATCH_AGAIN);
            }
            // An error here is the kernel's want of memory, and passes.
            let _ = self.poller.wait(patience, &mut events);
            let now = clock::now();
            self.note_use(now);
            for event in &events {
                self.handle(*event, now);
            }
            self.expire(now);
            self.advance(now);
            if let Some(leaving) = self.leaving
                && self.is_over(&leaving, now)
            {
                return leaving.why;
            }
        }
    }

    /// Sets what to be woken for, from the state as it is. False when the
    /// kernel refused some of it.
    fn watch(&mut self, now: Instant) -> bool {
        let mut all = self.signals.set_interest(Some(Interest::Read)).is_ok();
        let closed =
            self.leaving.is_some() || self.clearing.as_ref().is_some_and(Clearing::spares_nobody);
        all &= self.listener.watch(closed, now).is_ok();
        let full = self.askers.len() >= ASKERS;
        all &= self.inquiries.watch(closed || full, now).is_ok();
        for asker in self.askers.values_mut() {
            all &= asker.watch().is_ok();
        }
        for connection in self.connections.values_mut() {
            all &= connection.watch().is_ok();
        }
        for run in self.runs.values_mut() {
            let connection = run
                .owner
                .and_then(|owner| self.connections.get(&owner.connection));
            let room = connection.is_none_or(|connection| connection.out.room() > 0);
            if run.is_announced() {
                all &= run.output.watch(room, now).is_ok();
            }
            all &= run.stdin.watch().is_ok();
            if let Some(control) = run.control_mut() {
                all &= control.set_interest(Some(Interest::Read)).is_ok();
            }
        }
        all
    }

    fn handle(&mut self, event: Event, now: Instant) {
        match Token::from_bits(event.token) {
            Some(Token::Signals) => self.take_signals(now),
            Some(Token::Listener) => self.accept(now),
            Some(Token::Inquiries) => self.accept_askers(now),
            Some(Token::Connection(id)) => self.hear(id, event, now),
            Some(Token::Asker(id)) => self.hear_asker(id, event, now),
            Some(Token::Control(id)) => self.take_reports(id, now),
            Some(Token::Stdin(id)) => self.feed(id, event),
            Some(Token::Stdout(id)) => self.take_output(id, Kind::Stdout, now),
            Some(Token::Stderr(id)) => self.take_output(id, Kind::Stderr, now),
            None => {}
        }
    }

    /// What needs no event to go on.
    fn advance(&mut self, now: Instant) {
        if std::mem::take(&mut self.reap_again) {
            self.reap(now);
        }
        self.clear(now);
        self.sweep(now);
        self.start_waiting(now);
        self.deliver(now);
    }

    fn take_signals(&mut self, now: Instant) {
        while let Some(received) = sys::next_signal(self.signals.as_fd()) {
            match received.signal {
                libc::SIGCHLD => self.reap_again = true,
                libc::SIGUSR1 if received.from_outside => self.begin_clearing(None, now),
                libc::SIGTERM if received.from_outside => self.leave(End::Stopped, now),
                // Guest code's own, or nothing that we asked for.
                _ => {}
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        if self.leaving.is_some() {
            return;
        }
        let room = CONNECTIONS.saturating_sub(self.connections.len());
        let relays = self.listener.accept(&self.sandbox.processes, room, now);
        for relay in relays {
            let id = ConnectionId(self.next_id());
            let source = self.poller.source(relay, Token::Connection(id).to_bits());
            let mut connection = Connection::new(source, now);
            let live_runs = u32::try_from(self.commands()).unwrap_or(u32::MAX);
            let hello = self.greeting.hello(self.kill_generation, live_runs, now);
            connection.send_json(Kind::Hello, 0, hello);
            self.connections.insert(id, connection);
        }
    }

    fn hear(&mut self, id: ConnectionId, event: Event, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !event.readable && !event.hangup {
            return;
        }
        match connection.receive(&mut self.space, now) {
            Received::Nothing => {}
            Received::End => self.end_connection(id, Detachment::Closed, now),
            Received::Something => {
                if self.take_frames(id, now).is_err()
                    && let Some(connection) = self.connections.get_mut(&id)
                {
                    connection.part(Goodbye::Protocol, now);
                    self.detach(id, Detachment::Protocol, now);
                    self.abandon_runs(id, now);
                }
            }
        }
    }

    fn feed(&mut self, id: RunId, event: Event) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if event.writable {
            let written = run.stdin.write();
            frames::tell_of_input(&mut self.connections, run.owner, &written);
        } else if event.hangup && run.stdin.hang_up() {
            self.tell(id, Kind::StdinClosed, &[]);
        }
    }

    fn take_output(&mut self, id: RunId, kind: Kind, now: Instant) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let to = run.owner.and_then(|owner| {
            let connection = self.connections.get_mut(&owner.connection)?;
            Some((&mut connection.out, owner.number))
        });
        if run.output.take(kind, to, now) == Taken::OverLimit {
            self.end(id, stockade_wire::message::Status::OutputLimit, now);
        }
    }

    /// Sends what is left of finished commands, their ends, and whatever else
    /// waits to be sent.
    fn deliver(&mut self, now: Instant) {
        let finished: Vec<RunId> = self
            .runs
            .iter()
            .filter(|(_, run)| run.concluded)
            .map(|(id, _)| *id)
            .collect();
        for id in finished {
            self.deliver_rest(id, now);
        }
        let gone: Vec<ConnectionId> = self
            .connections
            .iter_mut()
            .filter_map(|(id, connection)| (!connection.flush(now)).then_some(*id))
            .collect();
        for id in gone {
            self.end_connection(id, Detachment::Closed, now);
        }
        self.askers.retain(|_, asker| asker.flush());
    }

    fn deliver_rest(&mut self, id: RunId, now: Instant) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if let Some(owner) = run.owner
            && let Some(connection) = self.connections.get_mut(&owner.connection)
            && !connection.is_parting()
        {
            loop {
                let before = connection.out.len();
                run.output.take_rest(&mut connection.out, owner.number, now);
                if connection.out.len() == before || !connection.flush(now) {
                    break;
                }
            }
            if run.output.is_sent() {
                connection.out.frame(Kind::OutputEnd, owner.number, &[]);
                connection.runs.remove(&owner.number);
                run.owner = None;
                // What stays behind in the background must not wait for a reader.
                run.output.discard();
            }
        }
        if run.owner.is_none() && !run.has_processes() {
            self.runs.remove(&id);
        }
    }

    /// Announces the end of this process. The kernel ends everything else
    /// with it.
    fn leave(&mut self, why: End, now: Instant) {
        if self.leaving.is_some() {
            return;
        }
        self.leaving = Some(Leaving { since: now, why });
        clearing::kill_all_but_relays(&self.sandbox.processes);
        let goodbye = match why {
            End::IdleLimit => Goodbye::Idle,
            End::MaximumAge => Goodbye::MaximumAge,
            // A retired one has no host to say it to.
            _ => Goodbye::Stopped,
        };
        for connection in self.connections.values_mut() {
            connection.part(goodbye, now);
        }
    }

    /// Sends a frame to whoever asked for a run.
    fn tell(&mut self, id: RunId, kind: Kind, payload: &[u8]) {
        let owner = self.runs.get(&id).and_then(|run| run.owner);
        if let Some(Owner { connection, number }) = owner
            && let Some(connection) = self.connections.get_mut(&connection)
            && !connection.is_parting()
        {
            connection.out.frame(kind, number, payload);
        }
    }

    /// Commands that wait or live, over all connections.
    fn commands(&self) -> usize {
        let live = self.runs.values().filter(|run| run.is_alive());
        self.queue.len() + live.count()
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

impl Token {
    const TAG_BITS: u32 = 4;

    fn to_bits(self) -> u64 {
        let (id, tag) = match self {
            Self::Signals => (0, 0),
            Self::Listener => (0, 1),
            Self::Connection(id) => (id.0, 2),
            Self::Control(id) => (id.0, 3),
            Self::Stdin(id) => (id.0, 4),
            Self::Stdout(id) => (id.0, 5),
            Self::Stderr(id) => (id.0, 6),
            Self::Inquiries => (0, 7),
            Self::Asker(id) => (id.0, 8),
        };
        (id << Self::TAG_BITS) | tag
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let id = bits >> Self::TAG_BITS;
        Some(match bits & ((1 << Self::TAG_BITS) - 1) {
            0 => Self::Signals,
            1 => Self::Listener,
            2 => Self::Connection(ConnectionId(id)),
            3 => Self::Control(RunId(id)),
            4 => Self::Stdin(RunId(id)),
            5 => Self::Stdout(RunId(id)),
            6 => Self::Stderr(RunId(id)),
            7 => Self::Inquiries,
            8 => Self::Asker(AskerId(id)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_bits() {
        for token in [
            Token::Signals,
            Token::Listener,
            Token::Connection(ConnectionId(1)),
            Token::Control(RunId(2)),
            Token::Stdin(RunId(3)),
            Token::Stdout(RunId(u64::MAX >> 4)),
            Token::Stderr(RunId(5)),
            Token::Inquiries,
            Token::Asker(AskerId(6)),
        ] {
            assert_eq!(Token::from_bits(token.to_bits()), Some(token));
        }
        assert_eq!(Token::from_bits(9), None);
    }
}
