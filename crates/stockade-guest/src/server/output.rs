//! What comes out of a program.
//!
//! Reading follows credit and room: a stream whose reader is slow is not
//! read, and its program waits on a full pipe, as it would for any reader.
//! While the program runs a stream ends when it is closed. After its end a
//! stream is what the pipe held at that moment, so that nothing written
//! before is lost, and a process that keeps the pipe open, or goes on writing
//! into it, delays nothing.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use stockade_wire::Kind;
use stockade_wire::credit::{CreditError, SendCredit};

use super::outbound::Outbound;
use crate::poller::{Interest, Source};

/// What a terminal can hold, in bytes; it cannot be asked like a pipe.
const TERMINAL: u64 = 128 * 1024;

/// What nobody will read is taken at most this many bytes at a time, with a
/// pause: the programs that write it must not wait for ever, nor keep PID 1
/// from better things.
const DISCARDED: usize = 64 * 1024;
const PAUSE: Duration = Duration::from_millis(5);

/// Both output streams of one run.
#[derive(Debug)]
pub(super) struct Output {
    /// Standard output or the terminal, and standard error.
    streams: [Stream; 2],
    /// Bytes taken from both so far.
    written: u64,
    /// How many may be.
    limit: u64,
}

#[derive(Debug)]
struct Stream {
    kind: Kind,
    /// `None` when it is closed, or not open yet.
    source: Option<Source>,
    credit: SendCredit,
    flow: Flow,
    is_terminal: bool,
}

/// What becomes of the bytes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// They are sent.
    Deliver,
    /// That many are still sent.
    Rest(u64),
    /// They are dropped; not before the time given.
    Discard(Option<Instant>),
}

/// What came of taking bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Fine,
    /// There is more than the limit allows.
    OverLimit,
}

impl Output {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            streams: [Stream::new(Kind::Stdout), Stream::new(Kind::Stderr)],
            written: 0,
            limit: limit.unwrap_or(u64::MAX),
        }
    }

    pub(super) fn connect_pipes(&mut self, stdout: Source, stderr: Source) {
        for (stream, source) in self.streams.iter_mut().zip([stdout, stderr]) {
            stream.source = Some(source);
        }
    }

    pub(super) fn connect_terminal(&mut self, terminal: Source) {
        let [stream, _] = &mut self.streams;
        stream.source = Some(terminal);
        stream.is_terminal = true;
    }

    /// Takes more credit of the host for one stream.
    pub(super) fn refill(&mut self, kind: Kind, bytes: u32) -> Result<(), CreditError> {
        let stream = self.streams.iter_mut().find(|stream| stream.kind == kind);
        stream.map_or(Ok(()), |stream| stream.credit.refill(bytes))
    }

    /// Takes from one stream what may be taken, after an event on it.
    pub(super) fn take(
        &mut self,
        kind: Kind,
        to: Option<(&mut Outbound, u32)>,
        now: Instant,
    ) -> Taken {
        let left = self.limit - self.written;
        let stream = self.streams.iter_mut().find(|stream| stream.kind == kind);
        match stream.map_or(Some(0), |stream| stream.take(left, to, now)) {
            Some(taken) => {
                self.written += taken;
                Taken::Fine
            }
            None => Taken::OverLimit,
        }
    }

    /// Goes on with what a program left, which needs no event.
    pub(super) fn take_rest(&mut self, to: &mut Outbound, run: u32, now: Instant) {
        for stream in &mut self.streams {
            while matches!(stream.flow, Flow::Rest(_)) && stream.source.is_some() {
                let left = self.limit - self.written;
                match stream.take(left, Some((&mut *to, run)), now) {
                    Some(0) | None => break,
                    Some(taken) => self.written += taken,
                }
            }
        }
    }

    /// The program is gone: what was written until now is all that is sent.
    /// Answers whether that is more than the limit allows.
    pub(super) fn finish(&mut self) -> Taken {
        let mut left = self.limit - self.written;
        let mut taken = Taken::Fine;
        for stream in &mut self.streams {
            let (held, sent) = stream.finish(left);
            left -= sent;
            if held > sent {
                taken = Taken::OverLimit;
            }
        }
        taken
    }

    /// Nobody will read any of it.
    pub(super) fn discard(&mut self) {
        for stream in &mut self.streams {
            stream.flow = Flow::Discard(None);
        }
    }

    pub(super) fn close(&mut self) {
        for stream in &mut self.streams {
            stream.source = None;
        }
    }

    /// After [`Self::finish`]: whether all of it has been sent.
    pub(super) fn is_sent(&self) -> bool {
        self.streams.iter().all(|stream| {
            stream.source.is_none() || matches!(stream.flow, Flow::Rest(0) | Flow::Discard(_))
        })
    }

    /// Sets what to be woken for. `room` says whether its connection has any.
    pub(super) fn watch(&mut self, room: bool, now: Instant) -> std::io::Result<()> {
        let over = self.written >= self.limit;
        for stream in &mut self.streams {
            stream.watch(room, over, now)?;
        }
        Ok(())
    }

    /// When something that is paused goes on.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let paused = self.streams.iter().filter_map(|stream| match stream.flow {
            Flow::Discard(until) if stream.source.is_some() => until,
            _ => None,
        });
        paused.filter(|until| *until > now).min()
    }
}

impl Stream {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            source: None,
            credit: SendCredit::new(),
            flow: Flow::Deliver,
            is_terminal: false,
        }
    }

    /// Reads once. Answers how many bytes were taken, `None` when one more
    /// than `left` was found.
    fn take(&mut self, left: u64, to: Option<(&mut Outbound, u32)>, now: Instant) -> Option<u64> {
        let Some(source) = &self.source else {
            return Some(0);
        };
        let (Flow::Deliver | Flow::Rest(_), Some((out, run))) = (self.flow, to) else {
            self.discard_some(now);
            return Some(0);
        };
        let rest = match self.flow {
            Flow::Rest(rest) => rest,
            _ => u64::MAX,
        };
        let most = rest.min(left);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let most = most.min(self.credit.available()).min(out.room());
        if left == 0 {
            return self.look_beyond();
        }
        if most == 0 {
            return Some(0);
        }
        let taken = match out.frame_from(source, most, self.kind, run) {
            Ok(0) => None,
            Ok(taken) => Some(taken),
            Err(Errno::AGAIN) => {
                // What a terminal held has been read.
                if let Flow::Rest(rest) = &mut self.flow {
                    *rest = 0;
                }
                Some(0)
            }
            Err(Errno::INTR) => Some(0),
            // The end of a terminal is an error (EIO).
            Err(_) => None,
        };
        let Some(taken) = taken else {
            self.source = None;
            return Some(0);
        };
        // Never more than was available, which bounded the read.
        let _ = self.credit.spend(taken);
        let taken = taken as u64;
        if let Flow::Rest(rest) = &mut self.flow {
            *rest -= taken;
        }
        Some(taken)
    }

    /// At the limit: whether there is one more byte.
    fn look_beyond(&mut self) -> Option<u64> {
        let mut byte = [0];
        match rustix::io::read(self.source.as_ref()?, &mut byte) {
            Ok(1) => return None,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => self.source = None,
        }
        Some(0)
    }

    fn discard_some(&mut self, now: Instant) {
        let Some(source) = &self.source else {
            return;
        };
        let mut nowhere = [const { MaybeUninit::<u8>::uninit() }; DISCARDED];
        match rustix::io::read(source, &mut nowhere) {
            Ok(([], _)) => self.source = None,
            Ok(_) => self.flow = Flow::Discard(Some(now + PAUSE)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.source = None,
        }
    }

    /// Answers how many bytes are held, as far as that can be known, and how
    /// many of them will be sent.
    fn finish(&mut self, left: u64) -> (u64, u64) {
        let (Some(source), Flow::Deliver) = (&self.source, self.flow) else {
            return (0, 0);
        };
        let held = match self.is_terminal {
            true => TERMINAL.min(left),
            false => rustix::io::ioctl_fionread(source).unwrap_or(0),
        };
        let sent = held.min(left);
        self.flow = Flow::Rest(sent);
        (held, sent)
    }

    fn watch(&mut self, room: bool, over: bool, now: Instant) -> std::io::Result<()> {
        let wanted = match self.flow {
            // At the limit no credit is needed to see that there is more.
            Flow::Deliver => over || (room && self.credit.available() > 0),
            // Needs no event.
            Flow::Rest(_) => false,
            Flow::Discard(until) => until.is_none_or(|until| now >= until),
        };
        match &mut self.source {
            Some(source) => source.set_interest(wanted.then_some(Interest::Read)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::pipe::{PipeFlags, pipe_with};
    use stockade_wire::limits::STREAM_CREDIT;

    use super::*;
    use crate::clock::now;
    use crate::poller::Poller;

    struct Fixture {
        poller: Poller,
        output: Output,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
        out: Outbound,
    }

    fn fixture(limit: Option<u64>) -> Fixture {
        let poller = Poller::new().unwrap();
        let mut output = Output::new(limit);
        let (stdout, stdout_end) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let (stderr, stderr_end) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        output.connect_pipes(poller.source(stdout, 1), poller.source(stderr, 2));
        Fixture {
            poller,
            output,
            stdout: Some(stdout_end),
            stderr: Some(stderr_end),
            out: Outbound::new(),
        }
    }

    impl Fixture {
        fn write(&self, bytes: &[u8]) -> usize {
            rustix::io::write(self.stdout.as_ref().unwrap(), bytes).unwrap()
        }

        fn take(&mut self) -> Taken {
            let to = Some((&mut self.out, 1));
            self.output.take(Kind::Stdout, to, now())
        }

        fn wakes(&mut self) -> bool {
            self.output.watch(self.out.room() > 0, now()).unwrap();
            let mut events = Vec::new();
            self.poller.wait(Duration::ZERO, &mut events).unwrap();
            !events.is_empty()
        }
    }

    #[test]
    fn what_was_written_before_the_end_is_sent_and_what_comes_after_is_not() {
        let mut fixture = fixture(None);
        fixture.write(b"before");
        assert_eq!(fixture.output.finish(), Taken::Fine);
        assert!(!fixture.output.is_sent());
        fixture.write(b"after");
        fixture.output.take_rest(&mut fixture.out, 1, now());
        assert!(fixture.output.is_sent());
        assert_eq!(fixture.output.written, 6);
    }

    #[test]
    fn exactly_the_limit_is_fine_and_one_more_byte_is_not() {
        let mut fixture = fixture(Some(5));
        fixture.write(b"12345");
        assert_eq!(fixture.take(), Taken::Fine);
        assert_eq!(fixture.take(), Taken::Fine);
        assert!(!fixture.wakes());
        fixture.write(b"6");
        assert!(fixture.wakes());
        assert_eq!(fixture.take(), Taken::OverLimit);
        assert_eq!(fixture.output.written, 5);
    }

    #[test]
    fn a_program_that_is_gone_before_its_output_was_looked_at_has_the_same_limit() {
        let mut fixture = fixture(Some(5));
        fixture.write(b"12345");
        assert_eq!(fixture.output.finish(), Taken::Fine);
        let mut fixture = self::fixture(Some(5));
        fixture.write(b"123456");
        assert_eq!(fixture.output.finish(), Taken::OverLimit);
        fixture.output.take_rest(&mut fixture.out, 1, now());
        assert!(fixture.output.is_sent());
        assert_eq!(fixture.output.written, 5);
    }

    #[test]
    fn a_closed_stream_at_the_limit_does_not_wake_for_ever() {
        let mut fixture = fixture(Some(5));
        fixture.write(b"12345");
        fixture.take();
        fixture.stdout = None;
        fixture.stderr = None;
        assert!(fixture.wakes());
        fixture.take();
        fixture
            .output
            .take(Kind::Stderr, Some((&mut fixture.out, 1)), now());
        assert!(!fixture.wakes());
    }

    #[test]
    fn nothing_is_read_without_credit() {
        let mut fixture = fixture(None);
        let mut sent = 0;
        while sent < STREAM_CREDIT as usize {
            sent += fixture.write(&[0; 4096]);
            fixture.take();
            fixture.out = Outbound::new();
        }
        fixture.write(b"x");
        fixture.take();
        assert_eq!(fixture.output.written, u64::from(STREAM_CREDIT));
        assert!(!fixture.wakes());
        fixture.output.refill(Kind::Stdout, 1).unwrap();
        assert!(fixture.wakes());
        assert!(fixture.output.refill(Kind::Stdout, STREAM_CREDIT).is_err());
    }

    #[test]
    fn what_nobody_reads_is_drained_with_pauses() {
        let mut fixture = fixture(None);
        fixture.output.discard();
        fixture.write(b"x");
        assert!(fixture.wakes());
        fixture.output.take(Kind::Stdout, None, now());
        fixture.write(b"y");
        let now = now();
        let until = fixture.output.deadline(now).unwrap();
        assert!(until > now && fixture.output.is_sent());
        // A pause that is over is nothing to wait for.
        assert_eq!(fixture.output.deadline(until), None);
        std::thread::sleep(PAUSE);
        assert!(fixture.wakes());
    }
}
