//! Reaching PID 1 from a process that the engine started.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::clock::now;
use crate::server::Door;

/// Pauses between attempts to reach a PID 1 that is not listening yet.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Connects to PID 1, trying for as long as `wait`.
///
/// # Errors
///
/// A sentence on why it cannot be reached.
pub(crate) fn connect(door: Door, wait: Duration) -> Result<OwnedFd, String> {
    attempt(door, wait).map_err(|error| {
        format!("the guest runtime cannot be reached: {error}; is it the sandbox's first process?")
    })
}

fn attempt(door: Door, wait: Duration) -> io::Result<OwnedFd> {
    let address = door.address()?;
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
    Ok(socket)
}
