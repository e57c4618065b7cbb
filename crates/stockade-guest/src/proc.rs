//! Processes as `/proc` shows them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, RawDir, SeekFrom};
use rustix::process::Pid;

/// The root of a process file system, opened before any guest code runs.
#[derive(Debug)]
pub(crate) struct Processes {
    root: OwnedFd,
}

/// What is known of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// `None` when the parent is outside this pid namespace.
    pub(crate) parent: Option<Pid>,
    /// It is dead, and waits for its parent to take note.
    pub(crate) zombie: bool,
}

impl Processes {
    pub(crate) fn open() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, "/proc", flags, Mode::empty())?;
        if rustix::fs::fstatfs(&root)?.f_type != PROC_SUPER_MAGIC {
            return Err(io::Error::other("/proc is no process file system"));
        }
        Ok(Self { root })
    }

    /// The descriptor that must stay open.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.root.as_raw_fd()
    }

    /// The root itself.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// One process, `None` when it is gone.
    ///
    /// # Errors
    ///
    /// When its state cannot be read for want of descriptors or memory.
    pub(crate) fn get(&self, pid: Pid) -> io::Result<Option<Process>> {
        let path = format!("{}/stat", pid.as_raw_nonzero());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.root, path, flags, Mode::empty());
        let file = match opened {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut buffer = [0; 1024];
        match rustix::io::read(&file, &mut buffer) {
            Ok(read) => Ok(buffer.get(..read).and_then(parse_stat)),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Visits every process in the order of pids, which is the order of birth
    /// until the numbers wrap: a child that is born during the visit is still
    /// met, mostly. A process whose state cannot be read is passed over, and
    /// the error told in the end.
    pub(crate) fn each(&self, mut visit: impl FnMut(Process)) -> io::Result<()> {
        rustix::fs::seek(&self.root, SeekFrom::Start(0))?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(self.root.as_fd(), &mut buffer);
        let mut result = Ok(());
        while let Some(entry) = entries.next() {
            let Some(pid) = parse_pid(entry?.file_name().to_bytes()) else {
                continue;
            };
            match self.get(pid) {
                Ok(Some(process)) => visit(process),
                Ok(None) => {}
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

fn parse_pid(name: &[u8]) -> Option<Pid> {
    let text = std::str::from_utf8(name).ok()?;
    text.parse().ok().and_then(Pid::from_raw)
}

/// Reads `pid (name) state parent …`. The name is the guest's own choice and
/// may hold anything, parentheses and digits included; what follows the last
/// parenthesis is the kernel's.
fn parse_stat(text: &[u8]) -> Option<Process> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let pid = parse_pid(text.get(..open)?.trim_ascii())?;
    let mut fields = text
        .get(close + 1..)?
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let state = fields.next()?;
    let parent: i32 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some(Process {
        pid,
        parent: Pid::from_raw(parent),
        zombie: matches!(state, b"Z" | b"X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    #[test]
    fn a_process_is_read_with_its_parent_and_state() {
        let found = parse_stat(b"17 (sh) S 1 17 17 0 -1 4194560").unwrap();
        assert_eq!(
            found,
            Process {
                pid: pid(17),
                parent: Some(pid(1)),
                zombie: false
            }
        );
        assert!(parse_stat(b"17 (sh) Z 1 17").unwrap().zombie);
    }

    #[test]
    fn a_name_that_imitates_the_rest_of_the_line_changes_nothing() {
        let found = parse_stat(b"17 (a) S 0 (b) R 5 17 17").unwrap();
        assert_eq!(found.parent, Some(pid(5)));
        let found = parse_stat(b"17 (x\n1 (y) Z 0) R 5 17").unwrap();
        assert_eq!((found.pid, found.parent), (pid(17), Some(pid(5))));
        assert!(!found.zombie);
    }

    #[test]
    fn a_parent_outside_the_namespace_is_none() {
        assert_eq!(parse_stat(b"9 (guest) S 0 9 9").unwrap().parent, None);
    }

    #[test]
    fn what_is_no_state_is_not_read_as_one() {
        for text in [
            &b""[..],
            b"17",
            b"17 (a",
            b"17 (a)",
            b"17 (a) S",
            b"x (a) S 1",
            b") (",
        ] {
            assert_eq!(parse_stat(text), None);
        }
    }

    #[test]
    fn this_very_process_is_found() {
        let processes = Processes::open().unwrap();
        let mut found = false;
        processes
            .each(|process| found |= process.pid == rustix::process::getpid())
            .unwrap();
        assert!(found);
        let own = processes.get(rustix::process::getpid()).unwrap().unwrap();
        assert_eq!(own.parent, rustix::process::getppid());
    }
}
