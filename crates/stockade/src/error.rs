//! What went wrong with an operation, as opposed to with a guest's program.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::call::{Interruption, Phase};
use crate::fault::{Fault, SpecErrors, listed};
use crate::files::Arrived;
use crate::refusal::Refusal;
use crate::words::words;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An operation could not do its job.
///
/// What a guest's program did is never an error: its exit code, signal,
/// timeout and output limit are values of
/// [`ExecStatus`](crate::exec::ExecStatus).
///
/// Match on [`Error::kind`], on [`Error::refusal`] for the reason of a
/// refusal, and on [`Error::retry`] for what to do. `Display` is one line that
/// says what was asked, what is wrong and what to do; `Debug` is several lines
/// with everything. [`source`](std::error::Error::source) is for logs: its
/// type may change.
pub struct Error(Box<Inner>);

/// Makes an [`Error`]; converts into one with `?`, `into` and [`ErrorBuilder::build`].
#[must_use = "an error that is not returned is lost"]
pub struct ErrorBuilder(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Operation,
    phase: Option<Phase>,
    message: String,
    refusal: Option<Refusal>,
    faults: Vec<Fault>,
    retry: Option<Retry>,
    left_behind: Vec<LeftBehind>,
    arrived: Option<Arrived>,
    detail: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

words! { unranked "error kind"
    /// What went wrong, coarsely.
    ErrorKind {
        /// The spec cannot be served as it stands; see [`Error::refusal`].
        Refused = "refused",
        /// The caller's input is not valid; see [`Error::faults`].
        InvalidRequest = "invalid_request",
        /// What does the work is not there or does not answer.
        Unavailable = "unavailable",
        /// What was named does not exist.
        NotFound = "not_found",
        /// It is in use, or somebody else is at it.
        Conflict = "conflict",
        /// A limit was reached.
        LimitExceeded = "limit_exceeded",
        /// The call's deadline passed.
        TimedOut = "timed_out",
        /// The call was cancelled.
        Cancelled = "cancelled",
        /// The sandbox, or the way to it, is gone.
        Lost = "lost",
        /// It should not have happened.
        Internal = "internal",
    }
}

words! { unranked "operation"
    /// What was being done.
    Operation {
        /// Making a backend ready.
        Bind = "bind",
        /// Building a spec.
        BuildSpec = "build_spec",
        /// Checking whether a spec can be served.
        Admit = "admit",
        /// Getting a sandbox.
        Acquire = "acquire",
        /// Building a request for a command.
        BuildRequest = "build_request",
        /// Starting a command.
        Spawn = "spawn",
        /// Running a command to its end.
        Exec = "exec",
        /// Waiting for the end of a command.
        Wait = "wait",
        /// Sending a signal to a command.
        Signal = "signal",
        /// Changing the size of a terminal.
        Resize = "resize",
        /// Writing files.
        WriteFiles = "write_files",
        /// Reading files.
        ReadFiles = "read_files",
        /// Looking at a file.
        Stat = "stat",
        /// Listing a directory.
        ListDir = "list_dir",
        /// Removing a file or a directory.
        Remove = "remove",
        /// Removing a directory of the host's own.
        Reclaim = "reclaim",
        /// Bringing a sandbox back to a known state.
        Reset = "reset",
        /// Removing the sandboxes of a key.
        Dispose = "dispose",
        /// Removing the sandboxes of a conversation.
        DisposeScope = "dispose_scope",
        /// Removing what is old or idle.
        Reap = "reap",
        /// Looking at what there is, for an operator.
        Inspect = "inspect",
        /// Removing what nobody uses, for an operator.
        Prune = "prune",
        /// Making ready ahead, for an operator.
        SetUp = "set_up",
        /// Removing everything, for an operator.
        TearDown = "tear_down",
        /// Closing a backend.
        Close = "close",
    }
}

words! { unranked "retry"
    /// Whether trying again can help.
    Retry {
        /// Not with the same request.
        Never = "never",
        /// The same request may work later.
        Later = "later",
        /// Another backend may serve it.
        OtherBackend = "other_backend",
    }
}

/// Something that an operation made and could not remove again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftBehind {
    /// What it is.
    pub what: LeftBehindKind,
    /// Its name or id.
    pub name: String,
    /// How it will go.
    pub removal: Removal,
}

words! { unranked "leftover"
    /// What was left behind.
    LeftBehindKind {
        /// A container.
        Container = "container",
        /// A volume.
        Volume = "volume",
        /// A network.
        Network = "network",
        /// An image.
        Image = "image",
        /// A process of the guest.
        Process = "process",
        /// A file of the host.
        File = "file",
    }
}

/// How something that was left behind will go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// This process goes on removing it; closing the backend waits for that.
    Scheduled,
    /// It ends by itself within this time.
    ByItself {
        /// The longest it can last.
        within: Duration,
    },
    /// Reaping removes it.
    ByReap,
    /// Somebody must remove it, like this.
    ByHand {
        /// What to do.
        how: String,
    },
}

const _: () = assert!(size_of::<Error>() == size_of::<usize>());

impl Error {
    /// Starts an error.
    #[expect(
        clippy::new_ret_no_self,
        reason = "an error is built up part by part, and read once it is whole"
    )]
    pub fn new(kind: ErrorKind, operation: Operation) -> ErrorBuilder {
        ErrorBuilder(Box::new(Inner {
            kind,
            operation,
            phase: None,
            message: String::new(),
            refusal: None,
            faults: Vec::new(),
            retry: None,
            left_behind: Vec::new(),
            arrived: None,
            detail: String::new(),
            source: None,
        }))
    }

    /// A refusal.
    #[must_use]
    pub fn refused(operation: Operation, refusal: Refusal) -> Self {
        let mut builder = Self::new(refusal.kind(), operation);
        builder.0.refusal = Some(refusal);
        builder.build()
    }

    /// Faults of the caller's input.
    pub(crate) fn invalid(operation: Operation, faults: Vec<Fault>) -> Self {
        let mut builder = Self::new(ErrorKind::InvalidRequest, operation);
        builder.0.faults = faults;
        builder.build()
    }

    /// The error of a call that had to end: timed out or cancelled.
    pub fn interrupted(operation: Operation, why: Interruption) -> ErrorBuilder {
        let kind = match why {
            Interruption::DeadlinePassed => ErrorKind::TimedOut,
            Interruption::Cancelled => ErrorKind::Cancelled,
        };
        Self::new(kind, operation)
    }

    /// What went wrong, coarsely.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The reason, when the spec was refused.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// The faults of the caller's input, when it is not valid.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.0.faults
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry()
    }

    /// What was being done.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// How far it had come.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        self.0.phase
    }

    /// What could not be removed again; empty when nothing was left behind.
    #[must_use]
    pub fn left_behind(&self) -> &[LeftBehind] {
        &self.0.left_behind
    }

    /// What a write that failed had written by then; nothing for other
    /// operations, and when nothing was written.
    #[must_use]
    pub fn arrived(&self) -> Option<&Arrived> {
        self.0.arrived.as_ref()
    }

    /// Raw text for logs, such as the end of what a program wrote; bounded,
    /// not part of `Display`, and possibly empty.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Reopens the error, to add what an outer layer knows.
    pub fn reopen(self) -> ErrorBuilder {
        ErrorBuilder(self.0)
    }
}

impl ErrorBuilder {
    /// What is wrong and what to do: a lower-case fragment on one line.
    ///
    /// Not shown for a refusal and for faults, which speak for themselves.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// How far the operation had come.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.0.phase = Some(phase);
        self
    }

    /// The phase that the call is in.
    pub fn phase_of(mut self, call: &crate::Call) -> Self {
        self.0.phase = call.phase().or(self.0.phase);
        self
    }

    /// Whether trying again can help; derived from kind and refusal otherwise.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = Some(retry);
        self
    }

    /// Adds something that could not be removed.
    pub fn left_behind(mut self, left: LeftBehind) -> Self {
        self.0.left_behind.push(left);
        self
    }

    /// What was written all the same; left out when it is nothing.
    pub fn arrived(mut self, arrived: Arrived) -> Self {
        self.0.arrived = (!arrived.is_nothing()).then_some(arrived);
        self
    }

    /// Raw text for logs; its last 8 KiB are kept.
    pub fn detail(mut self, detail: impl AsRef<str>) -> Self {
        self.0.detail = tail(detail.as_ref()).to_owned();
        self
    }

    /// The error underneath.
    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The error.
    #[must_use]
    pub fn build(self) -> Error {
        Error(self.0)
    }
}

impl Inner {
    fn retry(&self) -> Retry {
        if let Some(retry) = self.retry {
            return retry;
        }
        match (self.kind, &self.refusal) {
            (_, Some(refusal)) => refusal.retry(),
            (
                ErrorKind::Unavailable
                | ErrorKind::Conflict
                | ErrorKind::LimitExceeded
                | ErrorKind::TimedOut
                | ErrorKind::Lost,
                None,
            ) => Retry::Later,
            (
                ErrorKind::Refused
                | ErrorKind::InvalidRequest
                | ErrorKind::NotFound
                | ErrorKind::Cancelled
                | ErrorKind::Internal,
                None,
            ) => Retry::Never,
        }
    }

    /// What is wrong, on one line.
    fn what(&self) -> String {
        if let Some(refusal) = &self.refusal {
            return refusal.to_string();
        }
        if !self.faults.is_empty() {
            return listed(&self.faults);
        }
        if !self.message.is_empty() {
            return self.message.clone();
        }
        self.kind.description().to_owned()
    }
}

impl ErrorKind {
    /// What it means, for an error that says nothing else.
    const fn description(self) -> &'static str {
        match self {
            Self::Refused => "the spec cannot be served as it stands",
            Self::InvalidRequest => "the request is not valid",
            Self::Unavailable => "what does the work is not there or does not answer",
            Self::NotFound => "what was named does not exist",
            Self::Conflict => "it is in use; try again when it is idle",
            Self::LimitExceeded => "a limit was reached",
            Self::TimedOut => "the call's deadline passed; give it more time",
            Self::Cancelled => "the call was cancelled",
            Self::Lost => "the sandbox, or the way to it, is gone; acquire it again",
            Self::Internal => "an error that should not happen; please report it",
        }
    }
}

impl LeftBehind {
    /// Something of this name, and how it will go.
    pub fn new(what: LeftBehindKind, name: impl Into<String>, removal: Removal) -> Self {
        Self {
            what,
            name: name.into(),
            removal,
        }
    }
}

/// One line: the operation, its phase, what is wrong and what to do, and what
/// was left behind.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.operation.as_str().replace('_', " "))?;
        if let Some(phase) = self.0.phase {
            write!(f, " ({phase})")?;
        }
        write!(f, ": {}", one_line(&self.0.what()))?;
        if let Some(arrived) = &self.0.arrived {
            write!(f, "; {arrived}")?;
        }
        for left in &self.0.left_behind {
            write!(f, "; left behind: {left}")?;
        }
        Ok(())
    }
}

/// Several lines: everything that is known, the errors underneath included.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{self}")?;
        write!(f, "  kind: {}, retry: {}", self.kind(), self.retry())?;
        if let Some(refusal) = self.refusal() {
            write!(f, ", refusal: {}", refusal.code())?;
        }
        let mut source = StdError::source(self);
        while let Some(error) = source {
            write!(f, "\n  because: {}", one_line(&error.to_string()))?;
            source = error.source();
        }
        for line in self.detail().lines() {
            write!(f, "\n  | {}", one_line(line))?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}

impl fmt::Debug for ErrorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorBuilder")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .finish_non_exhaustive()
    }
}

/// Such as `container stockade-0123456789ab (reaping removes it)`.
impl fmt::Display for LeftBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            name,
            removal,
        } = self;
        write!(f, "{what} {} ({removal})", one_line(name))
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheduled => f.write_str("removal goes on"),
            Self::ByItself { within } => write!(f, "ends by itself within {within:?}"),
            Self::ByReap => f.write_str("reaping removes it"),
            Self::ByHand { how } => write!(f, "remove it with `{}`", one_line(how)),
        }
    }
}

impl From<ErrorBuilder> for Error {
    fn from(builder: ErrorBuilder) -> Self {
        builder.build()
    }
}

impl From<(Operation, Refusal)> for Error {
    fn from((operation, refusal): (Operation, Refusal)) -> Self {
        Self::refused(operation, refusal)
    }
}

impl From<SpecErrors> for Error {
    fn from(errors: SpecErrors) -> Self {
        Self::invalid(Operation::BuildSpec, errors.into_faults())
    }
}

/// Text without line breaks and other control characters.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Most bytes of [`Error::detail`].
const DETAIL: usize = 8 * 1024;

fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(DETAIL);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}
