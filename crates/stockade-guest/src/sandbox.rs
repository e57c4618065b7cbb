//! What PID 1 has from its start and every command needs.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{CWD, Mode, OFlags};

use crate::limits::Limits;
use crate::proc::Processes;

/// Opened and read before any guest code runs, so that nothing of it can be
/// replaced or denied later.
pub(crate) struct Sandbox {
    /// The container's own environment.
    pub(crate) environment: Vec<Variable>,
    /// The work directory.
    pub(crate) work: CString,
    pub(crate) limits: Limits,
    pub(crate) processes: Processes,
    /// `/dev/null`.
    pub(crate) null: OwnedFd,
    /// The file system of terminals; without it there are none.
    terminals: Option<OwnedFd>,
}

/// A variable of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Both ends of a new terminal.
pub(crate) struct Terminal {
    pub(crate) controller: OwnedFd,
    pub(crate) terminal: OwnedFd,
}

/// Magic number of devpts, `linux/magic.h`.
const DEVPTS_SUPER_MAGIC: rustix::fs::FsWord = 0x1cd1;

impl Sandbox {
    pub(crate) fn open(work: CString) -> io::Result<Self> {
        let null = open_null()?;
        Ok(Self {
            environment: std::env::vars_os().map(Variable::from).collect(),
            work,
            limits: Limits::in_force(),
            processes: Processes::open()?,
            null,
            terminals: open_terminals(),
        })
    }

    /// Makes a terminal of that size.
    pub(crate) fn terminal(&self, rows: u16, columns: u16) -> io::Result<Terminal> {
        let terminals = self
            .terminals
            .as_ref()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let controller = rustix::fs::openat(terminals, "ptmx", flags, Mode::empty())?;
        rustix::pty::unlockpt(&controller)?;
        let flags = rustix::pty::OpenptFlags::RDWR
            | rustix::pty::OpenptFlags::NOCTTY
            | rustix::pty::OpenptFlags::CLOEXEC;
        let terminal = rustix::pty::ioctl_tiocgptpeer(&controller, flags)?;
        set_size(&controller, rows, columns)?;
        Ok(Terminal {
            controller,
            terminal,
        })
    }
}

/// Tells a terminal its size, which tells the programs on it.
pub(crate) fn set_size(
    controller: impl std::os::fd::AsFd,
    rows: u16,
    columns: u16,
) -> io::Result<()> {
    let size = rustix::termios::Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(controller, size)?)
}

fn open_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    // The first descriptors go where standard input, output and error belong,
    // should the engine have left one closed.
    loop {
        let null = rustix::fs::openat(CWD, "/dev/null", flags, Mode::empty())?;
        if std::os::fd::AsRawFd::as_raw_fd(&null) > 2 {
            return Ok(null);
        }
        std::mem::forget(null);
    }
}

fn open_terminals() -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let terminals = rustix::fs::openat(CWD, "/dev/pts", flags, Mode::empty()).ok()?;
    let kind = rustix::fs::fstatfs(&terminals).ok()?.f_type;
    (kind == DEVPTS_SUPER_MAGIC).then_some(terminals)
}

impl From<(OsString, OsString)> for Variable {
    fn from((name, value): (OsString, OsString)) -> Self {
        Self {
            name: name.into_vec(),
            value: value.into_vec(),
        }
    }
}
