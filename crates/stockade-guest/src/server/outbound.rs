//! What waits to be sent on one connection.

use std::os::fd::AsFd;

use bytes::{Buf as _, BytesMut};
use rustix::io::Errno;
use rustix::net::SendFlags;
use stockade_wire::frame::{self, HEADER};
use stockade_wire::limits::FRAME_PAYLOAD;
use stockade_wire::{Kind, encode};

/// Program output is only taken while less than this waits, in bytes.
const ROOM: usize = 256 * 1024;

/// With more than this waiting, in bytes, nothing more is read from the host
/// either: whatever it asks has an answer, which must go somewhere.
const FULL: usize = ROOM + 64 * 1024;

/// Program output is taken in pieces of at least this size, in bytes, unless
/// there is no more: many small pieces would only fill the rest of the room.
const PIECE: usize = 4 * 1024;

/// Encoded frames.
#[derive(Debug)]
pub(crate) struct Outbound {
    bytes: BytesMut,
}

impl Outbound {
    pub(crate) fn new() -> Self {
        Self {
            bytes: BytesMut::with_capacity(FULL),
        }
    }

    /// How many bytes of program output may be added now.
    pub(crate) fn room(&self) -> usize {
        let room = ROOM.saturating_sub(self.bytes.len());
        if room < PIECE { 0 } else { room }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a frame.
    pub(crate) fn frame(&mut self, kind: Kind, run: u32, payload: &[u8]) {
        encode(kind, run, payload, &mut self.bytes);
    }

    /// Adds a frame with what one read gives, at most `most` bytes. Nothing is
    /// added when that is nothing. Answers how many bytes were read.
    pub(crate) fn frame_from(
        &mut self,
        from: impl AsFd,
        most: usize,
        kind: Kind,
        run: u32,
    ) -> rustix::io::Result<usize> {
        let before = self.bytes.len();
        self.bytes
            .resize(before + HEADER + most.min(FRAME_PAYLOAD), 0);
        let (_, added) = self.bytes.split_at_mut(before);
        let (mut header, payload) = added.split_at_mut(HEADER);
        let read = rustix::io::read(from, payload);
        let length = read.unwrap_or(0);
        if length == 0 {
            self.bytes.truncate(before);
        } else {
            frame::encode_header(kind, run, length, &mut header);
            self.bytes.truncate(before + HEADER + length);
        }
        read
    }

    /// Sends as much as the socket takes.
    ///
    /// # Errors
    ///
    /// When the other side is gone.
    pub(crate) fn send(&mut self, to: impl AsFd) -> rustix::io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while !self.bytes.is_empty() {
            match rustix::net::send(&to, &self.bytes, flags) {
                Ok(sent) => self.bytes.advance(sent),
                // No buffers is the kernel's want of memory, which passes.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        // What was sent is in front of what comes: start over, so that the
        // buffer never grows.
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use stockade_wire::Decoder;

    use super::*;

    #[test]
    fn what_a_pipe_holds_becomes_one_frame_and_nothing_becomes_none() {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let mut out = Outbound::new();
        let again = out.frame_from(&read, 100, Kind::Stdout, 3);
        assert_eq!(again, Err(Errno::AGAIN));
        rustix::io::write(&write, b"hello").unwrap();
        assert_eq!(out.frame_from(&read, 4, Kind::Stdout, 3), Ok(4));
        drop(write);
        assert_eq!(out.frame_from(&read, 100, Kind::Stdout, 3), Ok(1));
        assert_eq!(out.frame_from(&read, 100, Kind::Stdout, 3), Ok(0));
        let mut decoder = Decoder::new();
        decoder.buffer().extend_from_slice(&out.bytes);
        for expected in [&b"hell"[..], b"o"] {
            let frame = decoder.next_frame().unwrap().unwrap();
            assert_eq!((frame.kind, frame.run), (Kind::Stdout, 3));
            assert_eq!(frame.payload, expected);
        }
        assert_eq!(decoder.next_frame(), Ok(None));
    }

    #[test]
    fn room_ends_before_the_buffer_is_full() {
        let mut out = Outbound::new();
        while out.room() > 0 {
            let most = out.room().min(FRAME_PAYLOAD);
            out.frame(Kind::Stdout, 1, &vec![0; most]);
        }
        assert!(!out.is_full());
    }
}
