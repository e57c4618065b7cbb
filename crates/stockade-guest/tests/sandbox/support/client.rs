//! The host's side of the channel, as simple as a test needs it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use stockade_wire::credit::{ReceiveCredit, SendCredit};
use stockade_wire::frame::{Grant, StreamName};
use stockade_wire::limits::{FRAME_PAYLOAD, STREAM_CREDIT};
use stockade_wire::message::{
    Exit, Goodbye, Hello, KilledAll, Program, Start, Started, Status, Welcome, from_payload,
    to_payload,
};
use stockade_wire::{Decoder, Frame, Kind, Text, encode};

use super::{PATIENCE, now};

/// How long a relay may take to end by itself.
const PARTING: Duration = Duration::from_millis(500);

/// One attached host.
pub(crate) struct Client {
    pub(crate) relay: Child,
    pub(crate) hello: Hello,
    pub(crate) goodbye: Option<Goodbye>,
    stdin: Option<ChildStdin>,
    frames: Receiver<Frame>,
    runs: BTreeMap<u32, Run>,
    last: u32,
    pongs: usize,
    killed: Option<KilledAll>,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) started: Option<Started>,
    pub(crate) exit: Exit,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

#[derive(Default)]
struct Run {
    started: Option<Started>,
    exit: Option<Exit>,
    output: [(Vec<u8>, ReceiveCredit); 2],
    input: SendCredit,
    input_closed: bool,
    /// Output is not consumed: no more credit than the first window.
    slow: bool,
    ended: bool,
}

/// A program and its arguments, with nothing special about it.
pub(crate) fn argv(words: &[&str]) -> Start {
    let words = words.iter().map(|word| Text::from(*word)).collect();
    start(Program::Argv(words))
}

/// A line for the shell.
pub(crate) fn shell(line: &str) -> Start {
    start(Program::Shell(line.into()))
}

pub(super) fn start(program: Program) -> Start {
    Start {
        program,
        env: Vec::new(),
        cwd: None,
        stdin: false,
        tty: None,
        timeout_ms: None,
        output_limit: None,
        background: false,
    }
}

impl Client {
    /// Starts the relay and answers the hello.
    pub(crate) fn open(relay: Command) -> Self {
        Self::open_silently(relay).welcomed()
    }

    /// Takes over a relay that runs, and answers the hello.
    pub(crate) fn of(relay: Child) -> Self {
        Self::take_over(relay).welcomed()
    }

    /// Starts the relay and takes the hello, without an answer.
    pub(crate) fn open_silently(mut relay: Command) -> Self {
        let relay = relay.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self::take_over(relay.expect("the relay starts"))
    }

    fn welcomed(mut self) -> Self {
        let protocol = stockade_wire::PROTOCOL.max;
        self.send_json(Kind::Welcome, 0, &Welcome { protocol });
        self
    }

    fn take_over(mut relay: Child) -> Self {
        let stdin = relay.stdin.take();
        let mut stdout = relay.stdout.take().unwrap();
        let (sender, frames) = channel();
        std::thread::spawn(move || {
            let mut decoder = Decoder::new();
            let mut buffer = vec![0; FRAME_PAYLOAD];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                decoder.buffer().extend_from_slice(&buffer[..length]);
                while let Some(frame) = decoder
                    .next_frame()
                    .expect("the guest keeps to the protocol")
                {
                    if sender.send(frame).is_err() {
                        return;
                    }
                }
            }
        });
        let Ok(hello) = frames.recv_timeout(PATIENCE) else {
            let _ = relay.kill();
            let _ = relay.wait();
            panic!("no hello comes");
        };
        assert_eq!(hello.kind, Kind::Hello);
        Self {
            relay,
            hello: from_payload(Kind::Hello, &hello.payload).unwrap(),
            goodbye: None,
            stdin,
            frames,
            runs: BTreeMap::new(),
            last: 0,
            pongs: 0,
            killed: None,
        }
    }

    /// Runs a command to its end.
    pub(crate) fn run(&mut self, request: &Start) -> Outcome {
        let run = self.start(request);
        self.outcome(run)
    }

    /// Asks for a command; answers its number.
    pub(crate) fn start(&mut self, request: &Start) -> u32 {
        self.start_raw(&serde_json::to_vec(request).unwrap())
    }

    /// Asks for what need not be a request.
    pub(crate) fn start_raw(&mut self, request: &[u8]) -> u32 {
        self.last += 1;
        let run = self.last;
        self.runs.insert(run, Run::default());
        if request.is_empty() {
            self.send(Kind::Start, run, request);
        }
        let mut parts = request.chunks(FRAME_PAYLOAD).peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            let kind = if last { Kind::Start } else { Kind::StartMore };
            self.send(kind, run, part);
        }
        run
    }

    /// Stops consuming a command's output.
    pub(crate) fn be_slow(&mut self, run: u32) {
        self.run_mut(run).slow = true;
    }

    /// Consumes what was held back, and everything from now on.
    pub(crate) fn hurry(&mut self, run: u32) {
        self.run_mut(run).slow = false;
        for stream in [StreamName::Stdout, StreamName::Stderr] {
            self.consume(run, stream, STREAM_CREDIT as usize);
        }
    }

    /// Waits for everything about a command.
    pub(crate) fn outcome(&mut self, run: u32) -> Outcome {
        self.until(|client| client.runs[&run].ended);
        let run = self.runs.remove(&run).unwrap();
        let [stdout, stderr] = run.output;
        Outcome {
            started: run.started,
            exit: run.exit.expect("an exit comes before the end of output"),
            stdout: stdout.0,
            stderr: stderr.0,
        }
    }

    /// Waits until the program runs.
    pub(crate) fn started(&mut self, run: u32) -> Started {
        self.until(|client| client.runs[&run].started.is_some());
        self.runs[&run].started.unwrap()
    }

    /// Whether the program runs, as far as is known.
    pub(crate) fn has_started(&self, run: u32) -> bool {
        self.runs[&run].started.is_some()
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self, run: u32) -> &[u8] {
        &self.runs[&run].output[0].0
    }

    /// Waits until standard output holds this.
    pub(crate) fn stdout_holds(&mut self, run: u32, text: &str) {
        let holds = |client: &Self| {
            let found = String::from_utf8_lossy(client.stdout(run)).into_owned();
            assert!(
                found.contains(text) || !client.runs[&run].ended,
                "ended without {text:?}: {found:?}"
            );
            found.contains(text)
        };
        self.until(holds);
    }

    /// Sends standard input, as credit allows; what nobody reads is dropped.
    pub(crate) fn write(&mut self, run: u32, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let may = |client: &Self| {
                let run = &client.runs[&run];
                run.input_closed || run.ended || run.input.available() > 0
            };
            self.until(may);
            let state = self.run_mut(run);
            if state.input_closed || state.ended {
                return;
            }
            let length = bytes.len().min(state.input.available()).min(FRAME_PAYLOAD);
            state.input.spend(length).unwrap();
            let (now, later) = bytes.split_at(length);
            self.send(Kind::Stdin, run, now);
            bytes = later;
        }
    }

    pub(crate) fn end_input(&mut self, run: u32) {
        self.send(Kind::StdinEnd, run, &[]);
    }

    /// Whether the guest said that nobody reads standard input.
    pub(crate) fn input_is_closed(&self, run: u32) -> bool {
        self.runs[&run].input_closed
    }

    /// Waits for the answer to a ping.
    pub(crate) fn ping(&mut self) {
        let before = self.pongs;
        self.send(Kind::Ping, 0, b"12345678");
        self.until(|client| client.pongs > before);
    }

    /// Has everything killed.
    pub(crate) fn kill_all(&mut self) -> KilledAll {
        self.killed = None;
        self.send(Kind::KillAll, 0, &[]);
        self.until(|client| client.killed.is_some());
        self.killed.unwrap()
    }

    pub(crate) fn send(&mut self, kind: Kind, run: u32, payload: &[u8]) {
        let mut frame = Vec::new();
        encode(kind, run, payload, &mut frame);
        self.send_raw(&frame);
    }

    /// Bytes that need not be frames. A relay that is gone takes none.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(bytes);
        }
    }

    /// Closes the stream as a host does that has nothing more to say.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the stream.
    pub(crate) fn until_closed(&mut self) {
        loop {
            match self.frames.recv_timeout(PATIENCE) {
                Ok(frame) => self.take(&frame),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the stream does not end"),
            }
        }
        let _ = self.relay.wait();
    }

    /// Takes frames until something holds.
    pub(crate) fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            let frame = self.frames.recv_timeout(PATIENCE);
            self.take(&frame.expect("a frame comes"));
        }
    }

    fn take(&mut self, frame: &Frame) {
        let number = frame.run;
        match frame.kind {
            Kind::Ping => self.send(Kind::Pong, 0, &frame.payload),
            Kind::Pong => self.pongs += 1,
            Kind::Goodbye => self.goodbye = Some(from_payload(frame.kind, &frame.payload).unwrap()),
            Kind::KilledAll => {
                self.killed = Some(from_payload(frame.kind, &frame.payload).unwrap());
            }
            Kind::Started => {
                let run = self.run_mut(number);
                assert!(run.exit.is_none() && run.output[0].0.is_empty());
                run.started = Some(from_payload(frame.kind, &frame.payload).unwrap());
            }
            Kind::Stdout => self.take_output(number, StreamName::Stdout, &frame.payload),
            Kind::Stderr => self.take_output(number, StreamName::Stderr, &frame.payload),
            Kind::StdinClosed => self.run_mut(number).input_closed = true,
            Kind::Credit => {
                let grant = Grant::from_payload(&frame.payload).unwrap();
                assert_eq!(grant.stream, StreamName::Stdin);
                self.run_mut(number).input.refill(grant.bytes).unwrap();
            }
            Kind::Exit => {
                let exit: Exit = from_payload(frame.kind, &frame.payload).unwrap();
                let run = self.run_mut(number);
                assert!(run.exit.is_none(), "a run exits once");
                run.exit = Some(exit);
            }
            Kind::OutputEnd => {
                let run = self.run_mut(number);
                assert!(run.exit.is_some() && !run.ended);
                run.ended = true;
            }
            kind => panic!("a {kind:?} frame from the guest"),
        }
    }

    fn take_output(&mut self, number: u32, stream: StreamName, bytes: &[u8]) {
        let run = self.run_mut(number);
        assert!(!run.ended, "output after the end of output");
        let (kept, credit) = &mut run.output[usize::from(stream == StreamName::Stderr)];
        credit.receive(bytes.len()).unwrap();
        kept.extend_from_slice(bytes);
        if !run.slow {
            self.consume(number, stream, bytes.len());
        }
    }

    fn consume(&mut self, number: u32, stream: StreamName, bytes: usize) {
        let run = self.run_mut(number);
        let (_, credit) = &mut run.output[usize::from(stream == StreamName::Stderr)];
        if let Some(bytes) = credit.consume(bytes) {
            let payload = Grant { stream, bytes }.to_payload();
            self.send(Kind::Credit, number, &payload);
        }
    }

    fn send_json<T: serde::Serialize>(&mut self, kind: Kind, run: u32, message: &T) {
        self.send(kind, run, &to_payload(kind, message).unwrap());
    }

    fn run_mut(&mut self, run: u32) -> &mut Run {
        self.runs
            .get_mut(&run)
            .expect("the guest names runs that there are")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.hang_up();
        // A relay that ends by itself is reaped by its parent at once. One
        // that is orphaned by a kill waits for the machine's init, and the
        // whole sandbox waits with it.
        let start = now();
        while start.elapsed() < PARTING && matches!(self.relay.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.relay.kill();
        let _ = self.relay.wait();
    }
}

impl Outcome {
    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The exit code of a program that ended by itself, with its tree.
    pub(crate) fn code(&self) -> i32 {
        assert!(self.exit.tree_ended, "{:?}", self.exit);
        match self.exit.status {
            Status::Exited(code) => code,
            ref status => panic!(
                "{status:?}, stderr {:?}",
                String::from_utf8_lossy(&self.stderr)
            ),
        }
    }
}
