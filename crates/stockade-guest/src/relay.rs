//! `guest attach`: carries bytes between an engine's exec stream and PID 1.
//!
//! It knows nothing of frames. Guest code can kill or stop it, which loses
//! nothing: commands live in PID 1, and the host attaches again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::clock::now;
use crate::server;

/// What may be under way in each direction, in bytes. As much as a pipe of an
/// engine and the socket take together, so that neither waits for us.
const BUFFER: usize = 256 * 1024;

/// Pauses between attempts to reach a PID 1 that is not listening yet.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Carries bytes until either side ends.
///
/// # Errors
///
/// A sentence on why PID 1 cannot be reached.
pub(crate) fn attach(wait: Duration) -> Result<(), String> {
    let socket = connect(wait).map_err(|error| {
        format!("the guest runtime cannot be reached: {error}; is it the sandbox's first process?")
    })?;
    // A stream that breaks is its end; the host knows how to go on.
    let _ = carry(socket.as_fd());
    Ok(())
}

fn connect(wait: Duration) -> io::Result<OwnedFd> {
    let address = server::address()?;
    let start = now();
    let mut pause = SHORTEST_PAUSE;
    loop {
        let left = wait.saturating_sub(now().duration_since(start));
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Bounds the wait for a place when the listener's queue is full.
        set_socket_timeout(&socket, Timeout::Send, Some(left.max(SHORTEST_PAUSE)))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return checked(socket),
            Err(Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR) if !left.is_zero() => {}
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Only PID 1 can have bound the name before guest code ran, and it never
/// lets go of it; this makes sure.
fn checked(socket: OwnedFd) -> io::Result<OwnedFd> {
    if socket_peercred(&socket)?.pid != Pid::INIT {
        return Err(io::Error::other("another process listens in its place"));
    }
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

fn carry(socket: BorrowedFd<'_>) -> io::Result<()> {
    let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    for fd in [stdin, stdout] {
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
