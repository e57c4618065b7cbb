//! A command to run.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncRead;

use super::check;
use crate::error::Error;
use crate::error::Operation;
use crate::words::words;

/// Time that a command has unless told otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Longest time that a command can be given: the highest age of a sandbox.
pub const TIMEOUT_CEILING: Duration = crate::spec::MAX_AGE_CEILING;

/// Bytes of both outputs together that a command may write unless told otherwise.
pub const OUTPUT_LIMIT: u64 = 8 * 1024 * 1024;

/// A command to run, checked.
///
/// Everything that the guest sees is bytes. `Debug` prints neither the values
/// of variables nor what stands on standard input.
pub struct ExecRequest {
    pub(super) program: Program,
    pub(super) env: Vec<(String, Vec<u8>)>,
    pub(super) cwd: Option<Vec<u8>>,
    pub(super) stdin: Stdin,
    pub(super) timeout: Duration,
    pub(super) output_limit: u64,
    pub(super) at_output_limit: AtOutputLimit,
    pub(super) tty: Option<TtySize>,
    pub(super) background: Background,
    pub(super) tools: bool,
}

/// Builds an [`ExecRequest`]. Nothing is checked before [`ExecBuilder::build`].
#[must_use = "a builder makes nothing until `build`"]
pub struct ExecBuilder {
    request: ExecRequest,
}

/// What to run.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every backend must know how to run each; a third is a change of the contract"
)]
pub enum Program {
    /// A program and its arguments, never empty; looked up in the command's
    /// own `PATH` unless it holds a slash.
    Argv(Vec<Vec<u8>>),
    /// A line for the image's `/bin/sh -c`.
    Shell(Vec<u8>),
}

/// What a command reads on standard input.
#[derive(Default)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing: it is at its end from the start. The default.
    #[default]
    Closed,
    /// These bytes, then the end.
    Bytes(Bytes),
    /// What this reader gives, then the end.
    Reader(Box<dyn AsyncRead + Send + Unpin>),
    /// What is written to [`Process::take_stdin`](super::Process::take_stdin).
    Piped,
}

words! { unranked "rule at the output limit"
    /// What happens when a command has written more than its limit.
    #[derive(Default)]
    AtOutputLimit {
        /// It is ended with its whole tree. The default.
        #[default]
        End = "end",
        /// It goes on; three quarters of the limit are kept from the start
        /// and one quarter from the end.
        KeepHeadAndTail = "keep_head_and_tail",
    }
}

words! { unranked "background"
    /// What happens to processes that outlive the program.
    #[derive(Default)]
    Background {
        /// They are ended with it. The default.
        #[default]
        Kill = "kill",
        /// They go on, and the command outlives the way to it.
        Keep = "keep",
    }
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a terminal has two sizes")]
pub struct TtySize {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

impl ExecRequest {
    /// Starts a request for a program and its arguments.
    pub fn argv(argv: impl IntoIterator<Item = impl AsRef<[u8]>>) -> ExecBuilder {
        let argv = argv.into_iter();
        ExecBuilder::new(Program::Argv(
            argv.map(|argument| argument.as_ref().to_vec()).collect(),
        ))
    }

    /// Starts a request for a shell line; needs the image's `/bin/sh`.
    pub fn shell(line: impl AsRef<[u8]>) -> ExecBuilder {
        ExecBuilder::new(Program::Shell(line.as_ref().to_vec()))
    }

    /// What to run.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Variables on top of the sandbox's, in the order given, no name twice.
    pub fn env(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Where it starts; relative to the work directory, which is the default.
    #[must_use]
    pub fn cwd(&self) -> Option<&[u8]> {
        self.cwd.as_deref()
    }

    /// What it reads on standard input.
    #[must_use]
    pub fn stdin(&self) -> &Stdin {
        &self.stdin
    }

    /// Takes out what it reads on standard input, and leaves
    /// [`Stdin::Piped`] in place of bytes and readers.
    #[must_use]
    pub fn take_stdin(&mut self) -> Stdin {
        let left = match self.stdin {
            Stdin::Closed => Stdin::Closed,
            _ => Stdin::Piped,
        };
        std::mem::replace(&mut self.stdin, left)
    }

    /// The time that it has from its start.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Bytes of both outputs together.
    #[must_use]
    pub fn output_limit(&self) -> u64 {
        self.output_limit
    }

    /// What happens when it has written more.
    #[must_use]
    pub fn at_output_limit(&self) -> AtOutputLimit {
        self.at_output_limit
    }

    /// The number of bytes after which a backend must end it, if any.
    #[must_use]
    pub fn ends_after(&self) -> Option<u64> {
        let ends = self.at_output_limit == AtOutputLimit::End && self.output_limit != u64::MAX;
        ends.then_some(self.output_limit)
    }

    /// The terminal that it gets instead of pipes.
    #[must_use]
    pub fn tty(&self) -> Option<TtySize> {
        self.tty
    }

    /// What happens to processes that outlive the program.
    #[must_use]
    pub fn background(&self) -> Background {
        self.background
    }

    /// Whether it may call the host's tools.
    #[must_use]
    pub fn tools(&self) -> bool {
        self.tools
    }
}

impl ExecBuilder {
    fn new(program: Program) -> Self {
        Self {
            request: ExecRequest {
                program,
                env: Vec::new(),
                cwd: None,
                stdin: Stdin::Closed,
                timeout: TIMEOUT,
                output_limit: OUTPUT_LIMIT,
                at_output_limit: AtOutputLimit::default(),
                tty: None,
                background: Background::default(),
                tools: false,
            },
        }
    }

    /// Adds a variable; a later one of the same name replaces it.
    pub fn env(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        let name = name.into();
        self.request.env.retain(|(other, _)| *other != name);
        self.request.env.push((name, value.as_ref().to_vec()));
        self
    }

    /// Adds variables; see [`ExecBuilder::env`].
    pub fn envs<N: Into<String>, V: AsRef<[u8]>>(
        self,
        env: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        env.into_iter()
            .fold(self, |builder, (name, value)| builder.env(name, value))
    }

    /// Where it starts; relative to the work directory, which is the default.
    pub fn cwd(mut self, cwd: impl AsRef<[u8]>) -> Self {
        self.request.cwd = Some(cwd.as_ref().to_vec());
        self
    }

    /// What it reads on standard input; nothing by default.
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.request.stdin = stdin;
        self
    }

    /// The time that it has from its start; 120 seconds by default, 7 days
    /// at most, never zero. There is no command without a timeout.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout = timeout;
        self
    }

    /// Bytes of both outputs together; 8 MiB by default. `u64::MAX` is no
    /// limit, for outputs that are streamed.
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.request.output_limit = bytes;
        self
    }

    /// What happens when it has written more; it is ended by default.
    pub fn at_output_limit(mut self, rule: AtOutputLimit) -> Self {
        self.request.at_output_limit = rule;
        self
    }

    /// A terminal instead of pipes; its output comes as standard output.
    pub fn tty(mut self, size: Option<TtySize>) -> Self {
        self.request.tty = size;
        self
    }

    /// What happens to processes that outlive the program; they are ended by default.
    pub fn background(mut self, background: Background) -> Self {
        self.request.background = background;
        self
    }

    /// Whether it may call the host's tools; not by default.
    pub fn tools(mut self, tools: bool) -> Self {
        self.request.tools = tools;
        self
    }

    /// The request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) with
    /// every fault of every field.
    pub fn build(self) -> Result<ExecRequest, Error> {
        let mut faults = Vec::new();
        check::all(&self.request, &mut faults);
        if faults.is_empty() {
            Ok(self.request)
        } else {
            Err(Error::invalid(Operation::BuildRequest, faults))
        }
    }
}

impl Stdin {
    /// These bytes, then the end.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// What this reader gives, then the end.
    pub fn reader(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::Reader(Box::new(reader))
    }

    /// Whether the command has a standard input that must be fed or closed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed)
    }
}

impl fmt::Debug for ExecRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ExecRequest")
            .field("program", &self.program)
            .field("env", &names)
            .field("cwd", &self.cwd.as_deref().map(crate::text::excerpt_bytes))
            .field("stdin", &self.stdin)
            .field("timeout", &self.timeout)
            .field("output_limit", &self.output_limit)
            .field("at_output_limit", &self.at_output_limit)
            .field("tty", &self.tty)
            .field("background", &self.background)
            .field("tools", &self.tools)
            .finish()
    }
}

impl fmt::Debug for ExecBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = |argv: &[Vec<u8>]| -> Vec<String> {
            argv.iter()
                .map(|argument| crate::text::excerpt_bytes(argument))
                .collect()
        };
        match self {
            Self::Argv(argv) => f.debug_tuple("Argv").field(&texts(argv)).finish(),
            Self::Shell(line) => {
                let line = crate::text::excerpt_bytes(line);
                f.debug_tuple("Shell").field(&line).finish()
            }
        }
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("Closed"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
            Self::Piped => f.write_str("Piped"),
        }
    }
}
