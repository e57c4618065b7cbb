//! Waiting for descriptors.
//!
//! epoll and not poll: poll refuses to look at more descriptors than
//! `RLIMIT_NOFILE` allows, and guest code of the same user can lower that
//! limit of ours at any time. An epoll descriptor that was opened before
//! keeps working.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// How many events are taken at a time.
const EVENTS: usize = 128;

/// A set of watched descriptors.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: Rc<OwnedFd>,
}

/// A descriptor of a [`Poller`]; watched until it is dropped, which also
/// closes it.
///
/// The registration is taken back before the close. Otherwise a supervisor
/// that was forked meanwhile, and still holds a copy for a moment, would keep
/// it alive and have us woken for something that we no longer know.
#[derive(Debug)]
pub(crate) struct Source {
    fd: OwnedFd,
    epoll: Rc<OwnedFd>,
    token: u64,
    interest: Option<Interest>,
}

/// What to be woken for. A source without interest is not watched at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Only that the other side is gone.
    Hangup,
    Read,
    Write,
    ReadWrite,
}

/// Something happened on a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other side is gone, or the descriptor is broken.
    pub(crate) hangup: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            epoll: Rc::new(epoll),
        })
    }

    /// Takes a descriptor, without any interest in it yet.
    pub(crate) fn source(&self, fd: OwnedFd, token: u64) -> Source {
        Source {
            fd,
            epoll: Rc::clone(&self.epoll),
            token,
            interest: None,
        }
    }

    /// Waits for events, at most for `timeout`, and puts them into `events`.
    pub(crate) fn wait(&self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        // epoll counts whole milliseconds: round up, or the time before a
        // deadline would be spent in a busy loop.
        let millis = timeout.as_micros().div_ceil(1000);
        let timeout = Timespec {
            tv_sec: i64::try_from(millis / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(millis % 1000).unwrap_or(0) * 1_000_000,
        };
        let mut buffer = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        match epoll::wait(&*self.epoll, &mut buffer, Some(&timeout)) {
            Ok((found, _)) => {
                events.extend(found.iter().map(|event| Event::from(*event)));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Source {
    /// Sets what to be woken for; costs nothing when it is as before.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory for it. The interest is then unchanged.
    pub(crate) fn set_interest(&mut self, interest: Option<Interest>) -> io::Result<()> {
        if self.interest == interest {
            return Ok(());
        }
        let data = epoll::EventData::new_u64(self.token);
        match (self.interest, interest) {
            (None, Some(wanted)) => epoll::add(&*self.epoll, &self.fd, data, wanted.flags())?,
            (Some(_), Some(wanted)) => {
                epoll::modify(&*self.epoll, &self.fd, data, wanted.flags())?;
            }
            (_, None) => epoll::delete(&*self.epoll, &self.fd)?,
        }
        self.interest = interest;
        Ok(())
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Cannot fail for a descriptor that is registered.
        let _ = self.set_interest(None);
    }
}

impl Interest {
    /// Reading, writing, both or neither.
    pub(crate) fn in_either(read: bool, write: bool) -> Option<Self> {
        match (read, write) {
            (true, true) => Some(Self::ReadWrite),
            (true, false) => Some(Self::Read),
            (false, true) => Some(Self::Write),
            (false, false) => None,
        }
    }

    fn flags(self) -> epoll::EventFlags {
        match self {
            // The kernel adds the end and errors to whatever is asked for.
            Self::Hangup => epoll::EventFlags::empty(),
            Self::Read => epoll::EventFlags::IN,
            Self::Write => epoll::EventFlags::OUT,
            Self::ReadWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        }
    }
}

impl From<epoll::Event> for Event {
    fn from(event: epoll::Event) -> Self {
        let (flags, data) = (event.flags, event.data);
        Self {
            token: data.u64(),
            readable: flags.contains(epoll::EventFlags::IN),
            writable: flags.contains(epoll::EventFlags::OUT),
            hangup: flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(poller: &Poller) -> Vec<Event> {
        let mut events = Vec::new();
        poller.wait(Duration::ZERO, &mut events).unwrap();
        events
    }

    #[test]
    fn only_what_is_of_interest_wakes() {
        let poller = Poller::new().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut read = poller.source(read, 7);
        rustix::io::write(&write, b"x").unwrap();
        assert_eq!(events(&poller), []);
        read.set_interest(Some(Interest::Read)).unwrap();
        let expected = Event {
            token: 7,
            readable: true,
            writable: false,
            hangup: false,
        };
        assert_eq!(events(&poller), [expected]);
        drop(write);
        read.set_interest(None).unwrap();
        assert_eq!(events(&poller), []);
        read.set_interest(Some(Interest::Hangup)).unwrap();
        assert!(events(&poller)[0].hangup);
    }

    #[test]
    fn a_dropped_source_is_forgotten_although_a_copy_of_it_lives() {
        let poller = Poller::new().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let copy = rustix::io::dup(&read).unwrap();
        let mut source = poller.source(read, 7);
        source.set_interest(Some(Interest::Read)).unwrap();
        drop(source);
        rustix::io::write(&write, b"x").unwrap();
        assert_eq!(events(&poller), []);
        drop(copy);
    }
}
