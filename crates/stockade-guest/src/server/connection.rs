//! One host process that is attached.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use serde::Serialize;
use stockade_wire::limits::{HEARTBEAT, SILENCE, START_REQUEST};
use stockade_wire::message::{Goodbye, NotStartedWhy};
use stockade_wire::{Decoder, Frame, FrameError, Kind, message};

use super::outbound::Outbound;
use super::{GREETING, PARTING, RunId};
use crate::poller::{Interest, Source};

/// A relay's end of the channel.
#[derive(Debug)]
pub(super) struct Connection {
    source: Source,
    decoder: Decoder,
    pub(super) out: Outbound,
    phase: Phase,
    /// A host got in, and it was not said yet that it is gone.
    attached: bool,
    heard: Instant,
    sent: Instant,
    /// The host's numbers of its runs.
    pub(super) runs: BTreeMap<u32, RunId>,
    /// Start requests of which the last frame has not come yet.
    partial: BTreeMap<u32, Partial>,
}

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The hello is sent, the welcome has not come.
    Greeting {
        since: Instant,
    },
    Open,
    /// The goodbye is on its way; nothing more is heard.
    Parting {
        since: Instant,
    },
}

/// The beginning of a start request.
#[derive(Debug)]
enum Partial {
    Growing(Vec<u8>),
    /// Nothing is kept of a request that will be refused.
    Refused(NotStartedWhy),
}

/// What one read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    Something,
    Nothing,
    /// The host is gone.
    End,
}

impl Connection {
    pub(super) fn new(source: Source, now: Instant) -> Self {
        Self {
            source,
            decoder: Decoder::new(),
            out: Outbound::new(),
            phase: Phase::Greeting { since: now },
            attached: false,
            heard: now,
            sent: now,
            runs: BTreeMap::new(),
            partial: BTreeMap::new(),
        }
    }

    /// Whether both sides have agreed on a version.
    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    pub(super) fn is_parting(&self) -> bool {
        matches!(self.phase, Phase::Parting { .. })
    }

    /// Takes note that the host chose a version.
    pub(super) fn open(&mut self) {
        self.phase = Phase::Open;
        self.attached = true;
    }

    /// Takes note that the host is gone. True when one was there.
    pub(super) fn detach(&mut self) -> bool {
        std::mem::take(&mut self.attached)
    }

    /// Says goodbye; the connection ends when the host has closed it, too.
    pub(super) fn part(&mut self, why: Goodbye, now: Instant) {
        if self.is_parting() {
            return;
        }
        self.send_json(Kind::Goodbye, 0, &why);
        self.phase = Phase::Parting { since: now };
        self.partial.clear();
    }

    /// Reads once, by way of `space`. The frames are then taken with
    /// [`Self::next_frame`].
    pub(super) fn receive(&mut self, space: &mut [u8], now: Instant) -> Received {
        match rustix::net::recv(&self.source, &mut *space, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Received::End,
            Ok((length, _)) => {
                let bytes = space.get(..length).unwrap_or_default();
                self.decoder.buffer().extend_from_slice(bytes);
                self.heard = now;
                Received::Something
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOMEM) => Received::Nothing,
            Err(_) => Received::End,
        }
    }

    /// The next whole frame; after a goodbye there are none.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.is_parting() {
            self.decoder = Decoder::new();
            return Ok(None);
        }
        self.decoder.next_frame()
    }

    pub(super) fn send_json<T: Serialize>(&mut self, kind: Kind, run: u32, message: &T) {
        // Every message of ours fits in a frame by a wide margin; the hello,
        // whose size depends on the sandbox, is checked at the start.
        if let Ok(payload) = message::to_payload(kind, message) {
            self.out.frame(kind, run, &payload);
        }
    }

    /// Adds a part of a start request. `may_grow` says whether there is room
    /// for that many more bytes of requests.
    pub(super) fn add_part(&mut self, run: u32, part: &[u8], may_grow: bool) {
        let partial = self
            .partial
            .entry(run)
            .or_insert_with(|| Partial::Growing(Vec::new()));
        if let Partial::Growing(request) = partial {
            if request.len() + part.len() > START_REQUEST {
                *partial = Partial::Refused(NotStartedWhy::TooLong);
            } else if may_grow {
                request.extend_from_slice(part);
            } else {
                *partial = Partial::Refused(NotStartedWhy::Busy);
            }
        }
    }

    /// Takes the start request whose last part was just added.
    pub(super) fn take_request(&mut self, run: u32) -> Result<Vec<u8>, NotStartedWhy> {
        match self.partial.remove(&run) {
            Some(Partial::Growing(request)) => Ok(request),
            Some(Partial::Refused(why)) => Err(why),
            None => Err(NotStartedWhy::Invalid),
        }
    }

    /// Bytes of start requests that are held.
    pub(super) fn held(&self) -> usize {
        let held = |partial: &Partial| match partial {
            Partial::Growing(request) => request.len(),
            Partial::Refused(_) => 0,
        };
        self.partial.values().map(held).sum()
    }

    /// How many start requests are incomplete.
    pub(super) fn incomplete(&self) -> usize {
        self.partial.len()
    }

    /// Sends what can be sent. False when the host is gone.
    pub(super) fn flush(&mut self, now: Instant) -> bool {
        if self.out.is_empty() {
            return true;
        }
        let result = self.out.send(&self.source);
        if self.out.is_empty() {
            self.sent = now;
            if self.is_parting() {
                // The relay then ends, and with it the connection.
                let _ = rustix::net::shutdown(&self.source, Shutdown::Write);
            }
        }
        result.is_ok()
    }

    /// Sets what to be woken for.
    pub(super) fn watch(&mut self) -> std::io::Result<()> {
        let interest = Interest::in_either(!self.out.is_full(), !self.out.is_empty());
        self.source.set_interest(interest)
    }

    /// When [`Self::expire`] is to be called next.
    pub(super) fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Greeting { since } => since + GREETING,
            Phase::Open => (self.heard + SILENCE).min(self.sent + HEARTBEAT),
            Phase::Parting { since } => since + PARTING,
        }
    }

    /// Sends a sign of life when one is due. False when the connection is to
    /// be ended: nothing was heard for too long.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        match self.phase {
            Phase::Greeting { since } => now < since + GREETING,
            Phase::Parting { since } => now < since + PARTING,
            Phase::Open => {
                if now >= self.sent + HEARTBEAT {
                    self.out.frame(Kind::Ping, 0, &[]);
                    self.sent = now;
                }
                now < self.heard + SILENCE
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.source.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::*;
    use crate::clock;
    use crate::poller::Poller;

    /// A connection, its host's end, and when it was made.
    fn connection() -> (Connection, OwnedFd, Instant) {
        let family = rustix::net::AddressFamily::UNIX;
        let kind = rustix::net::SocketType::STREAM;
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let (ours, theirs) = rustix::net::socketpair(family, kind, flags, None).unwrap();
        let now = clock::now();
        let source = Poller::new().unwrap().source(ours, 0);
        (Connection::new(source, now), theirs, now)
    }

    fn kinds(host: &OwnedFd) -> Vec<Kind> {
        let mut bytes = vec![0; 100_000];
        let read = rustix::io::read(host, &mut bytes).unwrap_or(0);
        let mut decoder = Decoder::new();
        decoder.buffer().extend_from_slice(&bytes[..read]);
        std::iter::from_fn(|| decoder.next_frame().unwrap())
            .map(|frame| frame.kind)
            .collect()
    }

    #[test]
    fn a_sign_of_life_is_sent_when_nothing_else_was() {
        let (mut connection, host, start) = connection();
        connection.open();
        assert!(connection.expire(start + HEARTBEAT - Duration::from_secs(1)));
        assert!(connection.out.is_empty());
        let due = start + HEARTBEAT;
        assert_eq!(connection.deadline(), due);
        assert!(connection.expire(due));
        assert!(connection.flush(due));
        assert_eq!(kinds(&host), [Kind::Ping]);
        assert_eq!(connection.deadline(), due + HEARTBEAT);
    }

    #[test]
    fn silence_ends_a_connection_and_anything_heard_puts_it_off() {
        let (mut connection, host, start) = connection();
        connection.open();
        assert!(connection.expire(start + SILENCE - Duration::from_secs(1)));
        assert!(!connection.expire(start + SILENCE));
        rustix::io::write(&host, b"x").unwrap();
        let later = start + Duration::from_secs(60);
        assert_eq!(connection.receive(&mut [0; 10], later), Received::Something);
        assert!(connection.expire(start + SILENCE));
        assert!(!connection.expire(later + SILENCE));
    }

    #[test]
    fn a_host_that_talks_without_a_welcome_has_no_more_time_than_a_silent_one() {
        let (mut connection, host, start) = connection();
        let later = start + GREETING / 2;
        rustix::io::write(&host, b"x").unwrap();
        assert_eq!(connection.receive(&mut [0; 10], later), Received::Something);
        assert!(connection.expire(later));
        assert!(!connection.expire(start + GREETING));
    }

    #[test]
    fn after_a_goodbye_the_stream_ends_and_nothing_is_heard() {
        let (mut connection, host, start) = connection();
        connection.open();
        connection.part(Goodbye::Idle, start);
        assert!(connection.flush(start));
        assert_eq!(kinds(&host), [Kind::Goodbye]);
        assert_eq!(rustix::io::read(&host, &mut [0; 1]), Ok(0));
        rustix::io::write(&host, &[0xff; 30]).unwrap();
        connection.receive(&mut [0; 30], start);
        assert_eq!(connection.next_frame(), Ok(None));
        assert!(!connection.expire(start + PARTING));
    }

    #[test]
    fn a_request_grows_to_the_bound_and_no_further() {
        let (mut connection, _host, _) = connection();
        let part = vec![b' '; 64 * 1024];
        for _ in 0..START_REQUEST / part.len() {
            connection.add_part(1, &part, true);
        }
        assert_eq!(connection.held(), START_REQUEST);
        connection.add_part(1, b"x", true);
        assert_eq!(connection.held(), 0);
        connection.add_part(2, b"x", false);
        connection.add_part(2, b"y", true);
        connection.add_part(3, b"x", true);
        assert_eq!(connection.take_request(1), Err(NotStartedWhy::TooLong));
        assert_eq!(connection.take_request(2), Err(NotStartedWhy::Busy));
        assert_eq!(connection.take_request(3), Ok(b"x".to_vec()));
        assert_eq!(connection.take_request(3), Err(NotStartedWhy::Invalid));
    }
}
