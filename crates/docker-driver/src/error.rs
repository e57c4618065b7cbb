//! Failed calls.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::argv::Argv;
use crate::undo::Undo;
use crate::verb::{Exit, Output, ParseError};

/// Longest command that an error holds, in characters.
const LONGEST_COMMAND: usize = 4096;

/// A call that did not answer. One word wide.
///
/// `Display` says what was asked and what is wrong. Docker's own words are in
/// [`detail`](Self::detail) only, and no secret is in any of it.
pub struct CallError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    call: Called,
    kind: CallErrorKind,
    exit: Option<Exit>,
    detail: String,
    aftermath: Aftermath,
    source: Option<Source>,
}

#[derive(Debug)]
enum Source {
    Start(io::Error),
    Answer(ParseError),
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
    /// A container, another image or a second name uses the image.
    ImageInUse,
    /// The container is being removed by somebody else.
    BeingRemoved,
    /// The container is not running.
    NotRunning,
    /// The container is paused.
    Paused,
    /// The container is not paused.
    NotPaused,
    /// Somebody else has paused the container.
    AlreadyPaused,
    /// The engine cannot pause containers.
    PauseUnsupported,
    /// The hold is over: the container may run again.
    HoldEnded,
    /// A copy made no progress for longer than it may, and was ended.
    NoProgress,
    /// There is nothing at this path of the container.
    NoSuchPath,
    /// What is to be unpacked into is no directory of the container.
    NotADirectory,
    /// What is to be written to is read-only.
    ReadOnly,
    /// The engine could not unpack the tar stream.
    TarRefused,
    /// The image has no such user or group.
    UserNotFound,
    /// A step of the build failed, or its recipe is not valid.
    BuildFailed,
    /// There is no Dockerfile in the folder, or no such folder.
    NoDockerfile,
    /// The program does not exist in the container.
    ProgramNotFound,
    /// The program may not be executed, or is no program for this platform.
    ProgramNotExecutable,
    /// The image is for another platform than the one asked for.
    PlatformMismatch,
    /// The registry does not have the image, or not for us.
    NotInRegistry,
    /// The registry demands other credentials.
    RegistryDenied,
    /// The registry cannot be reached.
    RegistryUnreachable,
    /// The engine's disk is full.
    DiskFull,
    /// The engine does not answer.
    DaemonUnreachable,
    /// The engine went away while it was asked: it may have done everything
    /// or nothing.
    ConnectionLost,
    /// We may not use the engine's socket.
    PermissionDenied,
    /// There is no such docker context.
    NoSuchContext,
    /// The docker client does not know a command or an option of ours.
    OptionUnknown,
    /// The words and the environment are longer than the system allows.
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
    /// The runtime that the client was bound in has ended.
    Closed,
    /// Anything else that docker refused or failed at.
    Other,
}

/// What a failed call has left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aftermath {
    /// Nothing.
    Clean,
    /// The change goes on by itself; once it has been made, it is undone, at
    /// most by this.
    Pending(Undo),
    /// Something was left, and has been taken back.
    Undone(Undo),
    /// Something is or may be left, because taking it back failed.
    Left {
        /// What was tried.
        undo: Undo,
        /// Why it failed.
        why: String,
    },
}

impl CallError {
    /// What is wrong.
    pub fn kind(&self) -> CallErrorKind {
        self.0.kind
    }

    /// The verb's name.
    pub fn verb(&self) -> &'static str {
        self.0.call.verb
    }

    /// The command, as a shell would read it; 4096 characters at most.
    pub fn command(&self) -> &str {
        &self.0.call.command
    }

    /// How docker ended, if it was not we who gave up.
    pub fn exit(&self) -> Option<Exit> {
        self.0.exit
    }

    /// The end of what docker wrote to standard error, 64 KiB at most; of a
    /// build, the end of its progress comes first, as much again. For people
    /// and logs, not for decisions.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// What was left behind.
    pub fn aftermath(&self) -> &Aftermath {
        &self.0.aftermath
    }

    pub(crate) fn with_output(mut self, output: &Output) -> Self {
        self.0.exit = Some(output.exit);
        self.0.detail = String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned();
        self
    }

    /// Puts the end of standard output before the rest of the detail.
    pub(crate) fn with_progress(mut self, output: &Output) -> Self {
        let progress = String::from_utf8_lossy(&output.stdout);
        let (progress, rest) = (progress.trim_end(), &self.0.detail);
        self.0.detail = format!("{progress}\n{rest}").trim().to_owned();
        self
    }

    pub(crate) fn with_aftermath(mut self, aftermath: Aftermath) -> Self {
        self.0.aftermath = aftermath;
        self
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "docker {}: {}", self.0.call.verb, self.0.kind)?;
        match (self.0.kind, self.0.exit) {
            (CallErrorKind::Other | CallErrorKind::Signalled, Some(exit)) => write!(f, " ({exit})"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for CallError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self.0.source.as_ref()? {
            Source::Start(error) => Some(error),
            Source::Answer(error) => Some(error),
        }
    }
}

impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NameConflict => "another container has this name",
            Self::NoSuchImage => "the engine has no such image",
            Self::NoSuchContainer => "there is no such container",
            Self::NoSuchVolume => "there is no such volume",
            Self::VolumeInUse => "a container uses the volume",
            Self::ImageInUse => "a container, another image or a second name uses the image",
            Self::BeingRemoved => "the container is being removed",
            Self::NotRunning => "the container is not running",
            Self::Paused => "the container is paused",
            Self::NotPaused => "the container is not paused",
            Self::AlreadyPaused => "somebody else has paused the container",
            Self::PauseUnsupported => "the engine cannot pause containers",
            Self::HoldEnded => "the hold is over, and the container may run again",
            Self::NoProgress => "it made no progress for longer than it may and was ended",
            Self::NoSuchPath => "there is nothing at this path of the container",
            Self::NotADirectory => "the destination is no directory of the container",
            Self::ReadOnly => "the destination is read-only",
            Self::TarRefused => "the engine could not unpack the tar stream",
            Self::UserNotFound => "the image has no such user or group",
            Self::BuildFailed => "a step of the build failed",
            Self::NoDockerfile => "there is no Dockerfile in the folder",
            Self::ProgramNotFound => "the program does not exist in the container",
            Self::ProgramNotExecutable => "the program cannot be executed in the container",
            Self::PlatformMismatch => "the image is for another platform",
            Self::NotInRegistry => "the registry does not have the image, or not for us",
            Self::RegistryDenied => "the registry demands other credentials; try `docker login`",
            Self::RegistryUnreachable => "the registry cannot be reached",
            Self::DiskFull => "the engine's disk is full",
            Self::DaemonUnreachable => "the engine does not answer",
            Self::ConnectionLost => "the connection to the engine was lost",
            Self::PermissionDenied => "no permission to use the engine's socket",
            Self::NoSuchContext => "there is no such docker context",
            Self::OptionUnknown => "the docker client is too old or too new for this call",
            Self::ArgumentsTooLong => "the words and the environment are too long for this system",
            Self::NotStarted => "the docker client could not be started",
            Self::TimedOut => "it ran out of its time and was ended",
            Self::DeadlinePassed => "the caller's deadline passed",
            Self::Cancelled => "it was cancelled",
            Self::OutputTooLarge => "it wrote too much output and was ended",
            Self::UnexpectedAnswer => "its answer cannot be understood",
            Self::Signalled => "it was ended by a signal",
            Self::Closed => "the runtime that the client was bound in has ended",
            Self::Other => "it failed",
        })
    }
}

/// A call, as its errors name it.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    verb: &'static str,
    command: String,
}

impl Called {
    pub(crate) fn new(verb: &'static str, argv: &Argv) -> Self {
        let mut command = argv.to_string();
        if let Some((end, _)) = command.char_indices().nth(LONGEST_COMMAND) {
            command.truncate(end);
        }
        Self { verb, command }
    }

    pub(crate) fn failed(&self, kind: CallErrorKind) -> CallError {
        self.error(kind, None)
    }

    /// The process could not be started, or not be waited for.
    pub(crate) fn not_started(&self, error: io::Error) -> CallError {
        let too_long = error.raw_os_error() == Some(Errno::TOOBIG.raw_os_error());
        let kind = match too_long {
            true => CallErrorKind::ArgumentsTooLong,
            false => CallErrorKind::NotStarted,
        };
        self.error(kind, Some(Source::Start(error)))
    }

    pub(crate) fn unexpected(&self, error: ParseError, output: &Output) -> CallError {
        self.error(CallErrorKind::UnexpectedAnswer, Some(Source::Answer(error)))
            .with_output(output)
    }

    fn error(&self, kind: CallErrorKind, source: Option<Source>) -> CallError {
        CallError(Box::new(Inner {
            call: self.clone(),
            kind,
            exit: None,
            detail: String::new(),
            aftermath: Aftermath::Clean,
            source,
        }))
    }
}
