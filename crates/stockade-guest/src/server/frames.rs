//! What a host asks for, frame by frame.

use std::collections::BTreeMap;
use std::time::Instant;

use stockade_wire::frame::{EndReason, Grant, StreamName};
use stockade_wire::inquiry::Happening;
use stockade_wire::limits::WAITING;
use stockade_wire::message::{Exit, NotStarted, NotStartedWhy, Status, TtySize, Welcome};
use stockade_wire::{Frame, Kind, PROTOCOL, message};

use super::connection::Connection;
use super::run::{Owner, Run, State};
use super::stdin::Written;
use super::{ConnectionId, RunId, Server};
use crate::sandbox;
use crate::supervisor::Order;

/// Bytes of requests and standard input that are held for commands that do
/// not run yet, over all connections.
const HELD: usize = 8 * 1024 * 1024;

/// Longest payload of a ping that is answered, in bytes.
const PING: usize = 16;

/// The host does not keep to the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation;

impl Server {
    /// Takes in every whole frame that a connection holds.
    pub(super) fn take_frames(&mut self, id: ConnectionId, now: Instant) -> Result<(), Violation> {
        while let Some(connection) = self.connections.get_mut(&id) {
            let Some(frame) = connection.next_frame().map_err(|_| Violation)? else {
                break;
            };
            self.take_frame(id, &frame, now)?;
        }
        if self.connections.get(&id).is_some_and(Connection::is_open) {
            self.host_heard = now;
        }
        Ok(())
    }

    fn take_frame(
        &mut self,
        id: ConnectionId,
        frame: &Frame,
        now: Instant,
    ) -> Result<(), Violation> {
        let connection = self.connections.get_mut(&id).ok_or(Violation)?;
        match frame.kind {
            Kind::Ping if frame.payload.len() <= PING => {
                connection.out.frame(Kind::Pong, 0, &frame.payload);
                Ok(())
            }
            Kind::Pong => Ok(()),
            Kind::Welcome => {
                welcome(connection, frame)?;
                let channel = id.0;
                self.journal.note(Happening::Attached { channel }, now);
                Ok(())
            }
            _ if !connection.is_open() => Err(Violation),
            Kind::KillAll => {
                self.begin_clearing(Some(id), now);
                Ok(())
            }
            Kind::StartMore => self.take_part(id, frame),
            Kind::Start => {
                self.take_part(id, frame)?;
                self.enqueue(id, frame.run, now)
            }
            _ => match connection.runs.get(&frame.run).copied() {
                Some(run) => self.take_frame_of_run(run, frame, now),
                // It ended while the frame was under way.
                None => check(frame),
            },
        }
    }

    fn take_frame_of_run(
        &mut self,
        id: RunId,
        frame: &Frame,
        now: Instant,
    ) -> Result<(), Violation> {
        check(frame)?;
        let Some(run) = self.runs.get_mut(&id) else {
            return Ok(());
        };
        match frame.kind {
            Kind::Stdin => return self.take_stdin(id, &frame.payload, now),
            Kind::StdinEnd => {
                let written = run.stdin.end();
                tell_of_input(&mut self.connections, run.owner, &written);
            }
            Kind::Credit => {
                let grant = Grant::from_payload(&frame.payload).map_err(|_| Violation)?;
                let stream = match grant.stream {
                    StreamName::Stdout => Kind::Stdout,
                    StreamName::Stderr => Kind::Stderr,
                    StreamName::Stdin => return Err(Violation),
                };
                let refilled = run.output.refill(stream, grant.bytes);
                refilled.map_err(|_| Violation)?;
            }
            Kind::Signal => run.signal(frame.payload.first().copied().unwrap_or(0)),
            Kind::End => {
                let why = match EndReason::from_payload(&frame.payload) {
                    Ok(EndReason::OutputLimit) => Status::OutputLimit,
                    Ok(EndReason::TimedOut) => Status::TimedOut,
                    Ok(_) => Status::Cancelled,
                    Err(_) => return Err(Violation),
                };
                self.end(id, why, now);
            }
            Kind::Resize => run.resize(size(&frame.payload).ok_or(Violation)?),
            Kind::Detach => run.detach(),
            _ => return Err(Violation),
        }
        Ok(())
    }

    fn take_stdin(&mut self, id: RunId, bytes: &[u8], now: Instant) -> Result<(), Violation> {
        let held = self.held();
        let Some(run) = self.runs.get_mut(&id) else {
            return Ok(());
        };
        let waits = matches!(run.state, State::Waiting(_));
        if waits && run.settings.stdin && held + bytes.len() > HELD {
            self.refuse_waiting(id, NotStartedWhy::Busy, now);
            return Ok(());
        }
        let written = run.stdin.receive(bytes).map_err(|_| Violation)?;
        tell_of_input(&mut self.connections, run.owner, &written);
        Ok(())
    }

    fn take_part(&mut self, id: ConnectionId, frame: &Frame) -> Result<(), Violation> {
        let may_grow = self.held() + frame.payload.len() <= HELD;
        let connection = self.connections.get_mut(&id).ok_or(Violation)?;
        let taken = frame.run == 0 || connection.runs.contains_key(&frame.run);
        if taken || connection.incomplete() > WAITING {
            return Err(Violation);
        }
        connection.add_part(frame.run, &frame.payload, may_grow);
        Ok(())
    }

    /// Puts a command whose request is complete at the end of the queue.
    fn enqueue(&mut self, id: ConnectionId, number: u32, now: Instant) -> Result<(), Violation> {
        let busy = self.queue.len() >= WAITING;
        let connection = self.connections.get_mut(&id).ok_or(Violation)?;
        let request = connection.take_request(number);
        let accepted = request.and_then(|request| {
            if busy {
                return Err(NotStartedWhy::Busy);
            }
            let settings = serde_json::from_slice(&request);
            Ok((settings.map_err(|_| NotStartedWhy::Invalid)?, request))
        });
        let (settings, request) = match accepted {
            Ok(accepted) => accepted,
            Err(why) => {
                refuse(connection, number, why);
                return Ok(());
            }
        };
        let owner = Owner {
            connection: id,
            number,
        };
        let run = RunId(self.next_id());
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.runs.insert(number, run);
        }
        self.runs
            .insert(run, Run::new(owner, settings, request, now));
        self.queue.push_back(run);
        Ok(())
    }

    /// Bytes held for commands that do not run yet.
    fn held(&self) -> usize {
        let requests = self.connections.values().map(Connection::held);
        let waiting = self.queue.iter().filter_map(|id| self.runs.get(id));
        requests.sum::<usize>() + waiting.map(Run::held_in_queue).sum::<usize>()
    }
}

impl Run {
    /// Sends a signal to the program's group, once there is one. A number
    /// that is no signal does nothing, as for `kill`.
    fn signal(&mut self, signal: u8) {
        if !(1..=64).contains(&signal) {
            return;
        }
        match self.live() {
            Some(live) if live.running => {
                if let Some(control) = self.control() {
                    Order::Signal(signal).send(control);
                }
            }
            _ if !self.early_signals.contains(&signal) => self.early_signals.push(signal),
            _ => {}
        }
    }

    fn resize(&mut self, size: TtySize) {
        if let Some(asked) = &mut self.settings.tty {
            *asked = size;
        }
        if let Some(terminal) = &self.terminal {
            let _ = sandbox::set_size(terminal, size.rows, size.columns);
        }
    }

    fn detach(&mut self) {
        self.settings.background = true;
        self.output.discard();
        if let Some(control) = self.control() {
            Order::Detach.send(control);
        }
    }
}

/// Tells the host what became of its bytes.
pub(super) fn tell_of_input(
    connections: &mut BTreeMap<ConnectionId, Connection>,
    owner: Option<Owner>,
    written: &Written,
) {
    let Some(owner) = owner else {
        return;
    };
    let Some(connection) = connections.get_mut(&owner.connection) else {
        return;
    };
    if let Some(bytes) = written.grant {
        let grant = Grant {
            stream: StreamName::Stdin,
            bytes,
        };
        let payload = grant.to_payload();
        connection.out.frame(Kind::Credit, owner.number, &payload);
    }
    if written.closed {
        connection.out.frame(Kind::StdinClosed, owner.number, &[]);
    }
}

/// Answers a request of which nothing was kept.
fn refuse(connection: &mut Connection, number: u32, why: NotStartedWhy) {
    let exit = Exit {
        status: Status::NotStarted(NotStarted { why, errno: 0 }),
        tree_ended: true,
        left_running: 0,
        out_of_memory: false,
        wall_ms: 0,
        cpu_user_us: 0,
        cpu_system_us: 0,
        peak_memory: 0,
    };
    connection.send_json(Kind::Exit, number, &exit);
    connection.out.frame(Kind::OutputEnd, number, &[]);
}

fn welcome(connection: &mut Connection, frame: &Frame) -> Result<(), Violation> {
    let welcome: Welcome =
        message::from_payload(frame.kind, &frame.payload).map_err(|_| Violation)?;
    let spoken = (PROTOCOL.min..=PROTOCOL.max).contains(&welcome.protocol);
    if !spoken || connection.is_open() {
        return Err(Violation);
    }
    connection.open();
    Ok(())
}

/// Whether a frame is one that a host may send about a run.
fn check(frame: &Frame) -> Result<(), Violation> {
    let length = frame.payload.len();
    let fits = match frame.kind {
        Kind::Stdin => true,
        Kind::StdinEnd | Kind::Detach => length == 0,
        Kind::Credit => length == 5,
        Kind::Signal | Kind::End => length == 1,
        Kind::Resize => length == 4,
        _ => false,
    };
    if fits { Ok(()) } else { Err(Violation) }
}

fn size(payload: &[u8]) -> Option<TtySize> {
    let [a, b, c, d] = payload.try_into().ok()?;
    Some(TtySize {
        rows: u16::from_le_bytes([a, b]),
        columns: u16::from_le_bytes([c, d]),
    })
}
