//! The system calls that rustix leaves out, each behind a safe function.

#![expect(
    unsafe_code,
    reason = "fork, exec, wait with usage and signals have no safe form"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::process::Pid;

/// Which side of a fork this is.
pub(crate) enum Forked {
    Child,
    Parent(Pid),
}

/// What a look for a changed child found.
pub(crate) enum Reaped {
    /// There is no child at all.
    Childless,
    /// No child has changed.
    Nothing,
    /// A child was stopped; it is not reaped.
    Stopped(Pid),
    /// A child is gone.
    Ended(Ended),
}

/// A child that is gone, with what it and the children that it reaped used.
pub(crate) struct Ended {
    pub(crate) pid: Pid,
    /// As of `wait(2)`.
    pub(crate) status: i32,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Largest resident set of one process, in bytes.
    pub(crate) peak_memory: u64,
}

/// Strings for `execve`, with the table of pointers to them.
pub(crate) struct Strings {
    pointers: Vec<*const libc::c_char>,
    _owned: Vec<CString>,
}

/// Where a signal came from, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: i32,
    /// It was sent with `kill` by a process that this namespace does not
    /// see. Guest code can choose both the code and the sender's pid of a
    /// queued signal (`rt_sigqueueinfo`), but no code of zero or above: that
    /// one the kernel writes.
    ///
    /// Not proof against everything: guest code that first uses up the limit
    /// of pending signals (`RLIMIT_SIGPENDING`) has the kernel drop what it
    /// knows of the next one, which then looks like this. What it gains is the
    /// end of its own sandbox's processes. And a signal from outside that
    /// comes while one from inside is pending is merged with it, and lost: who
    /// sends it looks at the kill generation, and sends it again.
    pub(crate) from_outside: bool,
}

/// Makes a copy of this process.
///
/// The child may do anything, since no process here ever has a second thread.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the process is single-threaded.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Pid::from_raw(pid)
            .map(Forked::Parent)
            .ok_or_else(|| io::ErrorKind::Other.into()),
    }
}

/// Ends this process at once, without running anything that was copied into it.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(code) }
}

impl Strings {
    pub(crate) fn new(owned: Vec<CString>) -> Self {
        let pointers = owned
            .iter()
            .map(|string| string.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        Self {
            pointers,
            _owned: owned,
        }
    }
}

/// Replaces this process; returns only why it could not.
pub(crate) fn execute(path: &CStr, arguments: &Strings, environment: &Strings) -> i32 {
    // SAFETY: all three are terminated, and outlive the call.
    unsafe {
        libc::execve(
            path.as_ptr(),
            arguments.pointers.as_ptr(),
            environment.pointers.as_ptr(),
        );
    }
    last_errno()
}

/// Takes note of one changed child, without waiting for one.
pub(crate) fn reap() -> io::Result<Reaped> {
    let mut status = 0;
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let options = libc::WNOHANG | libc::WUNTRACED;
    // SAFETY: both pointers are valid for writes.
    let pid = unsafe { libc::wait4(-1, &raw mut status, options, &raw mut usage) };
    if pid < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ECHILD) => Ok(Reaped::Childless),
            Some(libc::EINTR) => Ok(Reaped::Nothing),
            _ => Err(error),
        };
    }
    let Some(pid) = Pid::from_raw(pid) else {
        return Ok(Reaped::Nothing);
    };
    if libc::WIFSTOPPED(status) {
        return Ok(Reaped::Stopped(pid));
    }
    Ok(Reaped::Ended(Ended {
        pid,
        status,
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

/// Sends a signal to one process.
pub(crate) fn signal(pid: Pid, signal: i32) -> io::Result<()> {
    kill(pid.as_raw_nonzero().get(), signal)
}

/// Sends a signal to every process of a group.
pub(crate) fn signal_group(group: Pid, signal: i32) -> io::Result<()> {
    kill(-group.as_raw_nonzero().get(), signal)
}

/// Kills every process of the namespace but PID 1, which must be the caller.
///
/// The kernel does it under the lock that a fork needs, so that no process
/// gets away by forking.
pub(crate) fn kill_everything() -> io::Result<()> {
    kill(-1, libc::SIGKILL)
}

/// Ticks of the kernel's clock per second, as `/proc` counts CPU time.
pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: always sound.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

/// Bytes of a page.
pub(crate) fn page_size() -> u64 {
    // SAFETY: always sound.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// Blocks every signal, and gives those named through a descriptor instead.
pub(crate) fn take_signals(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the sets are initialised by `sigfillset` and `sigemptyset`
    // before anything reads them.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const all,
            std::ptr::null_mut(),
        ))?;
        let mut taken: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut taken);
        for signal in signals {
            libc::sigaddset(&raw mut taken, *signal);
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let fd = check(libc::signalfd(-1, &raw const taken, flags))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Reads one signal; `None` when there is none.
pub(crate) fn next_signal(signals: BorrowedFd<'_>) -> Option<Received> {
    // SAFETY: all zeros is a valid `signalfd_siginfo`.
    let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer is valid for `size` bytes.
    let read = unsafe { libc::read(signals.as_raw_fd(), (&raw mut info).cast(), size) };
    if usize::try_from(read) != Ok(size) {
        return None;
    }
    Some(Received {
        signal: i32::try_from(info.ssi_signo).unwrap_or(0),
        from_outside: info.ssi_code == libc::SI_USER && info.ssi_pid == 0,
    })
}

/// Ignores and handles no signal any more. An ignored one would stay ignored
/// in every program (the standard library ignores SIGPIPE).
pub(crate) fn handle_no_signals() {
    /// Of a signal set as the kernel has it, in bytes.
    const SET: usize = 8;
    // All zeros is the default action, with no flags and an empty mask; larger
    // than the structure of any architecture. Straight to the kernel, since
    // the C library keeps two signals to itself.
    let default = [0_u64; 8];
    for signal in 1..=64 {
        // SAFETY: the structure is valid for reads; what cannot be set is refused.
        unsafe {
            let old = std::ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), old, SET);
        }
    }
}

/// Blocks no signal any more, as a program expects it.
pub(crate) fn unblock_signals() {
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Closes every descriptor from 3 on but those named.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<RawFd> = keep.iter().copied().filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = from.max(fd + 1);
    }
    close_range(from, RawFd::MAX);
}

/// Makes this terminal the controlling one of the session.
pub(crate) fn control_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes an integer argument.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }).map(drop)
}

/// Puts a descriptor in the place of standard input, output or error.
pub(crate) fn put_in_place(fd: BorrowedFd<'_>, place: RawFd) -> io::Result<()> {
    // SAFETY: the program's own descriptors 0 to 2 are not owned by anything
    // in a process that is about to be replaced.
    check(unsafe { libc::dup2(fd.as_raw_fd(), place) }).map(drop)
}

/// A descriptor for the process at the other end of a unix socket, taken when
/// it connected; `None` on kernels before 6.5, which have none.
///
/// # Errors
///
/// Among others when that process is gone.
pub(crate) fn peer_process(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    /// `asm-generic/socket.h`; the libc crate does not have it everywhere.
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut fd: RawFd = -1;
    let mut size = libc::socklen_t::try_from(size_of::<RawFd>()).unwrap_or(4);
    // SAFETY: the buffer is valid for `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut size,
        )
    };
    match check(result) {
        // SAFETY: the kernel made this descriptor for us.
        Ok(_) if fd >= 0 => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
        Err(error) if error.raw_os_error() != Some(libc::ENOPROTOOPT) => Err(error),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Whether a process still has its pid, alive or not yet reaped.
pub(crate) fn has_its_pid(process: BorrowedFd<'_>) -> bool {
    // SAFETY: signal 0 is only a question; no information is passed along.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            0,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    result == 0
}

fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: nothing in this process uses those descriptors any more.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 {
        return;
    }
    // Kernels before 5.9, and system call filters that do not know it. PID 1
    // never opens more than its limit, which never rises.
    let last = last.min(i32::try_from(crate::limits::open_files()).unwrap_or(1 << 16));
    for fd in first..=last {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

fn kill(to: i32, signal: i32) -> io::Result<()> {
    // SAFETY: always sound.
    check(unsafe { libc::kill(to, signal) }).map(drop)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
