//! The table of live runs, and what waits for an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use stockade_wire::Frame;
use stockade_wire::credit::ReceiveCredit;
use stockade_wire::frame::{Grant, Kind, StreamName};
use stockade_wire::message::{Exit, KilledAll, Started};
use tokio::sync::{mpsc, oneshot};

use super::Ended;
use super::stdin::StdinState;

/// What the reader fills and the handles read.
#[derive(Debug, Default)]
pub(super) struct Runs {
    table: Mutex<Table>,
}

/// A new run, as its starter sees it.
pub(super) struct Registered {
    pub(super) run: u32,
    pub(super) started: oneshot::Receiver<Started>,
    pub(super) exit: oneshot::Receiver<Result<Exit, Ended>>,
    pub(super) output: mpsc::UnboundedReceiver<(StreamName, Bytes)>,
    pub(super) credit: Arc<OutputCredit>,
    pub(super) stdin: Arc<StdinState>,
}

/// Credit of both output streams, shared by the reader, which takes note of
/// what arrives, and the consumer, which makes room.
#[derive(Debug, Default)]
pub(super) struct OutputCredit {
    windows: Mutex<[ReceiveCredit; 2]>,
}

/// What the reader must send back for a frame.
pub(super) enum Reply {
    Nothing,
    Grant(Grant),
    Pong(Bytes),
}

#[derive(Debug, Default)]
struct Table {
    last: u32,
    live: HashMap<u32, Entry>,
    killed: Vec<oneshot::Sender<KilledAll>>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Entry {
    started: Option<oneshot::Sender<Started>>,
    exit: Option<oneshot::Sender<Result<Exit, Ended>>>,
    output: mpsc::UnboundedSender<(StreamName, Bytes)>,
    credit: Arc<OutputCredit>,
    stdin: Arc<StdinState>,
}

impl Runs {
    /// Adds a run under a free number.
    pub(super) fn register(&self) -> Result<Registered, Ended> {
        let mut table = self.lock();
        if let Some(ended) = &table.ended {
            return Err(ended.clone());
        }
        let run = table.free_number();
        let (started_sender, started) = oneshot::channel();
        let (exit_sender, exit) = oneshot::channel();
        let (output_sender, output) = mpsc::unbounded_channel();
        let credit = Arc::new(OutputCredit::default());
        let stdin = Arc::new(StdinState::default());
        let entry = Entry {
            started: Some(started_sender),
            exit: Some(exit_sender),
            output: output_sender,
            credit: Arc::clone(&credit),
            stdin: Arc::clone(&stdin),
        };
        table.live.insert(run, entry);
        Ok(Registered {
            run,
            started,
            exit,
            output,
            credit,
            stdin,
        })
    }

    pub(super) fn expect_killed(&self) -> Result<oneshot::Receiver<KilledAll>, Ended> {
        let (sender, receiver) = oneshot::channel();
        let mut table = self.lock();
        if let Some(ended) = &table.ended {
            return Err(ended.clone());
        }
        table.killed.push(sender);
        Ok(receiver)
    }

    /// Ends every run with the channel. Only the first reason counts.
    pub(super) fn end(&self, why: &Ended) {
        let mut table = self.lock();
        if table.ended.is_some() {
            return;
        }
        table.ended = Some(why.clone());
        table.killed.clear();
        for (_, mut entry) in table.live.drain() {
            entry.stdin.close();
            if let Some(exit) = entry.exit.take() {
                let _ = exit.send(Err(why.clone()));
            }
        }
    }

    /// Takes in one frame of the guest.
    pub(super) fn receive(&self, frame: &Frame) -> Result<Reply, Ended> {
        match frame.kind {
            Kind::Ping if frame.payload.len() <= 16 => {
                return Ok(Reply::Pong(frame.payload.clone()));
            }
            // A sign of life, which arriving is.
            Kind::Pong => {}
            Kind::KilledAll => self.killed_all(frame)?,
            Kind::Goodbye => return Err(goodbye(frame)),
            Kind::Stdout => return self.output(frame, StreamName::Stdout),
            Kind::Stderr => return self.output(frame, StreamName::Stderr),
            Kind::Started | Kind::StdinClosed | Kind::Credit | Kind::Exit | Kind::OutputEnd => {
                self.of_run(frame)?;
            }
            kind => return Err(Ended::Protocol(format!("a {kind:?} frame from the guest"))),
        }
        Ok(Reply::Nothing)
    }

    fn of_run(&self, frame: &Frame) -> Result<(), Ended> {
        let mut table = self.lock();
        // A run that nobody knows any more is not a fault: it was detached.
        let Some(entry) = table.live.get_mut(&frame.run) else {
            return Ok(());
        };
        match frame.kind {
            Kind::Started => {
                let started = parse(frame)?;
                if let Some(waiting) = entry.started.take() {
                    let _ = waiting.send(started);
                }
            }
            Kind::StdinClosed => entry.stdin.close(),
            Kind::Credit => {
                let grant = Grant::from_payload(&frame.payload).map_err(broken)?;
                if grant.stream != StreamName::Stdin {
                    return Err(Ended::Protocol("credit for an output stream".into()));
                }
                entry.stdin.refill(grant.bytes).map_err(broken)?;
            }
            Kind::Exit => {
                let exit = parse(frame)?;
                entry.started = None;
                entry.stdin.close();
                if let Some(waiting) = entry.exit.take() {
                    let _ = waiting.send(Ok(exit));
                }
            }
            _ => {
                if entry.exit.is_some() {
                    return Err(Ended::Protocol(
                        "the output of a run ended before its exit".into(),
                    ));
                }
                table.live.remove(&frame.run);
            }
        }
        Ok(())
    }

    fn output(&self, frame: &Frame, stream: StreamName) -> Result<Reply, Ended> {
        let table = self.lock();
        let Some(entry) = table.live.get(&frame.run) else {
            return Ok(Reply::Nothing);
        };
        let bytes = frame.payload.len();
        entry.credit.receive(stream, bytes).map_err(broken)?;
        if entry.output.send((stream, frame.payload.clone())).is_ok() {
            return Ok(Reply::Nothing);
        }
        // Nobody reads any more: make room at once, so that the program goes on.
        let grant = entry.credit.consume(stream, bytes);
        Ok(grant.map_or(Reply::Nothing, |bytes| {
            Reply::Grant(Grant { stream, bytes })
        }))
    }

    fn killed_all(&self, frame: &Frame) -> Result<(), Ended> {
        let killed: KilledAll = parse(frame)?;
        for waiting in self.lock().killed.drain(..) {
            let _ = waiting.send(killed);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn free_number(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.live.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

impl OutputCredit {
    pub(super) fn consume(&self, stream: StreamName, bytes: usize) -> Option<u32> {
        self.window(stream, |window| window.consume(bytes))
    }

    fn receive(
        &self,
        stream: StreamName,
        bytes: usize,
    ) -> Result<(), stockade_wire::credit::CreditError> {
        self.window(stream, |window| window.receive(bytes))
    }

    fn window<T>(&self, stream: StreamName, with: impl FnOnce(&mut ReceiveCredit) -> T) -> T {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        with(&mut windows[usize::from(stream == StreamName::Stderr)])
    }
}

fn parse<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<T, Ended> {
    stockade_wire::message::from_payload(frame.kind, &frame.payload).map_err(broken)
}

fn goodbye(frame: &Frame) -> Ended {
    use stockade_wire::message::Goodbye;
    match parse(frame) {
        Ok(Goodbye::Idle) => Ended::Goodbye("no host was heard for the idle limit"),
        Ok(Goodbye::MaximumAge) => Ended::Goodbye("the maximum age was reached"),
        Ok(Goodbye::Stopped) => Ended::Goodbye("the engine stopped it"),
        Ok(_) => Ended::Protocol("it did not understand us".into()),
        Err(ended) => ended,
    }
}

fn broken(error: impl std::fmt::Display) -> Ended {
    Ended::Protocol(error.to_string())
}
