//! What the worker hears and says: frames inside its own standard streams.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use serde::de::DeserializeOwned;
use stockade_wire::files::{Answer, BATCH};
use stockade_wire::frame::{HEADER, encode, encode_header};
use stockade_wire::limits::FRAME_PAYLOAD;
use stockade_wire::{Decoder, Frame, Kind, message};

/// How much is heard at a time, in bytes: a whole frame, mostly.
const CHUNK: usize = 2 * (HEADER + FRAME_PAYLOAD);

/// Answers that are held back while more are on their way, in bytes.
const HELD: usize = 16 * 1024;

/// The two ends.
#[derive(Debug)]
pub(super) struct Channel<'s> {
    from: BorrowedFd<'s>,
    to: BorrowedFd<'s>,
    decoder: Decoder,
    heard: Vec<u8>,
    held: Vec<u8>,
}

/// The host is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// It hung up before everything was said.
    End,
    /// It said what does not belong here.
    Protocol,
    /// The data that it sent with an item is not as long as it said.
    WrongSize {
        item: u32,
        expected: u64,
        received: u64,
    },
    /// A stream cannot be used.
    Stream(Errno),
}

/// The data that comes with an item.
pub(super) struct Incoming<'a, 's> {
    channel: &'a mut Channel<'s>,
    item: u32,
    expected: u64,
    received: u64,
}

impl<'s> Channel<'s> {
    pub(super) fn new(from: BorrowedFd<'s>, to: BorrowedFd<'s>) -> Self {
        Self {
            from,
            to,
            decoder: Decoder::new(),
            heard: vec![0; CHUNK],
            held: Vec::with_capacity(HELD + FRAME_PAYLOAD),
        }
    }

    /// The next request, which must be about that item.
    pub(super) fn request<T: DeserializeOwned>(&mut self, item: u32) -> Result<T, Broken> {
        let frame = self.next_frame()?;
        if frame.kind != Kind::FileRequest || frame.run != item {
            return Err(Broken::Protocol);
        }
        message::from_payload(frame.kind, &frame.payload).map_err(|_| Broken::Protocol)
    }

    /// The data of an item that was just requested.
    pub(super) fn data(&mut self, item: u32, expected: u64) -> Incoming<'_, 's> {
        Incoming {
            channel: self,
            item,
            expected,
            received: 0,
        }
    }

    pub(super) fn answer(&mut self, item: u32, answer: &Answer) -> Result<(), Broken> {
        let payload = message::to_payload(Kind::FileAnswer, answer);
        let payload = payload.map_err(|_| Broken::Protocol)?;
        encode(Kind::FileAnswer, item, &payload, &mut self.held);
        if self.held.len() >= HELD || item == BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends a frame of data whose payload is in place behind a gap of
    /// [`HEADER`] bytes.
    pub(super) fn send_data(&mut self, item: u32, framed: &mut [u8]) -> Result<(), Broken> {
        self.flush()?;
        let length = framed.len().saturating_sub(HEADER);
        if let Some(mut header) = framed.get_mut(..HEADER) {
            encode_header(Kind::FileData, item, length, &mut header);
        }
        write_all(self.to, framed).map_err(Broken::Stream)
    }

    pub(super) fn flush(&mut self) -> Result<(), Broken> {
        let sent = write_all(self.to, &self.held).map_err(Broken::Stream);
        self.held.clear();
        sent
    }

    fn next_frame(&mut self) -> Result<Frame, Broken> {
        loop {
            let frame = self.decoder.next_frame().map_err(|_| Broken::Protocol)?;
            if let Some(frame) = frame {
                return Ok(frame);
            }
            // The host may wait for what is held back before it goes on.
            self.flush()?;
            match rustix::io::read(self.from, self.heard.as_mut_slice()) {
                Ok(0) => return Err(Broken::End),
                Ok(length) => {
                    let heard = self.heard.get(..length).unwrap_or_default();
                    self.decoder.buffer().extend_from_slice(heard);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Broken::Stream(errno)),
            }
        }
    }
}

impl Incoming<'_, '_> {
    /// The next piece, which is never empty; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Broken> {
        if self.received == self.expected {
            return Ok(None);
        }
        let frame = self.channel.next_frame()?;
        let belongs = frame.kind == Kind::FileData && frame.run == self.item;
        if belongs && frame.payload.is_empty() {
            return Err(Broken::Protocol);
        }
        if belongs {
            self.received += frame.payload.len() as u64;
        }
        if !belongs || self.received > self.expected {
            return Err(Broken::WrongSize {
                item: self.item,
                expected: self.expected,
                received: self.received,
            });
        }
        Ok(Some(frame))
    }

    /// Passes over what is left of it.
    pub(super) fn skip(&mut self) -> Result<(), Broken> {
        while self.next()?.is_some() {}
        Ok(())
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::End => f.write_str("the input ended within a batch"),
            Self::Protocol => f.write_str("the input is no batch of file operations"),
            Self::WrongSize {
                item,
                expected,
                received,
            } => write!(
                f,
                "item {item} came with {received} bytes of data instead of {expected}"
            ),
            Self::Stream(errno) => write!(f, "a standard stream cannot be used: {errno}"),
        }
    }
}

/// Writes everything to a descriptor that blocks.
pub(super) fn write_all(to: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
