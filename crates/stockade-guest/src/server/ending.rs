//! How commands end, and how their hosts are told.

use std::time::Instant;

use stockade_wire::inquiry::{Detachment, Happening};
use stockade_wire::message::{Exit, NotStarted, NotStartedWhy, Started, Status};
use stockade_wire::{Kind, message};

use super::connection::Connection;
use super::output::Taken;
use super::run::{Ending, Live, Run, State};
use super::{ConnectionId, RunId, Server, millis};
use crate::supervisor::{Order, Report, Tally};
use crate::sys::{self, Ended, Reaped};

/// Children that are reaped before others get their turn.
const AT_A_TIME: u32 = 512;

impl Server {
    /// Ends a command with its whole tree.
    pub(super) fn end(&mut self, id: RunId, why: Status, now: Instant) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let Some(live) = run.live_mut() else {
            self.end_waiting(id, why, now);
            return;
        };
        if live.ending.is_some() {
            return;
        }
        live.ending = Some(Ending {
            since: now,
            // Once the program is gone by itself, that is its outcome.
            why: live.program.is_none().then_some(why),
            taken_over: false,
        });
        if let Some(control) = run.control() {
            Order::End.send(control);
        }
    }

    /// Takes a command out of the queue that cannot be held there.
    pub(super) fn refuse_waiting(&mut self, id: RunId, why: NotStartedWhy, now: Instant) {
        self.end_waiting(id, Status::NotStarted(NotStarted { why, errno: 0 }), now);
    }

    /// The host of these commands is gone: what it did not start as
    /// background is ended, the rest goes on without anybody to tell.
    pub(super) fn abandon_runs(&mut self, connection: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.get_mut(&connection) else {
            return;
        };
        for id in std::mem::take(&mut connection.runs).into_values() {
            let Some(run) = self.runs.get_mut(&id) else {
                continue;
            };
            run.owner = None;
            if run.settings.background {
                // What the host still sent is not lost.
                run.stdin.end();
                run.output.discard();
            } else {
                run.stdin.close();
                run.output.close();
                self.end(id, Status::Cancelled, now);
            }
        }
    }

    pub(super) fn end_connection(&mut self, id: ConnectionId, why: Detachment, now: Instant) {
        self.detach(id, why, now);
        self.abandon_runs(id, now);
        self.connections.remove(&id);
    }

    /// Takes note that a host is gone, the first time that it is.
    pub(super) fn detach(&mut self, id: ConnectionId, why: Detachment, now: Instant) {
        let connection = self.connections.get_mut(&id);
        if connection.is_some_and(Connection::detach) {
            let channel = id.0;
            self.journal.note(Happening::Detached { channel, why }, now);
        }
    }

    /// Takes in what a supervisor reports.
    pub(super) fn take_reports(&mut self, id: RunId, now: Instant) {
        while let Some(control) = self.runs.get(&id).and_then(Run::control) {
            match Report::receive(control) {
                Ok(Some(report)) => self.take_report(id, report, now),
                Ok(None) => return,
                Err(_) => {
                    // Its death is noticed in a moment.
                    let live = self.runs.get_mut(&id).and_then(Run::live_mut);
                    if let Some(supervisor) = live.and_then(|live| live.supervisor.as_mut()) {
                        supervisor.control = None;
                    }
                }
            }
        }
    }

    /// Takes note of children that are gone.
    pub(super) fn reap(&mut self, now: Instant) {
        for _ in 0..AT_A_TIME {
            match sys::reap() {
                Ok(Reaped::Ended(ended)) => self.take_death(&ended, now),
                Ok(Reaped::Stopped(pid)) => {
                    // Only guest code stops a supervisor, on purpose or by a
                    // `kill(-1, SIGSTOP)`. It must go on to be of use.
                    let stopped = |live: &Live| {
                        let supervisor = live.supervisor.as_ref();
                        supervisor.is_some_and(|supervisor| supervisor.pid == pid)
                    };
                    if self.runs.values().filter_map(Run::live).any(stopped) {
                        let _ = sys::signal(pid, libc::SIGCONT);
                    }
                }
                Ok(Reaped::Childless) => return self.note_childless(now),
                Ok(Reaped::Nothing) | Err(_) => return,
            }
        }
        self.reap_again = true;
    }

    /// Settles a command's outcome and tells it. `left` are the processes of
    /// its tree that may be alive.
    pub(super) fn conclude(&mut self, id: RunId, left: u32, now: Instant) {
        let kills = self.cgroup.kills();
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let State::Live(live) = &run.state else {
            return;
        };
        if run.concluded {
            return;
        }
        run.concluded = true;
        run.stdin.close();
        let mut exit = outcome(live, left, now);
        exit.out_of_memory = live.out_of_memory(kills);
        let took_the_kill = exit.out_of_memory && run.is_files();
        let by_itself = matches!(exit.status, Status::Exited(_) | Status::Signaled(_));
        if run.output.finish() == Taken::OverLimit && by_itself {
            exit.status = Status::OutputLimit;
        }
        if matches!(exit.status, Status::NotStarted(_)) {
            run.output.close();
        }
        let what = Happening::Ended {
            run: id.0,
            program: run.name().into(),
            status: Some(exit.status.clone()),
            wall_ms: exit.wall_ms,
            cpu_ms: exit.cpu_user_us.saturating_add(exit.cpu_system_us) / 1000,
            peak_memory: exit.peak_memory,
            out_of_memory: exit.out_of_memory,
            left_running: exit.left_running,
        };
        self.journal.note(what, now);
        // Every exit fits in a frame.
        if let Ok(payload) = message::to_payload(Kind::Exit, &exit) {
            self.tell(id, Kind::Exit, &payload);
        }
        if took_the_kill {
            self.note_company(id);
        }
    }

    /// Concludes every command whose supervisor was lost: nothing that could
    /// be of its tree is alive.
    pub(super) fn conclude_lost(&mut self, left: u32, now: Instant) {
        let lost: Vec<RunId> = self
            .runs
            .iter()
            .filter(|(_, run)| !run.concluded)
            .filter(|(_, run)| run.live().is_some_and(|live| live.supervisor.is_none()))
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.conclude(id, left, now);
        }
    }

    fn end_waiting(&mut self, id: RunId, why: Status, now: Instant) {
        self.queue.retain(|waiting| *waiting != id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let mut live = Live::new(now);
        match why {
            Status::NotStarted(not_started) => live.not_started = Some(not_started),
            why => {
                live.ending = Some(Ending {
                    since: now,
                    why: Some(why),
                    taken_over: false,
                });
            }
        }
        run.state = State::Live(live);
        run.output.close();
        self.conclude(id, 0, now);
    }

    fn take_report(&mut self, id: RunId, report: Report, now: Instant) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let background = run.settings.background;
        let Some(live) = run.live_mut() else {
            return;
        };
        match report {
            Report::Running { pid } => {
                live.running = true;
                live.pid = u32::try_from(pid).unwrap_or(0);
                self.announce(id, now);
            }
            Report::NotStarted(not_started) => {
                live.not_started = Some(not_started);
                live.finished = Some(0);
                self.conclude(id, 0, now);
            }
            Report::Ended {
                status,
                tally,
                left,
            } => {
                live.program = Some(status);
                live.tally = tally;
                if background {
                    self.conclude(id, left, now);
                } else {
                    live.ending.get_or_insert(Ending::of_its_own(now));
                }
            }
            Report::Finished { tally, left } => {
                live.finished = Some(left);
                live.tally = tally;
                if left > 0 {
                    self.strays.look(now);
                }
                self.conclude(id, left, now);
            }
        }
    }

    /// Tells the host that its program runs, and the program what the host
    /// already wanted to tell it.
    fn announce(&mut self, id: RunId, now: Instant) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let Some(live) = run.live() else {
            return;
        };
        let started = Started {
            pid: live.pid,
            waited_ms: millis(live.started.duration_since(run.asked)),
        };
        let what = Happening::Started {
            run: id.0,
            program: run.name().into(),
            background: run.settings.background,
        };
        self.journal.note(what, now);
        let signals = std::mem::take(&mut run.early_signals);
        if let Some(control) = run.control() {
            for signal in signals {
                Order::Signal(signal).send(control);
            }
        }
        if let Ok(payload) = message::to_payload(Kind::Started, &started) {
            self.tell(id, Kind::Started, &payload);
        }
    }

    fn take_death(&mut self, ended: &Ended, now: Instant) {
        let is_its_supervisor = |run: &Run| {
            let supervisor = run.live().and_then(|live| live.supervisor.as_ref());
            supervisor.is_some_and(|supervisor| supervisor.pid == ended.pid)
        };
        let found = self.runs.iter().find(|(_, run)| is_its_supervisor(run));
        let Some(id) = found.map(|(id, _)| *id) else {
            // An orphan. Where one came from there may be more.
            self.strays.look(now);
            return;
        };
        // What it said before it died comes first.
        self.take_reports(id, now);
        let Some(live) = self.runs.get_mut(&id).and_then(Run::live_mut) else {
            return;
        };
        live.supervisor = None;
        if live.finished.is_some() {
            return;
        }
        // Killed, by us or by guest code, with its command's processes still
        // about: they are PID 1's children now.
        let ending = live.ending.get_or_insert(Ending::of_its_own(now));
        let by_guest = libc::WIFSIGNALED(ended.status) && !ending.taken_over;
        live.tally = Tally {
            user_us: micros(ended.user),
            system_us: micros(ended.system),
            peak_memory: live.tally.peak_memory.max(ended.peak_memory),
            killed: live.tally.killed || by_guest,
        };
        self.strays.look(now);
    }
}

impl Ending {
    /// The program ended by itself, and the rest of its tree follows.
    fn of_its_own(now: Instant) -> Self {
        Self {
            since: now,
            why: None,
            taken_over: false,
        }
    }
}

fn outcome(live: &Live, left: u32, now: Instant) -> Exit {
    Exit {
        status: live.status(),
        tree_ended: left == 0,
        left_running: left,
        out_of_memory: false,
        wall_ms: millis(now.duration_since(live.started)),
        cpu_user_us: live.tally.user_us,
        cpu_system_us: live.tally.system_us,
        peak_memory: live.tally.peak_memory,
    }
}

fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
