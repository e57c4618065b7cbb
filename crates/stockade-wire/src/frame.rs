//! The frame codec.
//!
//! ```text
//! kind: u8 | run: u32 | length: u32 | payload: length bytes      (little endian)
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::limits::FRAME_PAYLOAD;

/// Bytes before the payload.
pub const HEADER: usize = 9;

/// One frame as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a frame has exactly these parts")]
pub struct Frame {
    /// What the payload is.
    pub kind: Kind,
    /// The run it belongs to; 0 is the connection.
    pub run: u32,
    /// At most [`FRAME_PAYLOAD`] bytes.
    pub payload: Bytes,
}

/// What a frame carries, and who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// Guest, first frame: [`crate::message::Hello`] as JSON.
    Hello = 0x01,
    /// Host, answer to hello: [`crate::message::Welcome`] as JSON.
    Welcome = 0x02,
    /// Either: a sign of life; the payload (at most 16 bytes) comes back as a pong.
    Ping = 0x03,
    /// Either: the answer to a ping, with its payload.
    Pong = 0x04,
    /// Host: kill every process of the sandbox but PID 1 and the relays.
    KillAll = 0x05,
    /// Guest, answer: [`crate::message::KilledAll`] as JSON.
    KilledAll = 0x06,
    /// Guest, last frame: [`crate::message::Goodbye`] as JSON.
    Goodbye = 0x07,
    /// Asker, the only frame of its stream: [`crate::inquiry::Inquiry`] as
    /// JSON. Not of the channel: see [`crate::inquiry`].
    Inquiry = 0x08,
    /// Guest: a part of an answer that does not fit in one frame.
    AnswerMore = 0x09,
    /// Guest, last frame: the (rest of the) [`crate::inquiry::Activity`] or
    /// [`crate::inquiry::Retired`] as JSON.
    Answer = 0x0a,

    /// Host: a part of a start request that does not fit in one frame.
    StartMore = 0x10,
    /// Host: the (rest of the) [`crate::message::Start`] as JSON.
    Start = 0x11,
    /// Guest: [`crate::message::Started`] as JSON.
    Started = 0x12,
    /// Host: standard input, raw.
    Stdin = 0x13,
    /// Host: standard input ends. Empty.
    StdinEnd = 0x14,
    /// Guest: nobody reads standard input any more; the host may stop. Empty.
    StdinClosed = 0x15,
    /// Guest: standard output (or the terminal), raw.
    Stdout = 0x16,
    /// Guest: standard error, raw.
    Stderr = 0x17,
    /// Guest: no more output will come; the run's number is free. Empty.
    OutputEnd = 0x18,
    /// Receiver of a stream: [`Grant`], 5 bytes.
    Credit = 0x19,
    /// Host: one byte, the signal number for the program's process group.
    Signal = 0x1a,
    /// Host: end the command with its whole tree; one byte, an [`EndReason`].
    End = 0x1b,
    /// Host: window size of the terminal, rows and columns, two `u16`.
    Resize = 0x1c,
    /// Host: nobody will ask for this run again; let it go on in the background. Empty.
    Detach = 0x1d,
    /// Guest: [`crate::message::Exit`] as JSON.
    Exit = 0x1e,

    /// Host, inside a file operation's standard input: [`crate::files::Batch`]
    /// or [`crate::files::Item`] as JSON.
    FileRequest = 0x30,
    /// Either, inside a file operation's standard streams: content, raw.
    FileData = 0x31,
    /// Guest, inside a file operation's standard output:
    /// [`crate::files::Answer`] as JSON.
    FileAnswer = 0x32,

    /// Reserved for tools of the host: a call.
    ToolCall = 0x40,
    /// Reserved for tools of the host: an answer.
    ToolAnswer = 0x41,
}

/// Which stream a grant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a program has exactly these three streams"
)]
#[repr(u8)]
pub enum StreamName {
    /// Standard input.
    Stdin = 0,
    /// Standard output.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

/// The payload of [`Kind::Credit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a grant has exactly these parts")]
pub struct Grant {
    /// The stream.
    pub stream: StreamName,
    /// How many more bytes its sender may send.
    pub bytes: u32,
}

/// Why the host ends a command; the payload of [`Kind::End`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum EndReason {
    /// The caller gave up.
    Cancelled = 0,
    /// The caller's bound on output was reached.
    OutputLimit = 1,
    /// The caller's clock ran out, before the guest's own did.
    TimedOut = 2,
}

/// What a peer sent is not of this protocol; the connection is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A kind that this protocol does not know.
    #[error("frame of unknown kind {0:#04x}")]
    UnknownKind(u8),
    /// A payload over [`FRAME_PAYLOAD`].
    #[error("frame of {0} bytes, more than {FRAME_PAYLOAD}")]
    TooLong(u32),
    /// A payload that does not fit its kind.
    #[error("{what} in a {kind:?} frame")]
    Payload {
        /// The frame's kind.
        kind: Kind,
        /// What is wrong with it.
        what: String,
    },
}

/// Turns received bytes into frames, holding at most one frame and a header.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    /// An empty decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where received bytes are appended; call [`Self::next_frame`] until it
    /// has no more before reading again, so that the buffer stays bounded.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next whole frame out of the buffer.
    ///
    /// # Errors
    ///
    /// [`FrameError`] when the peer does not speak this protocol. The decoder
    /// must not be used after that.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(mut header) = self.buffer.get(..HEADER) else {
            return Ok(None);
        };
        let kind = header.get_u8();
        let kind = Kind::from_byte(kind).ok_or(FrameError::UnknownKind(kind))?;
        let run = header.get_u32_le();
        let length = header.get_u32_le();
        if length as usize > FRAME_PAYLOAD {
            return Err(FrameError::TooLong(length));
        }
        let total = HEADER + length as usize;
        if self.buffer.len() < total {
            self.buffer.reserve(total - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(HEADER);
        let payload = self.buffer.split_to(length as usize).freeze();
        Ok(Some(Frame { kind, run, payload }))
    }
}

/// Appends one frame.
///
/// # Panics
///
/// When the payload is longer than [`FRAME_PAYLOAD`]: callers split first.
pub fn encode(kind: Kind, run: u32, payload: &[u8], into: &mut impl BufMut) {
    assert!(
        payload.len() <= FRAME_PAYLOAD,
        "a payload must fit in one frame"
    );
    encode_header(kind, run, payload.len(), into);
    into.put_slice(payload);
}

/// Appends only the header of a frame whose payload is written separately,
/// which saves a copy of program output.
///
/// # Panics
///
/// When `length` is more than [`FRAME_PAYLOAD`].
pub fn encode_header(kind: Kind, run: u32, length: usize, into: &mut impl BufMut) {
    assert!(length <= FRAME_PAYLOAD, "a payload must fit in one frame");
    into.put_u8(kind as u8);
    into.put_u32_le(run);
    into.put_u32_le(u32::try_from(length).unwrap_or(u32::MAX));
}

impl Kind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 30] = [
        Self::Hello,
        Self::Welcome,
        Self::Ping,
        Self::Pong,
        Self::KillAll,
        Self::KilledAll,
        Self::Goodbye,
        Self::Inquiry,
        Self::AnswerMore,
        Self::Answer,
        Self::StartMore,
        Self::Start,
        Self::Started,
        Self::Stdin,
        Self::StdinEnd,
        Self::StdinClosed,
        Self::Stdout,
        Self::Stderr,
        Self::OutputEnd,
        Self::Credit,
        Self::Signal,
        Self::End,
        Self::Resize,
        Self::Detach,
        Self::Exit,
        Self::FileRequest,
        Self::FileData,
        Self::FileAnswer,
        Self::ToolCall,
        Self::ToolAnswer,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl Grant {
    /// The payload that carries it.
    #[must_use]
    pub fn to_payload(self) -> [u8; 5] {
        let bytes = self.bytes.to_le_bytes();
        [self.stream as u8, bytes[0], bytes[1], bytes[2], bytes[3]]
    }

    /// Reads a payload of [`Kind::Credit`].
    ///
    /// # Errors
    ///
    /// [`FrameError::Payload`] when it is not exactly a grant.
    pub fn from_payload(payload: &[u8]) -> Result<Self, FrameError> {
        let wrong = || FrameError::Payload {
            kind: Kind::Credit,
            what: "no grant".into(),
        };
        let [stream, bytes @ ..] = payload else {
            return Err(wrong());
        };
        let stream = match stream {
            0 => StreamName::Stdin,
            1 => StreamName::Stdout,
            2 => StreamName::Stderr,
            _ => return Err(wrong()),
        };
        let bytes = u32::from_le_bytes(bytes.try_into().map_err(|_| wrong())?);
        Ok(Self { stream, bytes })
    }
}

impl EndReason {
    /// Reads a payload of [`Kind::End`].
    ///
    /// # Errors
    ///
    /// [`FrameError::Payload`] when it is not exactly a reason.
    pub fn from_payload(payload: &[u8]) -> Result<Self, FrameError> {
        match payload {
            [0] => Ok(Self::Cancelled),
            [1] => Ok(Self::OutputLimit),
            [2] => Ok(Self::TimedOut),
            _ => Err(FrameError::Payload {
                kind: Kind::End,
                what: "no reason".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let frame = (
            proptest::sample::select(Kind::ALL.to_vec()),
            any::<u32>(),
            proptest::collection::vec(any::<u8>(), 0..300),
        );
        let frame = frame.prop_map(|(kind, run, payload)| Frame {
            kind,
            run,
            payload: payload.into(),
        });
        proptest::collection::vec(frame, 0..20)
    }

    proptest! {
        #[test]
        fn frames_survive_any_cut_of_the_stream(frames in frames(), cuts in proptest::collection::vec(1_usize..40, 1..50)) {
            let mut bytes = BytesMut::new();
            for frame in &frames {
                encode(frame.kind, frame.run, &frame.payload, &mut bytes);
            }
            let mut decoder = Decoder::new();
            let mut seen = Vec::new();
            let mut cuts = cuts.iter().cycle();
            while !bytes.is_empty() {
                let cut = (*cuts.next().unwrap()).min(bytes.len());
                decoder.buffer().extend_from_slice(&bytes.split_to(cut));
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(frame);
                }
            }
            prop_assert_eq!(seen, frames);
        }

        #[test]
        fn garbage_is_refused_or_waited_for_and_never_panics(garbage in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut decoder = Decoder::new();
            decoder.buffer().extend_from_slice(&garbage);
            while let Ok(Some(frame)) = decoder.next_frame() {
                prop_assert!(frame.payload.len() <= FRAME_PAYLOAD);
            }
        }

        #[test]
        fn a_grant_survives_its_payload(bytes: u32) {
            for stream in [StreamName::Stdin, StreamName::Stdout, StreamName::Stderr] {
                let grant = Grant { stream, bytes };
                prop_assert_eq!(Grant::from_payload(&grant.to_payload()), Ok(grant));
            }
        }
    }

    #[test]
    fn a_length_over_the_bound_is_refused_before_its_body_is_held() {
        let mut decoder = Decoder::new();
        decoder.buffer().put_u8(Kind::Stdout as u8);
        decoder.buffer().put_u32_le(1);
        decoder.buffer().put_u32_le(u32::MAX);
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(u32::MAX)));
    }

    #[test]
    fn kinds_are_distinct_on_the_wire() {
        let mut bytes: Vec<u8> = Kind::ALL.iter().map(|kind| *kind as u8).collect();
        bytes.sort_unstable();
        bytes.dedup();
        assert_eq!(bytes.len(), Kind::ALL.len());
    }
}
