//! A relay that does to frames what it is told.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use stockade_tests::client::Told;
use stockade_tests::frames::{FrameFault, FrameRule, Sender, name};
use stockade_wire::frame::{HEADER, encode_header};
use stockade_wire::limits::FRAME_PAYLOAD;
use stockade_wire::message::{Exit, Program, Start, from_payload, to_payload};
use stockade_wire::{Decoder, Frame, Kind, encode};

use super::{CHUNK, LATE};

/// A kind that there is not.
const NO_KIND: u8 = 0xee;

/// Runs the real relay between ourselves and the engine.
pub(crate) fn run(told: &Told, rules: &[FrameRule], mut docker: Command) -> ExitCode {
    let docker = docker.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut docker = docker.spawn().expect("docker starts");
    let to_guest = docker.stdin.take().expect("it has an input");
    let from_guest = docker.stdout.take().expect("it has an output");
    let workers = Arc::default();
    let way = |from| Way {
        told: told.clone(),
        rules: rules.to_vec(),
        from,
        starts: HashMap::new(),
        inner: HashMap::new(),
        workers: Arc::clone(&workers),
    };
    let (host, guest) = (way(Sender::Host), way(Sender::Guest));
    let docker = Arc::new(Mutex::new(docker));
    let other = Arc::clone(&docker);
    thread::spawn(move || host.carry(std::io::stdin(), to_guest, &other));
    guest.carry(from_guest, std::io::stdout(), &docker);
    let status = docker.lock().unwrap_or_else(PoisonError::into_inner).wait();
    match status.ok().and_then(|status| status.code()) {
        Some(0) => ExitCode::SUCCESS,
        code => ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
    }
}

/// One direction of the channel.
struct Way {
    told: Told,
    rules: Vec<FrameRule>,
    from: Sender,
    /// What of a start request has come so far.
    starts: HashMap<u32, Vec<u8>>,
    /// What is in the streams of file workers.
    inner: HashMap<u32, Decoder>,
    /// The runs that are file workers, as both directions know them.
    workers: Arc<Mutex<HashSet<u32>>>,
}

/// What becomes of the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoesOn,
    Ends,
    Stalls,
    Dies,
}

impl Way {
    fn carry(mut self, mut from: impl Read, mut to: impl Write, docker: &Mutex<Child>) {
        let mut decoder = Decoder::new();
        let mut chunk = vec![0; CHUNK];
        let mut next = Next::GoesOn;
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            if next == Next::Stalls {
                continue;
            }
            decoder.buffer().extend_from_slice(&chunk[..read]);
            while next == Next::GoesOn
                && let Some(frame) = decoder.next_frame().expect("both ends speak the protocol")
            {
                let mut bytes = Vec::new();
                next = self.frame(frame, &mut bytes);
                if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            match next {
                Next::Ends => {
                    if self.from == Sender::Guest {
                        kill(docker);
                    }
                    return;
                }
                Next::Dies => {
                    kill(docker);
                    super::killed();
                }
                Next::GoesOn | Next::Stalls => {}
            }
        }
    }

    fn frame(&mut self, frame: Frame, into: &mut Vec<u8>) -> Next {
        self.learn(&frame);
        let is_worker = self.is_worker(frame.run);
        let carries = matches!(
            (self.from, frame.kind),
            (Sender::Host, Kind::Stdin) | (Sender::Guest, Kind::Stdout)
        );
        if is_worker && carries {
            return self.inner(&frame, into);
        }
        self.pass(&frame, into)
    }

    /// The frames inside a frame.
    fn inner(&mut self, frame: &Frame, into: &mut Vec<u8>) -> Next {
        let mut decoder = self.inner.remove(&frame.run).unwrap_or_default();
        decoder.buffer().extend_from_slice(&frame.payload);
        let mut bytes = Vec::new();
        let mut next = Next::GoesOn;
        while next == Next::GoesOn
            && let Some(inner) = decoder.next_frame().expect("workers speak the protocol")
        {
            next = self.pass(&inner, &mut bytes);
        }
        self.inner.insert(frame.run, decoder);
        for piece in bytes.chunks(FRAME_PAYLOAD) {
            encode(frame.kind, frame.run, piece, into);
        }
        next
    }

    /// Lets a frame pass, unless something goes wrong with it.
    fn pass(&self, frame: &Frame, into: &mut Vec<u8>) -> Next {
        let number = self.told.passes(&self.from.line(frame.kind));
        let kind = name(frame.kind);
        let mut rules = self.rules.iter().enumerate();
        let rule = rules.find(|(_, rule)| {
            let place = &rule.place;
            place.from == self.from && place.kind == kind && place.number == number
        });
        let Some((which, rule)) = rule else {
            encode(frame.kind, frame.run, &frame.payload, into);
            return Next::GoesOn;
        };
        self.told.strikes(which);
        distort(rule.fault, frame, into)
    }

    /// Learns which runs are file workers.
    fn learn(&mut self, frame: &Frame) {
        if self.from != Sender::Host || !matches!(frame.kind, Kind::Start | Kind::StartMore) {
            return;
        }
        let request = self.starts.entry(frame.run).or_default();
        request.extend_from_slice(&frame.payload);
        if frame.kind == Kind::StartMore {
            return;
        }
        let request = self.starts.remove(&frame.run).unwrap_or_default();
        let start: Option<Start> = serde_json::from_slice(&request).ok();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        match start.is_some_and(|start| start.program == Program::Files) {
            true => workers.insert(frame.run),
            false => workers.remove(&frame.run),
        };
    }

    fn is_worker(&self, run: u32) -> bool {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.contains(&run)
    }
}

/// A frame as the fault makes it.
fn distort(fault: FrameFault, frame: &Frame, into: &mut Vec<u8>) -> Next {
    let whole = |into: &mut Vec<u8>| encode(frame.kind, frame.run, &frame.payload, into);
    match fault {
        FrameFault::Dropped => {}
        FrameFault::GarbagePayload => {
            let garbage = vec![0xa5; frame.payload.len().max(3)];
            encode(frame.kind, frame.run, &garbage, into);
        }
        FrameFault::GarbageHeader => {
            let at = into.len();
            whole(into);
            into[at] = NO_KIND;
        }
        FrameFault::Truncated => {
            let half = frame.payload.len() / 2;
            encode_header(frame.kind, frame.run, frame.payload.len(), into);
            match half {
                0 => into.truncate(into.len() - HEADER / 2),
                half => into.extend_from_slice(&frame.payload[..half]),
            }
            return Next::Ends;
        }
        FrameFault::Late => {
            thread::sleep(LATE);
            whole(into);
        }
        FrameFault::Duplicated => {
            whole(into);
            whole(into);
        }
        FrameFault::Stalled => return Next::Stalls,
        FrameFault::Killed => return Next::Dies,
        FrameFault::TreeLeft => {
            let mut exit: Exit = from_payload(frame.kind, &frame.payload).expect("it is an exit");
            exit.tree_ended = false;
            let payload = to_payload(frame.kind, &exit).expect("it is an exit still");
            encode(frame.kind, frame.run, &payload, into);
        }
    }
    Next::GoesOn
}

fn kill(docker: &Mutex<Child>) {
    let _ = docker.lock().unwrap_or_else(PoisonError::into_inner).kill();
}
