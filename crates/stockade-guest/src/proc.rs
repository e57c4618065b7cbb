//! Processes as `/proc` shows them.

use std::io;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, RawDir};
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
    pub(crate) usage: Usage,
}

/// What a process uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// User and system time of its own, in ticks of the kernel's clock.
    pub(crate) ticks: u64,
    /// That of the children that it waited for, and of theirs.
    pub(crate) reaped_ticks: u64,
    /// Resident memory in pages.
    pub(crate) pages: u64,
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
        self.walk(|process| {
            visit(process);
            ControlFlow::Continue(())
        })
    }

    /// The first processes, at most that many.
    pub(crate) fn first(&self, most: usize) -> Vec<Process> {
        let mut processes = Vec::new();
        // What cannot be looked at is left out: these are for people.
        let _ = self.walk(|process| {
            processes.push(process);
            match processes.len() < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        processes
    }

    fn walk(&self, mut visit: impl FnMut(Process) -> ControlFlow<()>) -> io::Result<()> {
        // Opened anew for each pass: a fork shares the place in a directory
        // that is open, and supervisors look through the same one.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.root, ".", flags, Mode::empty())?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(directory, &mut buffer);
        let mut result = Ok(());
        while let Some(entry) = entries.next() {
            let Some(pid) = parse_pid(entry?.file_name().to_bytes()) else {
                continue;
            };
            match self.get(pid) {
                Ok(Some(process)) => {
                    if visit(process).is_break() {
                        break;
                    }
                }
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
        usage: parse_usage(fields).unwrap_or_default(),
    })
}

/// Reads on behind the parent, see `proc_pid_stat(5)`.
fn parse_usage<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> Option<Usage> {
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
    let user = number(fields.nth(9)?)?;
    let system = number(fields.next()?)?;
    let reaped_user = number(fields.next()?)?;
    let reaped_system = number(fields.next()?)?;
    let pages = number(fields.nth(6)?)?;
    Some(Usage {
        ticks: user.saturating_add(system),
        reaped_ticks: reaped_user.saturating_add(reaped_system),
        pages,
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
                zombie: false,
                usage: Usage::default(),
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
    fn what_a_process_uses_is_read() {
        let line = b"9 (a) b) R 5 9 9 0 -1 4194304 100 200 0 0 11 22 33 44 20 0 1 0 5 1000 77 99";
        let expected = Usage {
            ticks: 33,
            reaped_ticks: 77,
            pages: 77,
        };
        assert_eq!(parse_stat(line).unwrap().usage, expected);
    }

    #[test]
    fn a_pass_inside_a_pass_disturbs_neither() {
        let processes = Processes::open().unwrap();
        // As a supervisor has it: the same open directory.
        let forked = Processes {
            root: processes.root.try_clone().unwrap(),
        };
        let (mut outer, mut inner) = (0, 0);
        let me = rustix::process::getpid();
        let found = |process: &Process| u32::from(process.pid == me);
        processes
            .each(|process| {
                outer += found(&process);
                if process.pid == me {
                    forked.each(|process| inner += found(&process)).unwrap();
                }
            })
            .unwrap();
        assert_eq!((outer, inner), (1, 1));
    }

    #[test]
    fn no_more_are_looked_at_than_were_asked_for() {
        let processes = Processes::open().unwrap();
        assert_eq!(processes.first(1).len(), 1);
        let all = processes.first(1 << 20);
        let me = rustix::process::getpid();
        assert!(all.iter().any(|process| process.pid == me));
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
