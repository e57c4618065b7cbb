//! Starting, signalling, pausing.

use crate::argv::{Argv, ContainerRef};
use crate::undo::Undo;
use crate::verb::{Effect, Mutation, Output, ParseError, Subject, Verb};
use crate::verbs::echo;

/// The signals that a container is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// Ends it; cannot be caught, but by PID 1 of the container.
    Kill,
    /// Asks it to end.
    Term,
    /// The terminal's interrupt.
    Int,
    /// The terminal has gone.
    Hup,
    /// For the program to define.
    Usr1,
    /// For the program to define.
    Usr2,
}

impl Signal {
    /// Its name, as docker reads it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Term => "TERM",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
        }
    }
}

/// `docker start`. Starting one that runs is a success.
///
/// It is not undone: a container that was started is what its creation made
/// it, and whoever else uses it must not lose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartContainer {
    container: ContainerRef,
}

/// `docker kill`: sends PID 1 a signal. It cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillContainer {
    container: ContainerRef,
    signal: Signal,
}

/// `docker pause`: freezes every process. Fails for one that is paused, so
/// that one caller only can have paused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseContainer {
    container: ContainerRef,
}

/// `docker unpause`: thaws every process. It is not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpauseContainer {
    container: ContainerRef,
}

impl StartContainer {
    /// Starts this container.
    pub fn new(container: impl Into<ContainerRef>) -> Self {
        Self {
            container: container.into(),
        }
    }
}

impl KillContainer {
    /// Sends this signal.
    pub fn new(container: impl Into<ContainerRef>, signal: Signal) -> Self {
        Self {
            container: container.into(),
            signal,
        }
    }
}

impl PauseContainer {
    /// Pauses this container.
    pub fn new(container: impl Into<ContainerRef>) -> Self {
        Self {
            container: container.into(),
        }
    }
}

impl UnpauseContainer {
    /// Thaws this container.
    pub fn new(container: impl Into<ContainerRef>) -> Self {
        Self {
            container: container.into(),
        }
    }
}

/// What is the same of all of them: they are about one container, and answer
/// with its name.
macro_rules! control {
    ($type:ident, $name:literal, |$verb:ident| $argv:expr) => {
        impl Verb for $type {
            type Answer = ();
            const NAME: &'static str = $name;

            fn argv(&self) -> Argv {
                let $verb = self;
                $argv
            }

            fn parse(&self, output: &Output) -> Result<(), ParseError> {
                echo::parse("the name of the container", self.container.as_str(), output)
            }

            fn subject(&self) -> Option<Subject> {
                Some(Subject::Container(self.container.clone()))
            }
        }
    };
}

control!(StartContainer, "start", |verb| Argv::new(&["start"])
    .positional(&verb.container));
control!(KillContainer, "kill", |verb| {
    Argv::new(&["kill"])
        .option("signal", verb.signal.as_str())
        .positional(&verb.container)
});
control!(PauseContainer, "pause", |verb| Argv::new(&["pause"])
    .positional(&verb.container));
control!(UnpauseContainer, "unpause", |verb| Argv::new(&["unpause"])
    .positional(&verb.container));

impl Mutation for StartContainer {
    fn undo(&self, _: Effect<'_, ()>) -> Undo {
        Undo::Nothing
    }
}

impl Mutation for KillContainer {
    fn undo(&self, _: Effect<'_, ()>) -> Undo {
        Undo::Nothing
    }
}

impl Mutation for PauseContainer {
    fn undo(&self, effect: Effect<'_, ()>) -> Undo {
        match effect {
            Effect::Done(()) => Undo::Unpause(self.container.clone()),
            // Whether a pause that was cut off is ours cannot be told, and
            // only who paused may thaw.
            _ => Undo::Nothing,
        }
    }
}

impl Mutation for UnpauseContainer {
    fn undo(&self, _: Effect<'_, ()>) -> Undo {
        Undo::Nothing
    }
}
