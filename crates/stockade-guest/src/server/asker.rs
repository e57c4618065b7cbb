//! Somebody who asks one thing and goes.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use stockade_wire::inquiry::Inquiry;
use stockade_wire::limits::FRAME_PAYLOAD;
use stockade_wire::{Decoder, Kind, message};

use super::outbound::Outbound;
use crate::poller::{Interest, Source};

/// How many may ask at a time; others wait to be let in.
pub(super) const ASKERS: usize = 4;

/// How long an asker may take to ask, and again to take the answer and end.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// One process that asks. It is no host: nothing that it does counts as use.
#[derive(Debug)]
pub(super) struct Asker {
    source: Source,
    decoder: Decoder,
    out: Outbound,
    until: Instant,
    answered: bool,
}

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    Asked(Inquiry),
    /// It is gone, or asks nothing that can be answered.
    End,
}

impl Asker {
    pub(super) fn new(source: Source, now: Instant) -> Self {
        Self {
            source,
            decoder: Decoder::new(),
            out: Outbound::new(),
            until: now + PATIENCE,
            answered: false,
        }
    }

    /// Reads once, by way of `space`.
    pub(super) fn hear(&mut self, space: &mut [u8]) -> Heard {
        let length = match rustix::net::recv(&self.source, &mut *space, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Heard::End,
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR | Errno::NOMEM) => return Heard::Nothing,
            Err(_) => return Heard::End,
        };
        // One question is one question.
        if self.answered {
            return Heard::End;
        }
        let bytes = space.get(..length).unwrap_or_default();
        self.decoder.buffer().extend_from_slice(bytes);
        match self.decoder.next_frame() {
            Ok(None) => Heard::Nothing,
            Ok(Some(frame)) if frame.kind == Kind::Inquiry => {
                let asked = message::from_payload(frame.kind, &frame.payload);
                asked.map_or(Heard::End, Heard::Asked)
            }
            Ok(Some(_)) | Err(_) => Heard::End,
        }
    }

    /// Answers, after which only the end of the asker is waited for.
    pub(super) fn answer(&mut self, answer: &[u8], now: Instant) {
        let mut parts = answer.chunks(FRAME_PAYLOAD).peekable();
        while let Some(part) = parts.next() {
            let kind = match parts.peek() {
                Some(_) => Kind::AnswerMore,
                None => Kind::Answer,
            };
            self.out.frame(kind, 0, part);
        }
        self.answered = true;
        self.until = now + PATIENCE;
    }

    /// Sends what can be sent. False when it is gone.
    pub(super) fn flush(&mut self) -> bool {
        self.out.is_empty() || self.out.send(&self.source).is_ok()
    }

    /// Sets what to be woken for.
    pub(super) fn watch(&mut self) -> std::io::Result<()> {
        let interest = Interest::in_either(true, !self.out.is_empty());
        self.source.set_interest(interest)
    }

    /// When it has taken too long.
    pub(super) fn deadline(&self) -> Instant {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use proptest::prelude::*;

    use super::*;
    use crate::clock;
    use crate::poller::Poller;

    /// An asker, the other end, and when it was let in.
    fn asker() -> (Asker, OwnedFd, Instant) {
        let family = rustix::net::AddressFamily::UNIX;
        let kind = rustix::net::SocketType::STREAM;
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let (ours, theirs) = rustix::net::socketpair(family, kind, flags, None).unwrap();
        let now = clock::now();
        let source = Poller::new().unwrap().source(ours, 0);
        (Asker::new(source, now), theirs, now)
    }

    fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        stockade_wire::encode(kind, 0, payload, &mut frame);
        frame
    }

    #[test]
    fn one_question_is_heard_however_it_is_cut_and_no_second() {
        let (mut asker, other, _) = asker();
        let frame = frame(Kind::Inquiry, br#"{"retire":{"idle_for_ms":5}}"#);
        let mut space = [0; 1000];
        for byte in frame.split_last().unwrap().1 {
            assert_eq!(asker.hear(&mut space), Heard::Nothing);
            rustix::io::write(&other, &[*byte]).unwrap();
            assert_eq!(asker.hear(&mut space), Heard::Nothing);
        }
        rustix::io::write(&other, &frame[frame.len() - 1..]).unwrap();
        let inquiry = Inquiry::Retire { idle_for_ms: 5 };
        assert_eq!(asker.hear(&mut space), Heard::Asked(inquiry));
        asker.answer(b"{}", clock::now());
        rustix::io::write(&other, &frame).unwrap();
        assert_eq!(asker.hear(&mut space), Heard::End);
    }

    #[test]
    fn a_host_or_a_question_that_nobody_knows_is_turned_away() {
        for bytes in [
            frame(Kind::Welcome, br#"{"protocol":1}"#),
            frame(Kind::Inquiry, br#"{"sing":{}}"#),
            frame(Kind::Inquiry, b""),
            vec![0xee; 20],
        ] {
            let (mut asker, other, _) = asker();
            rustix::io::write(&other, &bytes).unwrap();
            assert_eq!(asker.hear(&mut [0; 1000]), Heard::End);
        }
    }

    #[test]
    fn a_long_answer_comes_in_frames_and_puts_the_end_off() {
        let (mut asker, other, start) = asker();
        assert_eq!(asker.deadline(), start + PATIENCE);
        let later = start + PATIENCE / 2;
        let answer = vec![b'x'; 2 * FRAME_PAYLOAD + 1];
        asker.answer(&answer, later);
        assert_eq!(asker.deadline(), later + PATIENCE);
        let (mut decoder, mut found, mut kinds) = (Decoder::new(), Vec::new(), Vec::new());
        let mut buffer = vec![0; FRAME_PAYLOAD];
        while asker.flush() && found.len() < answer.len() {
            while let Ok(read @ 1..) = rustix::io::read(&other, &mut buffer) {
                decoder.buffer().extend_from_slice(&buffer[..read]);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    kinds.push(frame.kind);
                    found.extend_from_slice(&frame.payload);
                }
            }
        }
        assert_eq!(found, answer);
        assert_eq!(kinds, [Kind::AnswerMore, Kind::AnswerMore, Kind::Answer]);
    }

    proptest! {
        #[test]
        fn whatever_is_said_is_a_question_or_the_end(bytes in proptest::collection::vec(any::<u8>(), 1..200), kind in 0_u8..12) {
            let (mut asker, other, _) = asker();
            let mut said = vec![kind, 0, 0, 0, 0, u8::try_from(bytes.len()).unwrap(), 0, 0, 0];
            said.extend_from_slice(&bytes);
            rustix::io::write(&other, &said).unwrap();
            let heard = asker.hear(&mut [0; 1000]);
            let expected = match serde_json::from_slice(&bytes) {
                Ok(inquiry) if kind == Kind::Inquiry as u8 => Heard::Asked(inquiry),
                _ => Heard::End,
            };
            prop_assert_eq!(heard, expected);
        }
    }
}
