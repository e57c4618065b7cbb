//! Where relays come in.
//!
//! Any process of the sandbox can connect to an abstract socket. Only those
//! whose parent is outside the pid namespace are let in: the engine's own
//! `docker exec`s, one of which is the relay, and others of which ask. Guest code cannot get there. A
//! process that it starts has a parent inside, and an orphan is handed to the
//! nearest subreaper or to PID 1, inside again; only entering a pid namespace
//! from outside gives a parent of 0, and that takes privileges outside.
//!
//! What this does not tell apart: a program that an operator started with
//! `docker exec` has the same parentage, and unlike a relay it can be traced
//! by guest code of the same user. Such code could connect through it, and
//! then run commands, which it can anyway, or pose as a host that lives,
//! which the maximum age bounds, or have a sandbox retired that nobody uses.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::poller::{Interest, Poller, Source};
use crate::proc::Processes;
use crate::sys;

/// What one comes in for. Each has an abstract socket, whose name exists once
/// per network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Attaching as a host, through a relay.
    Hosts,
    /// Asking one thing.
    Inquiries,
}

/// Connects that may wait. As long as the kernel allows, so that a flood from
/// inside does not keep a relay out.
const BACKLOG: i32 = 4096;

/// How many connects are looked at before others get their turn.
const AT_A_TIME: u32 = 32;

/// How long nothing is accepted after descriptors or memory ran out.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    door: Door,
    source: Source,
    paused: Option<Instant>,
}

impl Door {
    /// The address at which PID 1 listens.
    pub(crate) fn address(self) -> io::Result<SocketAddrUnix> {
        let name: &[u8] = match self {
            Self::Hosts => b"stockade.guest",
            Self::Inquiries => b"stockade.guest.inquiries",
        };
        Ok(SocketAddrUnix::new_abstract_name(name)?)
    }

    /// Whether those who find no place wait for one, which is only good where
    /// places soon become free. A host is better told at once.
    fn lets_wait(self) -> bool {
        self == Self::Inquiries
    }
}

impl Listener {
    pub(super) fn open(door: Door, poller: &Poller, token: u64) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::bind(&socket, &door.address()?)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(Self {
            door,
            source: poller.source(socket, token),
            paused: None,
        })
    }

    /// The next relays (or askers), at most `room`. Guest code is closed at
    /// once, and so is a host without a place.
    pub(super) fn accept(
        &mut self,
        processes: &Processes,
        room: usize,
        now: Instant,
    ) -> Vec<OwnedFd> {
        let mut relays = Vec::new();
        for _ in 0..AT_A_TIME {
            if self.door.lets_wait() && relays.len() >= room {
                break;
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(&self.source, flags) {
                Ok(socket) if relays.len() < room && is_from_outside(&socket, processes) => {
                    relays.push(socket);
                }
                // Too many hosts at once, or guest code.
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    self.paused = Some(now + PAUSE);
                    break;
                }
            }
        }
        relays
    }

    /// Sets what to be woken for; nothing while `closed`.
    pub(super) fn watch(&mut self, closed: bool, now: Instant) -> io::Result<()> {
        self.paused = self.paused.filter(|until| now < *until);
        let wanted = !closed && self.paused.is_none();
        self.source.set_interest(wanted.then_some(Interest::Read))
    }

    /// When to accept again after a pause.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.paused
    }
}

fn is_from_outside(socket: &OwnedFd, processes: &Processes) -> bool {
    let Ok(credentials) = socket_peercred(socket) else {
        return false;
    };
    match processes.get(credentials.pid) {
        Ok(Some(process)) if process.parent.is_none() => {}
        _ => return false,
    }
    // Guest code could connect, end, and hope that its pid is given to a
    // relay before we look. Where the kernel can tell, the process that
    // connected must still be there, so that it was the one looked at.
    match sys::peer_process(socket.as_fd()) {
        Ok(Some(process)) => sys::has_its_pid(process.as_fd()),
        Ok(None) => true,
        Err(_) => false,
    }
}
