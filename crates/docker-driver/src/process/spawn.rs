//! The one place of this crate that starts a process.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, Command};

use crate::verb::Exit;

/// A program and the whole environment that it is started with.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// One start of a program.
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Program,
    pub(crate) words: &'a [String],
    /// Added to the program's environment.
    pub(crate) environment: Vec<(&'a str, &'a str)>,
    /// Whether standard input is a pipe; it is the null device otherwise.
    pub(crate) stdin: bool,
    pub(crate) fate: Fate,
}

/// What becomes of a process whose owner is dropped, which happens only when
/// the whole runtime ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is ended with its group.
    Ends,
    /// It goes on: a change that is cut off half-way is worse than one that
    /// nobody waits for.
    GoesOn,
}

/// A process that leads its own group. What a terminal sends to our group
/// does not reach it, and ending it ends what it started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    fate: Fate,
}

impl Start<'_> {
    /// Starts the process.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that starts a process"
    )]
    pub(crate) fn spawn(self) -> io::Result<Process> {
        let program = self.program;
        let mut command = Command::new(&program.path);
        command
            .args(self.words)
            .env_clear()
            .envs(
                program
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .envs(self.environment)
            // Our own directory may be removed while we live.
            .current_dir("/")
            .stdin(if self.stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        Ok(Process {
            child: command.spawn()?,
            fate: self.fate,
        })
    }
}

impl Process {
    /// Its streams, to be taken out.
    pub(crate) fn streams(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for its end and reaps it. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<Exit> {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.child.wait().await?;
        let signalled = || Exit::Signal(status.signal().unwrap_or_default());
        Ok(status.code().map_or_else(signalled, Exit::Code))
    }

    /// Whether it has ended, without reaping it: its number, and so the
    /// number of its group, stays its own.
    pub(crate) fn has_ended(&self) -> bool {
        let Some(pid) = self.pid() else { return true };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child any more.
        !matches!(waitid(WaitId::Pid(pid), look), Ok(None))
    }

    /// Signals the whole group, unless the process was reaped: the number
    /// might be another's by then.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            // The one error there can be is that all have ended.
            let _ = kill_process_group(pid, signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        self.child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.fate == Fate::Ends {
            self.signal_group(Signal::KILL);
        }
    }
}
