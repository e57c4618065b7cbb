//! One command, from its request to the end of its last process.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stockade_wire::message::{NotStarted, Status, TtySize};

use super::ConnectionId;
use super::name::FirstWord;
use super::output::Output;
use super::stdin::Stdin;
use crate::poller::Source;
use crate::supervisor::Tally;

/// Who asked for a run, and under which number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) connection: ConnectionId,
    pub(super) number: u32,
}

/// What PID 1 itself needs of a start request. The rest, which can be large,
/// is read by the supervisor alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Settings {
    pub(super) program: Program,
    pub(super) stdin: bool,
    pub(super) tty: Option<TtySize>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) output_limit: Option<u64>,
    pub(super) background: bool,
}

/// A [`stockade_wire::message::Program`], as far as PID 1 tells them apart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Program {
    Argv(FirstWord),
    Shell(IgnoredAny),
    Files,
}

/// A command.
#[derive(Debug)]
pub(super) struct Run {
    /// `None` when nobody is told anything any more: the host is gone, or has
    /// been told everything.
    pub(super) owner: Option<Owner>,
    pub(super) settings: Settings,
    pub(super) stdin: Stdin,
    pub(super) output: Output,
    /// The terminal, to tell it its size.
    pub(super) terminal: Option<OwnedFd>,
    /// Signals for a program that does not run yet.
    pub(super) early_signals: Vec<u8>,
    pub(super) asked: Instant,
    pub(super) state: State,
    /// The outcome has been settled, and told to whoever wants to know.
    pub(super) concluded: bool,
}

/// How far a command is.
#[derive(Debug)]
pub(super) enum State {
    /// In the queue, with its request.
    Waiting(Vec<u8>),
    Live(Live),
}

/// What is known of a command that left the queue.
#[derive(Debug)]
pub(super) struct Live {
    /// `None` when it is reaped.
    pub(super) supervisor: Option<Supervisor>,
    pub(super) started: Instant,
    pub(super) running: bool,
    /// The program's pid, 0 while it is not known.
    pub(super) pid: u32,
    /// The program's own end, as of `wait(2)`.
    pub(super) program: Option<i32>,
    pub(super) not_started: Option<NotStarted>,
    /// Since when the whole tree is to end.
    pub(super) ending: Option<Ending>,
    /// The supervisor told the end of the tree, with how many are left of it.
    pub(super) finished: Option<u32>,
    pub(super) tally: Tally,
    /// The control group's kill counter at the start.
    pub(super) kills_before: Option<u64>,
    /// No other command was alive at any time since.
    pub(super) alone: bool,
}

/// The process between PID 1 and the program.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) pid: Pid,
    /// `None` when its end is closed.
    pub(super) control: Option<Source>,
}

/// A tree that is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) since: Instant,
    /// Why, when that is not the program's own end.
    pub(super) why: Option<Status>,
    /// The supervisor did not manage, and was killed.
    pub(super) taken_over: bool,
}

impl Run {
    pub(super) fn new(owner: Owner, settings: Settings, request: Vec<u8>, now: Instant) -> Self {
        Self {
            owner: Some(owner),
            stdin: Stdin::new(settings.stdin),
            output: Output::new(settings.output_limit),
            settings,
            terminal: None,
            early_signals: Vec::new(),
            asked: now,
            state: State::Waiting(request),
            concluded: false,
        }
    }

    pub(super) fn live(&self) -> Option<&Live> {
        match &self.state {
            State::Live(live) => Some(live),
            State::Waiting(_) => None,
        }
    }

    pub(super) fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.state {
            State::Live(live) => Some(live),
            State::Waiting(_) => None,
        }
    }

    /// Where to send orders.
    pub(super) fn control(&self) -> Option<&Source> {
        self.live()?.supervisor.as_ref()?.control.as_ref()
    }

    pub(super) fn control_mut(&mut self) -> Option<&mut Source> {
        self.live_mut()?.supervisor.as_mut()?.control.as_mut()
    }

    /// Whether the host has been told that the program runs, so that output
    /// may follow.
    pub(super) fn is_announced(&self) -> bool {
        self.live().is_some_and(|live| live.running)
    }

    /// Bytes that are held for it while it waits.
    pub(super) fn held_in_queue(&self) -> usize {
        match &self.state {
            State::Waiting(request) => request.len() + self.stdin.held(),
            State::Live(_) => 0,
        }
    }

    /// Whether it left the queue, and is not known to be over.
    pub(super) fn is_alive(&self) -> bool {
        let live = self.live();
        self.has_processes() && live.is_some_and(|live| live.finished != Some(0))
    }

    /// What it is called where people look.
    pub(super) fn name(&self) -> &str {
        match &self.settings.program {
            Program::Argv(word) => word.as_str(),
            Program::Shell(_) => "sh -c",
            Program::Files => "files",
        }
    }

    /// Whether it is a file operation, which runs beside commands without
    /// being one: nothing about a command may depend on it.
    pub(super) fn is_files(&self) -> bool {
        self.settings.program == Program::Files
    }

    /// Whether processes are there for it, its supervisor included.
    pub(super) fn has_processes(&self) -> bool {
        self.live().is_some_and(|live| live.supervisor.is_some())
    }

    /// When the program's time is over, while that matters.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let live = self.live()?;
        if live.ending.is_some() || live.program.is_some() {
            return None;
        }
        let timeout = Duration::from_millis(self.settings.timeout_ms?);
        // A time that the clock cannot hold never comes.
        live.started.checked_add(timeout)
    }
}

impl Live {
    /// A command that left the queue at that time.
    pub(super) fn new(started: Instant) -> Self {
        Self {
            supervisor: None,
            started,
            running: false,
            pid: 0,
            program: None,
            not_started: None,
            ending: None,
            finished: None,
            tally: Tally::default(),
            kills_before: None,
            alone: false,
        }
    }

    /// How the program ended, or why it was ended.
    pub(super) fn status(&self) -> Status {
        if let Some(not_started) = &self.not_started {
            return Status::NotStarted(not_started.clone());
        }
        if let Some(why) = self.ending.as_ref().and_then(|ending| ending.why.clone()) {
            return why;
        }
        match self.program {
            Some(status) if libc::WIFEXITED(status) => Status::Exited(libc::WEXITSTATUS(status)),
            Some(status) => Status::Signaled(libc::WTERMSIG(status)),
            None => Status::SupervisorLost,
        }
    }

    /// Whether the kernel killed a process of this command for want of
    /// memory: its kill counter rose, and this command was the only one, or
    /// shows the mark of such a death, a SIGKILL that nobody here sent, or
    /// what a shell makes of its child's.
    pub(super) fn out_of_memory(&self, kills_now: Option<u64>) -> bool {
        const SHELLS_SIGKILL: i32 = 128 + libc::SIGKILL;
        let shells = self.program.is_some_and(|status| {
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == SHELLS_SIGKILL
        });
        let rose =
            matches!((self.kills_before, kills_now), (Some(before), Some(now)) if now > before);
        rose && (self.alone || self.tally.killed || shells)
    }
}

#[cfg(test)]
mod tests {
    use stockade_wire::Text;
    use stockade_wire::message::{self, Start};

    use super::*;
    use crate::clock::now;

    fn live() -> Live {
        Live {
            running: true,
            kills_before: Some(3),
            ..Live::new(now())
        }
    }

    #[test]
    fn settings_are_read_out_of_a_whole_request() {
        let start = Start {
            program: message::Program::Argv(vec![Text::from(&[0xff][..]), "a".into()]),
            env: vec![("A".into(), Text::from(&[0xfe][..]))],
            cwd: Some("x".into()),
            stdin: true,
            tty: Some(TtySize {
                rows: 1,
                columns: 2,
            }),
            timeout_ms: Some(3),
            output_limit: Some(4),
            background: true,
        };
        let request = serde_json::to_vec(&start).unwrap();
        let settings: Settings = serde_json::from_slice(&request).unwrap();
        let expected = Settings {
            program: Program::Argv(FirstWord::from(&[0xff][..])),
            stdin: true,
            tty: start.tty,
            timeout_ms: Some(3),
            output_limit: Some(4),
            background: true,
        };
        assert_eq!(settings, expected);
        for (program, expected) in [
            (
                message::Program::Shell("x".into()),
                Program::Shell(IgnoredAny),
            ),
            (message::Program::Files, Program::Files),
        ] {
            let start = Start {
                program,
                ..start.clone()
            };
            let request = serde_json::to_vec(&start).unwrap();
            let settings: Settings = serde_json::from_slice(&request).unwrap();
            assert_eq!(settings.program, expected);
        }
    }

    #[test]
    fn a_code_is_a_code_and_a_signal_is_a_signal() {
        let ended = |status| {
            Live {
                program: Some(status),
                ..live()
            }
            .status()
        };
        for code in [0, 1, 124, 137, 143, 255] {
            assert_eq!(ended(code << 8), Status::Exited(code));
        }
        for signal in [9, 15] {
            assert_eq!(ended(signal), Status::Signaled(signal));
        }
        assert_eq!(live().status(), Status::SupervisorLost);
    }

    #[test]
    fn why_a_command_was_ended_comes_before_how_it_died() {
        let ending = |why| {
            Some(Ending {
                since: now(),
                why,
                taken_over: false,
            })
        };
        let timed_out = Live {
            program: Some(9),
            ending: ending(Some(Status::TimedOut)),
            ..live()
        };
        assert_eq!(timed_out.status(), Status::TimedOut);
        let own_end = Live {
            program: Some(0),
            ending: ending(None),
            ..live()
        };
        assert_eq!(own_end.status(), Status::Exited(0));
    }

    #[test]
    fn a_want_of_memory_needs_a_kill_and_a_reason_to_think_it_was_here() {
        let killed = Tally {
            killed: true,
            ..Tally::default()
        };
        let shell = Some(137 << 8);
        assert!(!live().out_of_memory(Some(4)));
        assert!(
            Live {
                alone: true,
                ..live()
            }
            .out_of_memory(Some(4))
        );
        assert!(
            Live {
                tally: killed,
                ..live()
            }
            .out_of_memory(Some(4))
        );
        assert!(
            Live {
                program: shell,
                ..live()
            }
            .out_of_memory(Some(4))
        );
        assert!(
            !Live {
                tally: killed,
                alone: true,
                ..live()
            }
            .out_of_memory(Some(3))
        );
        assert!(
            !Live {
                tally: killed,
                alone: true,
                ..live()
            }
            .out_of_memory(None)
        );
    }
}
