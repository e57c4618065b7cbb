//! One process per command, between PID 1 and the program.
//!
//! A copy of PID 1 that never executes anything else, so that it stays as
//! non-dumpable as PID 1 is: guest code cannot trace it, only kill or stop
//! it. As the child subreaper of everything below, it is handed each process
//! whose parent died, daemons included, and `wait` proves to it that nothing
//! is left.

mod program;
mod report;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use stockade_wire::message::{NotStarted, NotStartedWhy, Start};

use crate::clock::now;
use crate::kill::{self, Trees};
use crate::limits::OpenFiles;
use crate::poller::{Interest, Poller, Source};
use crate::proc::Process;
use crate::sandbox::Sandbox;
use crate::sys::{self, Reaped};

use program::{FAILURE, Program};

pub(crate) use program::Stdio;
pub(crate) use report::{Order, Report, Tally, pair};

/// Nothing to wait for: only events end the wait.
const FOREVER: Duration = Duration::from_secs(3600);

/// How long killing is repeated before PID 1 is told that some are left. Less
/// than the bound of the whole, so that PID 1 has time to go on itself.
const KILL_BOUND: Duration = Duration::from_secs(3);

/// Pauses between two passes of killing, if no child ends meanwhile.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What a supervisor is made for.
pub(crate) struct Charge<'a> {
    /// A [`Start`] as JSON.
    pub(crate) request: &'a [u8],
    pub(crate) background: bool,
    pub(crate) stdio: Stdio,
    /// Its end of the socket pair to PID 1.
    pub(crate) control: OwnedFd,
    pub(crate) sandbox: &'a Sandbox,
}

/// Runs in the child of the fork, to its end.
pub(crate) fn supervise(charge: Charge<'_>) -> ! {
    let code = match start(charge) {
        Ok(Some(mut supervisor)) => {
            supervisor.attend();
            0
        }
        Ok(None) => 0,
        Err(_) => 1,
    };
    sys::exit_now(code)
}

struct Supervisor<'a> {
    sandbox: &'a Sandbox,
    background: bool,
    poller: Poller,
    signals: Source,
    control: Source,
    starting: Option<Starting>,
    pid: Pid,
    /// The program's pid, which is also its group's, until it is reaped.
    program: Option<Pid>,
    status: i32,
    tally: Tally,
    /// From here on a death by SIGKILL is our own doing.
    killing: bool,
}

/// A program that was forked off and does not run yet.
struct Starting {
    program: Program,
    failure: Source,
}

/// Takes the place of a supervisor and forks the program off. `None` when that
/// did not work, which PID 1 was told.
fn start(charge: Charge<'_>) -> io::Result<Option<Supervisor<'_>>> {
    let Charge {
        request,
        background,
        stdio,
        control,
        sandbox,
    } = charge;
    settle(&stdio, &control, sandbox)?;
    let poller = Poller::new()?;
    let mut signals = poller.source(sys::take_signals(&[libc::SIGCHLD])?, 0);
    let mut control = poller.source(control, 0);
    signals.set_interest(Some(Interest::Read))?;
    control.set_interest(Some(Interest::Read))?;
    let (starting, program) = match launch(request, stdio, sandbox, &poller) {
        Ok(launched) => launched,
        Err(not_started) => {
            Report::NotStarted(not_started).send(&control);
            return Ok(None);
        }
    };
    Ok(Some(Supervisor {
        sandbox,
        background,
        poller,
        signals,
        control,
        starting: Some(starting),
        pid: rustix::process::getpid(),
        program: Some(program),
        status: 0,
        tally: Tally::default(),
        killing: false,
    }))
}

/// Sheds what was inherited from PID 1. Descriptors above all: as long as a
/// copy of another command's pipe is open here, that command's input has no end.
fn settle(stdio: &Stdio, control: &OwnedFd, sandbox: &Sandbox) -> io::Result<()> {
    let mut keep = vec![control.as_raw_fd(), sandbox.processes.descriptor()];
    keep.extend(stdio.descriptors().iter().map(AsRawFd::as_raw_fd));
    sys::close_all_but(&keep);
    let _ = rustix::thread::set_name(c"stockade-run");
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

fn launch(
    request: &[u8],
    stdio: Stdio,
    sandbox: &Sandbox,
    poller: &Poller,
) -> Result<(Starting, Pid), NotStarted> {
    let start: Start = serde_json::from_slice(request).map_err(|_| program::invalid())?;
    let program = Program::prepare(start, &sandbox.environment, &sandbox.work)?;
    let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
    let (failure, failed) = pipe.map_err(|error| resources(&error.into()))?;
    let mut failure = poller.source(failure, 0);
    let watched = failure.set_interest(Some(Interest::Read));
    watched.map_err(|error| resources(&error))?;
    let pid = program.launch(&stdio, sandbox, failed.as_fd())?;
    Ok((Starting { program, failure }, pid))
}

fn resources(error: &io::Error) -> NotStarted {
    NotStarted {
        why: NotStartedWhy::Resources,
        errno: error.raw_os_error().unwrap_or(0),
    }
}

impl Starting {
    /// Whether the program runs by now; `None` when that is still open.
    ///
    /// The pipe is closed without a word by a successful `execve`, and by a
    /// death before it, which then is the program's own.
    fn outcome(&self) -> Option<Result<(), NotStarted>> {
        let mut why = [0; FAILURE];
        match rustix::io::read(&self.failure, &mut why) {
            Ok(FAILURE) => Some(Err(self.program.why_not(why))),
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(_) | Err(_) => Some(Ok(())),
        }
    }
}

impl Supervisor<'_> {
    /// Attends to the program, and then to what is left of its tree, until
    /// nothing is, or PID 1 orders the end.
    fn attend(&mut self) {
        let mut events = Vec::new();
        let mut told = false;
        loop {
            let _ = self.poller.wait(FOREVER, &mut events);
            // First the dead, then the start: once the program is reaped, its
            // start has an outcome.
            let childless = self.reap();
            if !self.look_at_start() {
                return;
            }
            let running = self.program.is_some() || self.starting.is_some();
            if !running && !told {
                told = true;
                self.tell_of_end(childless);
            }
            let ordered = self.take_orders();
            if ordered || (!running && !self.background) {
                let left = if childless { 0 } else { self.end_tree() };
                return self.tell_of_finish(left);
            }
            if childless {
                return self.tell_of_finish(0);
            }
        }
    }

    /// False when the program did not start, which PID 1 was told.
    fn look_at_start(&mut self) -> bool {
        let outcome = self.starting.as_ref().and_then(Starting::outcome);
        match (outcome, self.program) {
            (None, _) => true,
            (Some(Err(not_started)), _) => {
                Report::NotStarted(not_started).send(&self.control);
                false
            }
            (Some(Ok(())), program) => {
                self.starting = None;
                // Reaped already when it ended in between; the pid is for
                // people, and 0 tells them so.
                let pid = program.map_or(0, |pid| pid.as_raw_nonzero().get());
                Report::Running { pid }.send(&self.control);
                true
            }
        }
    }

    /// Obeys PID 1. True when it orders the end.
    fn take_orders(&mut self) -> bool {
        loop {
            match Order::receive(&self.control) {
                Ok(Some(Order::Signal(signal))) => self.signal(i32::from(signal)),
                Ok(Some(Order::Detach)) => self.background = true,
                Ok(None) => return false,
                // PID 1 never closes its end before this process is gone.
                Ok(Some(Order::End)) | Err(_) => return true,
            }
        }
    }

    fn signal(&mut self, signal: i32) {
        if let Some(program) = self.program {
            self.killing |= signal == libc::SIGKILL;
            let _ = sys::signal_group(program, signal);
        }
    }

    /// Takes note of every child that is gone. True when there is none left,
    /// which means that no process of the tree is.
    fn reap(&mut self) -> bool {
        while sys::next_signal(self.signals.as_fd()).is_some() {}
        loop {
            match sys::reap() {
                Ok(Reaped::Ended(ended)) => self.take_note(&ended),
                Ok(Reaped::Stopped(_)) => {}
                Ok(Reaped::Nothing) | Err(_) => return false,
                Ok(Reaped::Childless) => return true,
            }
        }
    }

    fn take_note(&mut self, ended: &sys::Ended) {
        let tally = &mut self.tally;
        tally.user_us += micros(ended.user);
        tally.system_us += micros(ended.system);
        tally.peak_memory = tally.peak_memory.max(ended.peak_memory);
        let killed =
            libc::WIFSIGNALED(ended.status) && libc::WTERMSIG(ended.status) == libc::SIGKILL;
        tally.killed |= killed && !self.killing;
        if self.program == Some(ended.pid) {
            self.program = None;
            self.status = ended.status;
        }
    }

    /// Kills until `wait` says that nothing is left. Answers how many
    /// processes are, when the bound runs out first; they are handed to PID 1
    /// with the end of this process.
    fn end_tree(&mut self) -> u32 {
        self.killing = true;
        self.sandbox.limits.restore(OpenFiles::Runtime);
        let deadline = now() + KILL_BOUND;
        let mut pause = SHORTEST_PAUSE;
        let mut events = Vec::new();
        loop {
            if let Some(program) = self.program {
                let _ = sys::signal_group(program, libc::SIGKILL);
                let _ = sys::signal(program, libc::SIGKILL);
            }
            let (pass, _) = kill::kill_once(&self.sandbox.processes, Trees::of(self.is_child()));
            if self.reap() {
                return 0;
            }
            if now() >= deadline {
                return pass.found.max(1);
            }
            let _ = self.poller.wait(pause, &mut events);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn tell_of_end(&self, childless: bool) {
        let left = match self.background && !childless {
            true => kill::count(&self.sandbox.processes, Trees::of(self.is_child())),
            false => 0,
        };
        Report::Ended {
            status: self.status,
            tally: self.tally,
            left,
        }
        .send(&self.control);
    }

    fn tell_of_finish(&self, left: u32) {
        Report::Finished {
            tally: self.tally,
            left,
        }
        .send(&self.control);
    }

    fn is_child(&self) -> impl FnMut(&Process) -> bool + use<> {
        let me = self.pid;
        move |process| process.parent == Some(me)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
