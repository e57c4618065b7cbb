//! What a supervisor and PID 1 say to each other, one datagram each.
//!
//! The socket pair belongs to our own two processes alone: neither can be
//! traced, and no program inherits it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use stockade_wire::message::NotStarted;

/// Largest datagram in bytes; a report is about 200.
const LARGEST: usize = 1024;

/// Supervisor to PID 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs.
    Running { pid: i32 },
    /// It never will; the last report.
    NotStarted(NotStarted),
    /// The program itself is gone.
    Ended {
        /// As of `wait(2)`.
        status: i32,
        tally: Tally,
        /// Living processes of its tree.
        left: u32,
    },
    /// The whole tree is gone, or the bound for killing it ran out; the last
    /// report.
    Finished { tally: Tally, left: u32 },
}

/// What the reaped processes of a command used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    /// Largest resident set of one process, in bytes.
    pub(crate) peak_memory: u64,
    /// One of them died of a SIGKILL that did not come from us.
    pub(crate) killed: bool,
}

/// PID 1 to supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send this signal to the program's process group.
    Signal(u8),
    /// Let what outlives the program go on.
    Detach,
    /// Kill the whole tree.
    End,
}

/// Both ends, that of PID 1 first. Only PID 1's end never blocks.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

impl Report {
    /// Tells PID 1. There is nobody else to tell about a failure, and PID 1
    /// notices a supervisor that ends without a last report.
    pub(crate) fn send(&self, to: impl AsFd) {
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = rustix::net::send(to, &text, SendFlags::NOSIGNAL);
        }
    }

    /// The next report, `None` when there is none for now. The end of the
    /// stream is [`io::ErrorKind::UnexpectedEof`].
    pub(crate) fn receive(from: impl AsFd) -> io::Result<Option<Self>> {
        let mut buffer = [0; LARGEST];
        match receive(from, &mut buffer)? {
            Some(datagram) => Ok(Some(serde_json::from_slice(datagram)?)),
            None => Ok(None),
        }
    }
}

impl Order {
    /// Tells the supervisor; one that does not listen is dealt with when it
    /// is found not to have obeyed.
    pub(crate) fn send(self, to: impl AsFd) {
        let datagram = match self {
            Self::Signal(number) => [b's', number],
            Self::Detach => [b'd', 0],
            Self::End => [b'e', 0],
        };
        let _ = rustix::net::send(to, &datagram, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// The next order, `None` when there is none for now.
    pub(crate) fn receive(from: impl AsFd) -> io::Result<Option<Self>> {
        let mut buffer = [0; LARGEST];
        Ok(match receive(from, &mut buffer)? {
            Some([b's', number]) => Some(Self::Signal(*number)),
            Some([b'd', _]) => Some(Self::Detach),
            Some([b'e', _]) => Some(Self::End),
            _ => None,
        })
    }
}

fn receive(from: impl AsFd, buffer: &mut [u8]) -> io::Result<Option<&[u8]>> {
    match rustix::net::recv(from, &mut *buffer, RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok((received, _)) => Ok(buffer.get(..received)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use stockade_wire::message::NotStartedWhy;

    use super::*;

    #[test]
    fn reports_arrive_whole_and_in_order_and_the_end_is_seen() {
        let (ours, theirs) = pair().unwrap();
        let tally = Tally {
            user_us: u64::MAX,
            system_us: u64::MAX,
            peak_memory: u64::MAX,
            killed: true,
        };
        let reports = [
            Report::Running { pid: i32::MAX },
            Report::NotStarted(NotStarted {
                why: NotStartedWhy::WorkingDirectory,
                errno: i32::MIN,
            }),
            Report::Ended {
                status: i32::MIN,
                tally,
                left: u32::MAX,
            },
            Report::Finished {
                tally,
                left: u32::MAX,
            },
        ];
        for report in &reports {
            report.send(&theirs);
        }
        drop(theirs);
        for report in reports {
            assert_eq!(Report::receive(&ours).unwrap(), Some(report));
        }
        let end = Report::receive(&ours).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn orders_arrive_and_their_absence_does_not_block() {
        let (ours, theirs) = pair().unwrap();
        assert_eq!(Order::receive(&theirs).unwrap(), None);
        for order in [Order::Signal(64), Order::Detach, Order::End] {
            order.send(&ours);
            assert_eq!(Order::receive(&theirs).unwrap(), Some(order));
        }
        assert!(Report::receive(&ours).unwrap().is_none());
    }
}
