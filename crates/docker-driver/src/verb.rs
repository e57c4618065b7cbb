//! What every verb says of itself.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use crate::argv::{Argv, ContainerId, ContainerRef, ImageId, ImageRef, VolumeName};
use crate::error::CallErrorKind;
use crate::phrases;
use crate::registry::Registered;
use crate::undo::Undo;

/// Most bytes of standard output that a verb's answer may have, unless the
/// verb says otherwise: 8 MiB.
pub const STDOUT_LIMIT: usize = 8 * 1024 * 1024;

/// One thing that docker can be asked for.
///
/// A verb is a value: it renders itself as words, and reads its own answer.
/// It starts nothing. Verbs come from this crate only, which lists all of them
/// in [`VERBS`](crate::VERBS).
pub trait Verb: Registered + Send + Sync + 'static {
    /// What a successful call answers.
    type Answer: Send + 'static;

    /// The name under which calls are counted, for instance `container run`.
    const NAME: &'static str;

    /// The words of the call.
    fn argv(&self) -> Argv;

    /// Reads the answer of a call that succeeded.
    ///
    /// # Errors
    ///
    /// The output is not what this verb answers.
    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError>;

    /// How long the call may run, counted from the start of its process.
    fn timeout_class(&self) -> TimeoutClass {
        TimeoutClass::Short
    }

    /// Most bytes of standard output.
    fn stdout_limit(&self) -> usize {
        STDOUT_LIMIT
    }

    /// What the process reads on its standard input.
    fn stdin(&self) -> Input {
        Input::Nothing
    }

    /// Whether a call that ended like this answered, or failed.
    fn answered(&self, output: &Output) -> bool {
        output.exit.is_success()
    }

    /// The one object that the call is about. When the call fails, the engine
    /// is asked whether that object exists.
    fn subject(&self) -> Option<Subject> {
        None
    }

    /// The answer when the subject does not exist, for verbs to which that is
    /// an answer and not a failure.
    fn when_absent(&self) -> Option<Self::Answer> {
        None
    }

    /// What a call that failed answers all the same, provided that none of
    /// these containers exists. The engine is asked whether one does.
    fn without(&self, _: &Output) -> Option<(Self::Answer, Vec<ContainerId>)> {
        None
    }

    /// What docker says to be wrong with a call that failed.
    fn said(&self, output: &Output) -> CallErrorKind {
        phrases::classify(output)
    }

    /// Who is told of each line of standard output while the call runs. Only
    /// the end of it is kept then, 64 KiB at most.
    fn progress(&self) -> Option<&LineSink> {
        None
    }

    /// Whether lines of standard error are [`progress`](Self::progress) too.
    /// The end of either is a part of an error's detail then.
    fn progress_is_on_both(&self) -> bool {
        false
    }

    /// The line with which docker asks a person for something that nobody is
    /// there to give; it ends the call. Only seen by verbs with
    /// [`progress`](Self::progress).
    fn prompt(&self) -> Option<&'static str> {
        None
    }
}

/// A verb that changes nothing that would have to be undone. Its process is
/// ended when its future is dropped.
pub trait Query: Verb {}

/// A verb that changes the engine. It runs to its end whoever waits, and is
/// undone when nobody does.
pub trait Mutation: Verb {
    /// What takes the effect back.
    fn undo(&self, effect: Effect<'_, Self::Answer>) -> Undo;
}

/// What is known of the effect of a mutation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Effect<'a, A> {
    /// It succeeded.
    Done(&'a A),
    /// It failed after it had made this container.
    Made(&'a ContainerId),
    /// Docker answered that it did nothing.
    Nothing,
    /// Its process was ended, or the answer was lost: it may have done all,
    /// nothing, or may still be doing it.
    Unknown,
}

/// The two kinds of call, by how long they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutClass {
    /// An ordinary verb: 60 s by default.
    Short,
    /// A pull or a build: 600 s by default.
    Long,
}

/// The object that a verb is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A container.
    Container(ContainerRef),
    /// A volume.
    Volume(VolumeName),
    /// An image of the engine's own store.
    Image(ImageRef),
    /// An image of the engine's own store, by its id.
    ImageId(ImageId),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a process ends in these two ways only"
)]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    /// Exit code 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What a call left when it had ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Output {
    /// How the process ended.
    pub exit: Exit,
    /// Everything that it wrote to standard output, within the verb's limit;
    /// the end of it, if it was told line by line.
    pub stdout: Bytes,
    /// The end of what it wrote to standard error, 64 KiB at most.
    pub stderr: Bytes,
    /// The container that it says to have made.
    pub made: Option<ContainerId>,
    /// The image that it says to have built.
    pub built: Option<ImageId>,
}

/// What a process reads on its standard input.
#[derive(Clone)]
#[non_exhaustive]
pub enum Input {
    /// End of file.
    Nothing,
    /// These bytes. A process that reads only some of them has not failed.
    Bytes(Bytes),
}

impl fmt::Debug for Input {
    /// Sizes only: the bytes are somebody's files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

/// Is told of lines.
///
/// It is called between two reads of docker's output, so it must return at
/// once. Lines come without their ends; a line longer than 8 KiB is left out,
/// and bytes that are not UTF-8 are replaced.
#[derive(Clone)]
pub struct LineSink(Arc<dyn Fn(&str) + Send + Sync>);

impl LineSink {
    /// Tells this function.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn tell(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for LineSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineSink")
    }
}

/// Output that is not what the verb answers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("docker's answer is not {expected}: {why}")]
pub struct ParseError {
    expected: &'static str,
    why: String,
}

impl ParseError {
    pub(crate) fn new(expected: &'static str, why: impl fmt::Display) -> Self {
        Self {
            expected,
            why: why.to_string(),
        }
    }
}
