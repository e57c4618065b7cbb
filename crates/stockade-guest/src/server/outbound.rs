//! What waits to be sent on one connection.

use std::os::fd::AsFd;

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

/// Encoded frames, in a buffer whose bytes are written once and then used
/// again as they are: clearing them each time would cost more than the copies.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    buffer: Vec<u8>,
    /// What waits is between these two.
    start: usize,
    end: usize,
}

impl Outbound {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes of program output may be added now.
    pub(super) fn room(&self) -> usize {
        let room = ROOM.saturating_sub(self.len());
        if room < PIECE { 0 } else { room }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= FULL
    }

    /// Adds a frame.
    pub(super) fn frame(&mut self, kind: Kind, run: u32, payload: &[u8]) {
        let length = HEADER + payload.len();
        encode(kind, run, payload, &mut self.space(length));
        self.end += length;
    }

    /// Adds a frame with what one read gives, at most `most` bytes. Nothing is
    /// added when that is nothing. Answers how many bytes were read.
    pub(super) fn frame_from(
        &mut self,
        from: impl AsFd,
        most: usize,
        kind: Kind,
        run: u32,
    ) -> rustix::io::Result<usize> {
        let space = self.space(HEADER + most.min(FRAME_PAYLOAD));
        let (mut header, payload) = space.split_at_mut(HEADER);
        let read = rustix::io::read(from, payload)?;
        if read > 0 {
            frame::encode_header(kind, run, read, &mut header);
            self.end += HEADER + read;
        }
        Ok(read)
    }

    /// Sends as much as the socket takes.
    ///
    /// # Errors
    ///
    /// When the other side is gone.
    pub(super) fn send(&mut self, to: impl AsFd) -> rustix::io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while let Some(waiting) = self.buffer.get(self.start..self.end)
            && !waiting.is_empty()
        {
            match rustix::net::send(&to, waiting, flags) {
                Ok(sent) => self.start += sent,
                // No buffers is the kernel's want of memory, which passes.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.start = 0;
        self.end = 0;
        Ok(())
    }

    /// Space of that length behind what waits, which is moved to the front
    /// before the buffer grows.
    fn space(&mut self, length: usize) -> &mut [u8] {
        if self.end + length > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let needed = self.end + length;
        if needed > self.buffer.len() {
            self.buffer.resize(needed.next_multiple_of(PIECE), 0);
        }
        let (_, space) = self.buffer.split_at_mut(self.end);
        let (space, _) = space.split_at_mut(length);
        space
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
        decoder
            .buffer()
            .extend_from_slice(&out.buffer[out.start..out.end]);
        for expected in [&b"hell"[..], b"o"] {
            let frame = decoder.next_frame().unwrap().unwrap();
            assert_eq!((frame.kind, frame.run), (Kind::Stdout, 3));
            assert_eq!(frame.payload, expected);
        }
        assert_eq!(decoder.next_frame(), Ok(None));
    }

    #[test]
    fn a_receiver_that_takes_little_at_a_time_does_not_make_the_buffer_grow() {
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let family = rustix::net::AddressFamily::UNIX;
        let kind = rustix::net::SocketType::STREAM;
        let (ours, theirs) = rustix::net::socketpair(family, kind, flags, None).unwrap();
        let mut out = Outbound::new();
        let mut taken = vec![0; 30_000];
        for _ in 0..500 {
            while out.room() > 0 {
                let most = out.room().min(FRAME_PAYLOAD);
                out.frame(Kind::Stdout, 1, &vec![0; most]);
            }
            out.send(&ours).unwrap();
            rustix::io::read(&theirs, &mut taken).unwrap();
        }
        assert!(out.buffer.capacity() <= 2 * FULL);
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
