//! The one place of this crate that starts a process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
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
    pub(crate) words: &'a [OsString],
    /// Added to the program's environment.
    pub(crate) environment: Vec<(&'a str, &'a str)>,
    /// Whether standard input is a pipe; it is the null device otherwise.
    pub(crate) stdin: bool,
    pub(crate) group: Group,
    pub(crate) fate: Fate,
}

/// One start of a shell script that runs a program. It leads a group of its
/// own and goes on without us.
pub(crate) struct StartScript<'a> {
    pub(crate) program: &'a Program,
    pub(crate) script: &'static str,
    pub(crate) words: &'a [OsString],
    /// Its standard input, which it may write to as well.
    pub(crate) talk: OwnedFd,
    /// Its standard output and error, which it only holds on to. The null
    /// device if there is none.
    pub(crate) holds: [Option<OwnedFd>; 2],
}

/// The group that a process is started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Its own, which it leads.
    Own,
    /// That of another process. The start fails when that group has gone.
    Of(Pid),
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

/// A process that was started. What a terminal sends to our group does not
/// reach it. One that leads its group is ended together with what it started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Group,
    fate: Fate,
}

impl Start<'_> {
    /// Starts the process.
    pub(crate) fn spawn(self) -> io::Result<Process> {
        let mut command = command(&self.program.path, self.program, self.group);
        command
            .args(self.words)
            .envs(self.environment)
            .stdin(if self.stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(Process {
            child: command.spawn()?,
            group: self.group,
            fate: self.fate,
        })
    }
}

impl StartScript<'_> {
    /// Starts the script. Its first word is the path of the program.
    pub(crate) fn spawn(self) -> io::Result<Process> {
        let [stdout, stderr] = self
            .holds
            .map(|held| held.map_or_else(Stdio::null, Stdio::from));
        let mut command = command(Path::new("/bin/sh"), self.program, Group::Own);
        command
            .args(["-c", self.script, "guard"])
            .arg(&self.program.path)
            .args(self.words)
            .stdin(Stdio::from(self.talk))
            .stdout(stdout)
            .stderr(stderr);
        Ok(Process {
            child: command.spawn()?,
            group: Group::Own,
            fate: Fate::GoesOn,
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that starts a process"
)]
fn command(path: &Path, program: &Program, group: Group) -> Command {
    let mut command = Command::new(path);
    let environment = program.environment.iter();
    command
        .env_clear()
        .envs(environment.map(|(name, value)| (name, value)))
        // Our own directory may be removed while we live.
        .current_dir("/")
        .process_group(match group {
            Group::Own => 0,
            Group::Of(leader) => leader.as_raw_nonzero().get(),
        });
    command
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
        self.pid().is_none_or(has_ended)
    }

    /// Signals the process, with its whole group if it leads one, unless it
    /// was reaped: the number might be another's by then.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = self.pid() else { return };
        // The one error there can be is that all have ended.
        let _ = match self.group {
            Group::Own => kill_process_group(pid, signal),
            Group::Of(_) => kill_process(pid, signal),
        };
    }

    /// Its number, until it is reaped.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.fate == Fate::Ends {
            self.signal(Signal::KILL);
        }
    }
}

/// Whether a child of ours that was not reaped has ended.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that there is no such child any more.
    !matches!(waitid(WaitId::Pid(pid), look), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(group: Group) -> io::Result<Process> {
        let program = Program {
            path: "/bin/sh".into(),
            environment: Vec::new(),
        };
        let start = Start {
            program: &program,
            words: &["-c".into(), "read _".into()],
            environment: Vec::new(),
            stdin: true,
            group,
            fate: Fate::Ends,
        };
        start.spawn()
    }

    #[tokio::test]
    async fn a_process_joins_a_group_that_lives_and_none_that_has_gone() {
        let mut leader = start(Group::Own).unwrap();
        let group = Group::Of(leader.pid().unwrap());
        let mut member = start(group).unwrap();
        assert!(!member.has_ended());
        member.signal(Signal::KILL);
        member.wait().await.unwrap();
        assert!(!leader.has_ended(), "a member is signalled alone");
        leader.signal(Signal::KILL);
        leader.wait().await.unwrap();
        let error = start(group).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[tokio::test]
    async fn a_leader_is_signalled_with_its_group() {
        let leader = start(Group::Own).unwrap();
        let mut member = start(Group::Of(leader.pid().unwrap())).unwrap();
        drop(leader);
        assert_eq!(member.wait().await.unwrap(), Exit::Signal(9));
    }
}
