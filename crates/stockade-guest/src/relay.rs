//! `guest attach`: carries bytes between an engine's exec stream and PID 1.
//!
//! It knows nothing of frames. Guest code can kill or stop it, which loses
//! nothing: commands live in PID 1, and the host attaches again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};

use crate::reach;
use crate::server::Door;

/// What may be under way in each direction, in bytes. As much as a pipe of an
/// engine and the socket take together, so that neither waits for us.
const BUFFER: usize = 256 * 1024;

/// Carries bytes until either side ends.
///
/// # Errors
///
/// A sentence on why PID 1 cannot be reached.
pub(crate) fn attach(wait: Duration) -> Result<(), String> {
    let socket = reach::connect(Door::Hosts, wait)?;
    // A stream that breaks is its end; the host knows how to go on.
    let _ = carry(socket.as_fd());
    Ok(())
}

fn carry(socket: BorrowedFd<'_>) -> io::Result<()> {
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    for fd in [stdin, stdout, socket] {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    let mut inward = Flow::new();
    let mut outward = Flow::new();
    let mut said_end = false;
    while !outward.is_over() {
        wait(socket, &inward, &outward)?;
        inward.fill(stdin);
        inward.empty(|bytes| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL))?;
        outward.fill(socket);
        outward.empty(|bytes| rustix::io::write(stdout, bytes))?;
        if inward.is_over() && !said_end {
            said_end = true;
            rustix::net::shutdown(socket, Shutdown::Write)?;
        }
    }
    Ok(())
}

/// Waits until something can be done.
fn wait(socket: BorrowedFd<'_>, inward: &Flow, outward: &Flow) -> io::Result<()> {
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let when = |wanted: bool, flags: PollFlags| match wanted {
        true => flags,
        false => PollFlags::empty(),
    };
    let of_socket =
        when(inward.has_bytes(), PollFlags::OUT) | when(outward.has_room(), PollFlags::IN);
    let mut watched = vec![PollFd::from_borrowed_fd(
        stdout,
        when(outward.has_bytes(), PollFlags::OUT),
    )];
    if inward.has_room() {
        watched.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
    }
    // A hang-up is told whether it is asked for or not, and must not wake us
    // while there is no room to take what came before it.
    if !of_socket.is_empty() {
        watched.push(PollFd::from_borrowed_fd(socket, of_socket));
    }
    match poll(&mut watched, None) {
        Err(Errno::INTR) => return Ok(()),
        result => result?,
    };
    // Nobody reads any more: there is nobody to carry anything to.
    let gone = PollFlags::ERR | PollFlags::NVAL;
    match watched.first() {
        Some(stdout) if stdout.revents().intersects(gone) => Err(io::ErrorKind::BrokenPipe.into()),
        _ => Ok(()),
    }
}

/// One direction.
struct Flow {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No more will come.
    ended: bool,
}

impl Flow {
    fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            ended: false,
        }
    }

    fn has_room(&self) -> bool {
        !self.ended && self.end < self.buffer.len()
    }

    fn has_bytes(&self) -> bool {
        self.start < self.end
    }

    /// Everything was carried, and no more will come.
    fn is_over(&self) -> bool {
        self.ended && !self.has_bytes()
    }

    fn fill(&mut self, from: impl AsFd) {
        let Some(room) = self
            .buffer
            .get_mut(self.end..)
            .filter(|room| !room.is_empty())
        else {
            return;
        };
        if self.ended {
            return;
        }
        match rustix::io::read(from, room) {
            Ok(0) => self.ended = true,
            Ok(read) => self.end += read,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.ended = true,
        }
    }

    fn empty(
        &mut self,
        mut into: impl FnMut(&[u8]) -> rustix::io::Result<usize>,
    ) -> io::Result<()> {
        while let Some(bytes) = self
            .buffer
            .get(self.start..self.end)
            .filter(|bytes| !bytes.is_empty())
        {
            match into(bytes) {
                Ok(written) => self.start += written,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.start = 0;
        self.end = 0;
        Ok(())
    }
}
