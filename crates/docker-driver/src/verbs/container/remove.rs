//! Removing containers.

use crate::argv::{Argv, ContainerRef};
use crate::undo::Undo;
use crate::verb::{Effect, Mutation, Output, ParseError, Subject, Verb};

/// `docker rm --force --volumes`: ends a container and removes it with its
/// anonymous volumes. One that does not exist is an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveContainer {
    container: ContainerRef,
    force: bool,
}

/// What a removal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "it was there or it was not")]
pub enum Removal {
    /// It was there, and is gone.
    Removed,
    /// It was not there.
    Absent,
}

impl RemoveContainer {
    /// Removes this container.
    pub fn new(container: impl Into<ContainerRef>) -> Self {
        Self {
            container: container.into(),
            force: true,
        }
    }

    /// Only if it does not run, for whoever saw that it had ended: the engine
    /// refuses one that somebody has started since.
    #[must_use]
    pub fn unless_running(mut self) -> Self {
        self.force = false;
        self
    }
}

impl Verb for RemoveContainer {
    type Answer = Removal;
    const NAME: &'static str = "rm";

    fn argv(&self) -> Argv {
        let argv = Argv::new(&["rm"]);
        let argv = if self.force { argv.flag("force") } else { argv };
        argv.flag("volumes").positional(&self.container)
    }

    /// What was removed is echoed; `--force` makes the rest a success too.
    fn parse(&self, output: &Output) -> Result<Removal, ParseError> {
        match output.stdout.trim_ascii() {
            b"" => Ok(Removal::Absent),
            echo if echo == self.container.as_str().as_bytes() => Ok(Removal::Removed),
            other => Err(ParseError::new(
                "the name of the container, or nothing",
                format_args!("{} bytes of something else", other.len()),
            )),
        }
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Container(self.container.clone()))
    }

    fn when_absent(&self) -> Option<Removal> {
        Some(Removal::Absent)
    }
}

impl Mutation for RemoveContainer {
    fn undo(&self, _: Effect<'_, Removal>) -> Undo {
        Undo::Nothing
    }
}
