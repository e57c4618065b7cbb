//! Starting, signalling, pausing.

use crate::argv::{Argv, ContainerRef};
use crate::undo::Undo;
use crate::verb::{Effect, Mutation, Output, ParseError, Subject, Verb};

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

macro_rules! control {
    ($(#[$doc:meta])* $type:ident, $name:literal, $argv:expr, $undo:expr) => {
        impl Verb for $type {
            type Answer = ();
            const NAME: &'static str = $name;

            fn argv(&self) -> Argv {
                #[expect(
                    clippy::redundant_closure_call,
                    reason = "the macro's one varying part"
                )]
                $argv(self)
            }

            fn parse(&self, _: &Output) -> Result<(), ParseError> {
                Ok(())
            }

            fn subject(&self) -> Option<Subject> {
                Some(Subject::Container(self.container.clone()))
            }
        }

        impl Mutation for $type {
            fn undo(&self, effect: Effect<'_, ()>) -> Undo {
                #[expect(
                    clippy::redundant_closure_call,
                    reason = "the macro's one varying part"
                )]
                $undo(self, effect)
            }
        }
    };
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

control!(
    StartContainer,
    "start",
    |verb: &StartContainer| Argv::new(&["start"]).positional(&verb.container),
    |_: &StartContainer, _| Undo::Nothing
);

control!(
    KillContainer,
    "kill",
    |verb: &KillContainer| {
        Argv::new(&["kill"])
            .option("signal", verb.signal.as_str())
            .positional(&verb.container)
    },
    |_: &KillContainer, _| Undo::Nothing
);

control!(
    PauseContainer,
    "pause",
    |verb: &PauseContainer| Argv::new(&["pause"]).positional(&verb.container),
    |verb: &PauseContainer, effect: Effect<'_, ()>| match effect {
        Effect::Done(()) => Undo::Unpause(verb.container.clone()),
        // Whether a pause that was cut off is ours cannot be told, and only
        // who paused may thaw.
        _ => Undo::Nothing,
    }
);

control!(
    UnpauseContainer,
    "unpause",
    |verb: &UnpauseContainer| Argv::new(&["unpause"]).positional(&verb.container),
    |_: &UnpauseContainer, _| Undo::Nothing
);
