//! Failed calls.

use std::error::Error as StdError;
use std::fmt;

use crate::undo::Undo;
use crate::verb::Exit;

/// A call that did not answer. One word wide.
///
/// `Display` says what was asked and what is wrong; docker's own words are in
/// [`detail`](Self::detail) only.
pub struct CallError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    verb: &'static str,
    command: String,
    kind: CallErrorKind,
    exit: Option<Exit>,
    detail: String,
    aftermath: Aftermath,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// Another container has this name.
    NameConflict,
    /// The engine has no such image.
    NoSuchImage,
    /// There is no such container.
    NoSuchContainer,
    /// There is no such volume.
    NoSuchVolume,
    /// A container uses the volume.
    VolumeInUse,
    /// The container is not running.
    NotRunning,
    /// The container is paused.
    Paused,
    /// The container is not paused.
    NotPaused,
    /// The image has no such user.
    UserNotFound,
    /// The program does not exist in the container.
    ProgramNotFound,
    /// The program may not be executed, or is for another platform.
    ProgramNotExecutable,
    /// The image is for another platform than the one asked for.
    PlatformMismatch,
    /// The registry does not have the image.
    NotInRegistry,
    /// The registry demands other credentials.
    RegistryDenied,
    /// The registry cannot be reached.
    RegistryUnreachable,
    /// The engine's disk is full.
    DiskFull,
    /// The engine does not answer.
    DaemonUnreachable,
    /// We may not use the engine's socket.
    PermissionDenied,
    /// The docker client does not know an option of ours.
    OptionUnknown,
    /// The words or the environment are longer than the system allows.
    ArgumentsTooLong,
    /// The docker client could not be started.
    NotStarted,
    /// The call ran longer than its verb may, and was ended.
    TimedOut,
    /// The caller's deadline passed.
    DeadlinePassed,
    /// The caller cancelled.
    Cancelled,
    /// More output than the verb may have; the call was ended.
    OutputTooLarge,
    /// The answer is not what the verb answers.
    UnexpectedAnswer,
    /// The docker client was ended by a signal that is not ours.
    Signalled,
    /// The client that this call belongs to has been closed.
    Closed,
    /// Anything else that docker refused or failed at.
    Other,
}

/// What a failed mutation has left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aftermath {
    /// Nothing.
    Clean,
    /// The mutation goes on by itself; when it has ended, this is done.
    Pending(Undo),
    /// Something was left, and has been taken back.
    Undone(Undo),
    /// Something may be left, because taking it back failed.
    Left {
        /// What was tried.
        undo: Undo,
        /// Why it failed.
        why: String,
    },
    /// Something may be left that cannot be told from somebody else's.
    Unknown,
}

impl CallError {
    /// What is wrong.
    pub fn kind(&self) -> CallErrorKind {
        self.0.kind
    }

    /// The verb's name.
    pub fn verb(&self) -> &'static str {
        self.0.verb
    }

    /// The command, as a shell would read it; without secrets.
    pub fn command(&self) -> &str {
        &self.0.command
    }

    /// How docker ended, if it did.
    pub fn exit(&self) -> Option<Exit> {
        self.0.exit
    }

    /// The end of what docker wrote to standard error; for logs, not for
    /// decisions.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// What was left behind.
    pub fn aftermath(&self) -> &Aftermath {
        &self.0.aftermath
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "docker {} failed: {:?}", self.0.verb, self.0.kind)
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for CallError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
