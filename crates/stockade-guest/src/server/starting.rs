//! From the queue to a running command.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use stockade_wire::limits::RUNNING;
use stockade_wire::message::{NotStarted, NotStartedWhy};

use super::run::{Live, Run, State, Supervisor};
use super::{RunId, Server, Token, frames};
use crate::cgroup::Cgroup;
use crate::limits::{self, OpenFiles};
use crate::poller::{Poller, Source};
use crate::sandbox::Sandbox;
use crate::supervisor::{self, Charge, Stdio};
use crate::sys::{self, Forked};

/// Descriptors that are kept for everything but commands.
const OTHER_DESCRIPTORS: u64 = 64;

/// Descriptors that PID 1 holds for one command.
const DESCRIPTORS: u64 = 4;

/// Commands may take at most this part of the processes that are allowed;
/// each is at least two.
const PART_OF_PIDS: u64 = 4;

/// How many commands there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capacity {
    /// With processes.
    pub(super) running: usize,
    /// With descriptors, which a slow reader can hold longer.
    pub(super) open: usize,
}

/// PID 1's ends of what connects it with a command.
struct Ends {
    control: OwnedFd,
    stdio: StdioEnds,
}

enum StdioEnds {
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Terminal {
        stdin: Option<OwnedFd>,
        output: OwnedFd,
        size: OwnedFd,
    },
}

impl Capacity {
    pub(super) fn of(cgroup: &Cgroup) -> Self {
        Self::within(cgroup.pids, limits::open_files())
    }

    fn within(pids: Option<u64>, open_files: u64) -> Self {
        let count = |count: u64| usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        let open = count(open_files.saturating_sub(OTHER_DESCRIPTORS) / DESCRIPTORS);
        let by_pids = count(pids.unwrap_or(u64::MAX) / PART_OF_PIDS);
        Self {
            running: RUNNING.min(by_pids).min(open),
            open,
        }
    }
}

impl Server {
    /// Starts what waits, as long as there is a place.
    pub(super) fn start_waiting(&mut self, now: Instant) {
        while self.clearing.is_none() && self.leaving.is_none() {
            let open = self.runs.len().saturating_sub(self.queue.len());
            let running = self.runs.values().filter(|run| run.has_processes()).count();
            if open >= self.capacity.open || running >= self.capacity.running {
                return;
            }
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            self.start(id, now);
        }
    }

    fn start(&mut self, id: RunId, now: Instant) {
        let others = self
            .runs
            .values()
            .any(|run| run.is_alive() && !run.is_files());
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        // Guest code may have lowered them, and the command inherits them.
        self.sandbox.limits.restore(OpenFiles::Runtime);
        let launched = launch(run, &self.sandbox);
        // The request has served its purpose in either case.
        let mut live = Live {
            kills_before: self.cgroup.kills(),
            alone: !others,
            ..Live::new(now)
        };
        match launched {
            Ok((pid, ends)) => {
                let control = Some(connect(run, ends, &self.poller, id));
                live.supervisor = Some(Supervisor { pid, control });
                run.state = State::Live(live);
                let written = run.stdin.write();
                let is_command = !run.is_files();
                frames::tell_of_input(&mut self.connections, run.owner, &written);
                if is_command {
                    self.note_company(id);
                }
            }
            Err(not_started) => {
                live.not_started = Some(not_started);
                run.state = State::Live(live);
                self.conclude(id, 0, now);
            }
        }
    }

    /// From now on no other command can be sure that a kill was meant for it.
    pub(super) fn note_company(&mut self, newcomer: RunId) {
        for (id, run) in &mut self.runs {
            if *id != newcomer
                && let Some(live) = run.live_mut()
            {
                live.alone = false;
            }
        }
    }
}

/// Hands a run its ends. Returns the one for the supervisor.
fn connect(run: &mut Run, ends: Ends, poller: &Poller, id: RunId) -> Source {
    let source = |fd, token: Token| poller.source(fd, token.to_bits());
    match ends.stdio {
        StdioEnds::Pipes {
            stdin,
            stdout,
            stderr,
        } => {
            let stdout = source(stdout, Token::Stdout(id));
            run.output
                .connect_pipes(stdout, source(stderr, Token::Stderr(id)));
            if let Some(stdin) = stdin {
                run.stdin.connect_pipe(source(stdin, Token::Stdin(id)));
            }
        }
        StdioEnds::Terminal {
            stdin,
            output,
            size,
        } => {
            run.output
                .connect_terminal(source(output, Token::Stdout(id)));
            if let Some(stdin) = stdin {
                run.stdin.connect_terminal(source(stdin, Token::Stdin(id)));
            }
            run.terminal = Some(size);
        }
    }
    source(ends.control, Token::Control(id))
}

/// Makes the pipes and forks the supervisor.
fn launch(run: &Run, sandbox: &Sandbox) -> Result<(Pid, Ends), NotStarted> {
    let State::Waiting(request) = &run.state else {
        return Err(not_started(
            NotStartedWhy::Other,
            &io::ErrorKind::Other.into(),
        ));
    };
    let resources = |error: io::Error| not_started(NotStartedWhy::Resources, &error);
    let (ours, theirs) = stdio(run, sandbox)?;
    let (control, their_control) = supervisor::pair().map_err(resources)?;
    match sys::fork().map_err(resources)? {
        Forked::Child => supervisor::supervise(Charge {
            request,
            background: run.settings.background,
            stdio: theirs,
            control: their_control,
            sandbox,
        }),
        Forked::Parent(pid) => Ok((
            pid,
            Ends {
                control,
                stdio: ours,
            },
        )),
    }
}

fn stdio(run: &Run, sandbox: &Sandbox) -> Result<(StdioEnds, Stdio), NotStarted> {
    let resources = |error: io::Error| not_started(NotStartedWhy::Resources, &error);
    if let Some(size) = run.settings.tty {
        let terminal = sandbox
            .terminal(size.rows, size.columns)
            .map_err(|error| not_started(NotStartedWhy::Terminal, &error))?;
        let copy = || terminal.controller.try_clone().map_err(resources);
        let ours = StdioEnds::Terminal {
            stdin: run.settings.stdin.then(copy).transpose()?,
            output: copy()?,
            size: copy()?,
        };
        return Ok((ours, Stdio::Terminal(terminal.terminal)));
    }
    let (stdin, their_stdin) = if run.settings.stdin {
        let (write, read) = input_pipe().map_err(resources)?;
        (Some(write), read)
    } else {
        (None, sandbox.null.try_clone().map_err(resources)?)
    };
    let (stdout, their_stdout) = output_pipe().map_err(resources)?;
    let (stderr, their_stderr) = output_pipe().map_err(resources)?;
    Ok((
        StdioEnds::Pipes {
            stdin,
            stdout,
            stderr,
        },
        Stdio::Pipes {
            stdin: their_stdin,
            stdout: their_stdout,
            stderr: their_stderr,
        },
    ))
}

fn input_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((write, read))
}

/// Our end of a pipe never blocks; the program's does, as programs expect.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

fn not_started(why: NotStartedWhy, error: &io::Error) -> NotStarted {
    NotStarted {
        why,
        errno: error.raw_os_error().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_a_quarter_of_the_processes_and_never_all_descriptors() {
        let running = |pids, open_files| Capacity::within(pids, open_files).running;
        assert_eq!(running(None, 4096), RUNNING);
        assert_eq!(running(Some(256), 4096), 64);
        assert_eq!(running(Some(64), 4096), 16);
        assert_eq!(running(Some(1), 4096), 1);
        assert_eq!(running(None, 128), 16);
        assert_eq!(running(None, 3), 1);
    }
}
