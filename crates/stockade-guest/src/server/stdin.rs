//! What goes into a program.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::termios::{LocalModes, SpecialCodeIndex};
use stockade_wire::credit::{CreditError, ReceiveCredit};

use crate::poller::{Interest, Source};

/// Standard input of one run, from the host's frames into a pipe or a terminal.
#[derive(Debug)]
pub(super) struct Stdin {
    target: Target,
    waiting: VecDeque<u8>,
    credit: ReceiveCredit,
    /// The host said that no more will come.
    ended: bool,
    /// What a terminal was given last, to know where its line stands.
    last: u8,
}

#[derive(Debug)]
enum Target {
    /// The command does not run yet.
    NotYet,
    Pipe(Source),
    Terminal(Source),
    /// Nobody reads any more, or nobody ever will.
    Closed,
}

/// What came of an attempt to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Credit to give back to the host.
    pub(super) grant: Option<u32>,
    /// Nobody reads any more; the host must be told.
    pub(super) closed: bool,
}

impl Stdin {
    /// For a command that is not running yet; `wanted` says whether it has
    /// standard input at all.
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            target: if wanted {
                Target::NotYet
            } else {
                Target::Closed
            },
            waiting: VecDeque::new(),
            credit: ReceiveCredit::new(),
            ended: false,
            last: b'\n',
        }
    }

    /// The program reads from the other end of this pipe.
    pub(super) fn connect_pipe(&mut self, pipe: Source) {
        self.target = Target::Pipe(pipe);
    }

    /// The program reads from this terminal.
    pub(super) fn connect_terminal(&mut self, terminal: Source) {
        self.target = Target::Terminal(terminal);
    }

    /// Bytes that wait to be read by the program.
    pub(super) fn held(&self) -> usize {
        self.waiting.len()
    }

    /// Takes bytes of the host.
    ///
    /// # Errors
    ///
    /// When the host was not granted that many.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Written, CreditError> {
        self.credit.receive(bytes.len())?;
        if matches!(self.target, Target::Closed) {
            return Ok(Written::default());
        }
        let written = self.write_directly(bytes);
        self.waiting
            .extend(bytes.get(written..).unwrap_or_default());
        Ok(self.write_waiting(written))
    }

    /// No more will come.
    pub(super) fn end(&mut self) -> Written {
        self.ended = true;
        self.write()
    }

    /// Writes what can be written.
    pub(super) fn write(&mut self) -> Written {
        self.write_waiting(0)
    }

    /// Writes past the queue when nothing waits there, which saves two copies.
    /// A failure is found again when what is left is written.
    fn write_directly(&mut self, bytes: &[u8]) -> usize {
        let (Target::Pipe(source) | Target::Terminal(source)) = &self.target else {
            return 0;
        };
        if !self.waiting.is_empty() {
            return 0;
        }
        let written = rustix::io::write(source, bytes).unwrap_or(0);
        self.last = match written.checked_sub(1).and_then(|at| bytes.get(at)) {
            Some(last) => *last,
            None => self.last,
        };
        written
    }

    /// Writes what waits; `total` bytes were written already.
    fn write_waiting(&mut self, mut total: usize) -> Written {
        let mut written = Written::default();
        let (Target::Pipe(source) | Target::Terminal(source)) = &self.target else {
            return written;
        };
        while !self.waiting.is_empty() {
            match rustix::io::write(source, self.waiting.as_slices().0) {
                Ok(length) => {
                    total += length;
                    self.last = self
                        .waiting
                        .drain(..length)
                        .next_back()
                        .unwrap_or(self.last);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => {
                    written.closed = true;
                    break;
                }
            }
        }
        written.grant = self.credit.consume(total);
        if written.closed {
            self.close();
        } else if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
            if self.ended {
                self.finish();
            }
        }
        written
    }

    /// The other side is gone. True when that is news for the host.
    pub(super) fn hang_up(&mut self) -> bool {
        let connected = matches!(self.target, Target::Pipe(_) | Target::Terminal(_));
        self.close();
        connected && !self.ended
    }

    /// Gives up what waits.
    pub(super) fn close(&mut self) {
        self.target = Target::Closed;
        self.waiting = VecDeque::new();
    }

    /// Sets what to be woken for.
    pub(super) fn watch(&mut self) -> std::io::Result<()> {
        let interest = match self.waiting.is_empty() {
            true => Interest::Hangup,
            false => Interest::Write,
        };
        match &mut self.target {
            Target::Pipe(source) | Target::Terminal(source) => source.set_interest(Some(interest)),
            Target::NotYet | Target::Closed => Ok(()),
        }
    }

    /// Everything was written: a pipe is closed, and on a terminal, which has
    /// no end, its end-of-file character is typed.
    fn finish(&mut self) {
        if let Target::Terminal(terminal) = &self.target {
            let typed = end_of_file(terminal, self.last);
            // Nothing is lost if there is no room: the program has not read
            // what came before either, and whoever waits can send a signal.
            let _ = rustix::io::write(terminal, &typed);
            self.ended = false;
            self.last = b'\n';
        } else {
            self.close();
        }
    }
}

/// What to type for the end of input: nothing while the program reads single
/// keys. In the middle of a line the first one only hands the line over.
fn end_of_file(terminal: impl AsFd, last: u8) -> Vec<u8> {
    let Ok(settings) = rustix::termios::tcgetattr(terminal) else {
        return Vec::new();
    };
    if !settings.local_modes.contains(LocalModes::ICANON) {
        return Vec::new();
    }
    let key = settings.special_codes[SpecialCodeIndex::VEOF];
    vec![key; if last == b'\n' { 1 } else { 2 }]
}

#[cfg(test)]
mod tests {
    use stockade_wire::limits::STREAM_CREDIT;

    use super::*;
    use crate::poller::Poller;

    fn connected() -> (Stdin, std::os::fd::OwnedFd, Poller) {
        let poller = Poller::new().unwrap();
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let mut stdin = Stdin::new(true);
        stdin.connect_pipe(poller.source(write, 0));
        (stdin, read, poller)
    }

    #[test]
    fn what_came_before_the_start_is_written_after_it() {
        let mut stdin = Stdin::new(true);
        stdin.receive(b"early").unwrap();
        stdin.end();
        assert_eq!(stdin.held(), 5);
        let poller = Poller::new().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        stdin.connect_pipe(poller.source(write, 0));
        stdin.write();
        let mut buffer = [0; 10];
        assert_eq!(rustix::io::read(&read, &mut buffer), Ok(5));
        assert_eq!(rustix::io::read(&read, &mut buffer), Ok(0));
    }

    #[test]
    fn a_program_that_does_not_read_holds_at_most_one_window() {
        let (mut stdin, _read, _poller) = connected();
        let mut granted = STREAM_CREDIT as usize;
        while granted > 0 {
            let piece = vec![0; granted.min(1000)];
            granted -= piece.len();
            let written = stdin.receive(&piece).unwrap();
            granted += written.grant.unwrap_or(0) as usize;
        }
        assert!(stdin.held() <= STREAM_CREDIT as usize);
        assert!(stdin.receive(b"x").is_err());
    }

    #[test]
    fn a_reader_that_is_gone_is_told_once_and_what_follows_is_dropped() {
        let (mut stdin, read, _poller) = connected();
        drop(read);
        assert!(stdin.receive(b"x").unwrap().closed);
        assert_eq!(stdin.receive(b"y"), Ok(Written::default()));
        assert!(!stdin.hang_up());
        assert_eq!(stdin.held(), 0);
    }
}
