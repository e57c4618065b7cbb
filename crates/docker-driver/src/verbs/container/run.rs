//! Making containers.

use bytes::Bytes;

use super::RunOptions;
use crate::argv::{Argv, ContainerId};
use crate::phrases;
use crate::undo::Undo;
use crate::verb::{Effect, Exit, Mutation, Output, ParseError, Verb};

/// `docker run --detach`: makes a container and starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the options are the verb")]
pub struct RunDetached(pub RunOptions);

/// `docker create`: makes a container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the options are the verb")]
pub struct CreateContainer(pub RunOptions);

/// `docker run`, attached: runs a program to its end, and gives its output.
/// The program's exit code is data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunForeground {
    options: RunOptions,
    stdout_limit: usize,
}

/// What a program that ran to its end left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForegroundOutput {
    /// The program's exit code, or 128 and its signal.
    pub code: i32,
    /// Its standard output, whole.
    pub stdout: Bytes,
    /// The end of its standard error, 64 KiB at most.
    pub stderr: Bytes,
}

impl RunForeground {
    /// Runs with these options; more standard output than this many bytes
    /// fails the call.
    pub fn new(options: RunOptions, stdout_limit: usize) -> Self {
        Self {
            options,
            stdout_limit,
        }
    }
}

impl Verb for RunDetached {
    type Answer = ContainerId;
    const NAME: &'static str = "run";

    fn argv(&self) -> Argv {
        self.0.add_to(Argv::new(&["run"]).flag("detach"))
    }

    fn parse(&self, output: &Output) -> Result<ContainerId, ParseError> {
        made(output)
    }
}

impl Mutation for RunDetached {
    fn undo(&self, effect: Effect<'_, ContainerId>) -> Undo {
        undo(&self.0, effect)
    }
}

impl Verb for CreateContainer {
    type Answer = ContainerId;
    const NAME: &'static str = "create";

    fn argv(&self) -> Argv {
        self.0.add_to(Argv::new(&["create"]))
    }

    fn parse(&self, output: &Output) -> Result<ContainerId, ParseError> {
        made(output)
    }
}

impl Mutation for CreateContainer {
    fn undo(&self, effect: Effect<'_, ContainerId>) -> Undo {
        undo(&self.0, effect)
    }
}

impl Verb for RunForeground {
    type Answer = ForegroundOutput;
    const NAME: &'static str = "run attached";

    fn argv(&self) -> Argv {
        self.options.add_to(Argv::new(&["run"]))
    }

    fn parse(&self, output: &Output) -> Result<ForegroundOutput, ParseError> {
        match output.exit {
            Exit::Code(code) => Ok(ForegroundOutput {
                code,
                stdout: output.stdout.clone(),
                stderr: output.stderr.clone(),
            }),
            Exit::Signal(_) => Err(ParseError::new("an exit code", output.exit)),
        }
    }

    fn stdout_limit(&self) -> usize {
        self.stdout_limit
    }

    /// A program that ran had a container. Where its start failed, there is
    /// one too, and docker's words have to tell.
    fn answered(&self, output: &Output) -> bool {
        let ended_by_itself = matches!(output.exit, Exit::Code(_));
        ended_by_itself && output.made.is_some() && !phrases::is_dockers_own(output)
    }
}

impl Mutation for RunForeground {
    fn undo(&self, effect: Effect<'_, ForegroundOutput>) -> Undo {
        match effect {
            Effect::Made(id) => Undo::RemoveContainer(id.clone()),
            Effect::Nothing => Undo::Nothing,
            // One that ran to its end may have been kept.
            Effect::Done(_) | Effect::Unknown => marked(&self.options),
        }
    }
}

fn made(output: &Output) -> Result<ContainerId, ParseError> {
    const EXPECTED: &str = "one container id";
    let text =
        std::str::from_utf8(&output.stdout).map_err(|error| ParseError::new(EXPECTED, error))?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    ContainerId::new(line).map_err(|error| ParseError::new(EXPECTED, error))
}

fn undo(options: &RunOptions, effect: Effect<'_, ContainerId>) -> Undo {
    match effect {
        Effect::Done(id) | Effect::Made(id) => Undo::RemoveContainer(id.clone()),
        Effect::Nothing => Undo::Nothing,
        Effect::Unknown => marked(options),
    }
}

fn marked(options: &RunOptions) -> Undo {
    Undo::RemoveMarkedContainer(options.name().clone(), options.mark().clone())
}
