//! What probes need from inside a sandbox.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use stockade::exec::ExecRequest;
use stockade::files::EntryKind;
use stockade::{BoxFuture, Call, Capabilities, Error, Sandbox};

/// Does in a sandbox what a guest, or a hostile one, would do.
///
/// Paths are absolute and may hold any byte but NUL. Everything is done with
/// the rights of the guest's own user and without the operations under test,
/// so that a lie of theirs cannot hide itself. Futures may be dropped at any
/// time.
pub trait Subject: Send + Sync + 'static {
    /// The capabilities without which it can do nothing.
    fn needs(&self) -> Capabilities;

    /// An existing directory outside of the work directory, in which the
    /// guest can write.
    fn outside(&self) -> Vec<u8>;

    /// The command that does this.
    ///
    /// # Errors
    ///
    /// [`SubjectError::Unsupported`] when the guest at hand has no such command.
    fn command(&self, action: &GuestAction) -> Result<stockade::exec::ExecBuilder, SubjectError>;

    /// Makes a directory, with the ones above it.
    fn plant_directory<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()>;

    /// Writes a file of mode 0644 into a directory that exists.
    fn plant_file<'a>(&'a self, at: &'a At, path: &'a [u8], content: &'a [u8]) -> Doing<'a, ()>;

    /// Makes a file of so many zeros, without the time to write them if possible.
    fn plant_zeros<'a>(&'a self, at: &'a At, path: &'a [u8], size: u64) -> Doing<'a, ()>;

    /// Makes a symbolic link.
    fn plant_symlink<'a>(&'a self, at: &'a At, target: &'a [u8], path: &'a [u8]) -> Doing<'a, ()>;

    /// Makes something that is no file, directory or link, such as a fifo.
    fn plant_special<'a>(&'a self, at: &'a At, kind: EntryKind, path: &'a [u8]) -> Doing<'a, ()>;

    /// Makes a directory that is not the guest's and in which it may not
    /// write, with a file `kept` (content `kept`, readable for its owner only)
    /// in it.
    fn plant_protected<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()>;

    /// Sets the permission bits.
    fn set_mode<'a>(&'a self, at: &'a At, path: &'a [u8], mode: u32) -> Doing<'a, ()>;

    /// Sets when it was last changed, in seconds since 1970.
    fn set_modified<'a>(&'a self, at: &'a At, path: &'a [u8], seconds: u64) -> Doing<'a, ()>;

    /// Fills the file system: one large file at `path`, until no more than
    /// about `leave` bytes are free.
    fn fill_bytes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()>;

    /// Fills the file system: empty files in the directory `path`, until no
    /// more than `leave` more can be made.
    fn fill_inodes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()>;

    /// What is at a path, without following a link there.
    fn look<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Option<Seen>>;

    /// The content of a file, as the guest reads it.
    fn read<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Bytes>;

    /// Whether the guest can write to a file that exists; it may do so.
    fn the_guest_can_write<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool>;

    /// Whether the guest can delete a file; it does so.
    fn the_guest_can_delete<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool>;

    /// Removes a tree; nothing there is success.
    fn clear<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()>;
}

/// What a subject answers, in time.
pub type Doing<'a, T> = BoxFuture<'a, Result<T, SubjectError>>;

/// Where a subject acts, and under which call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct At {
    /// The call of the probe.
    pub call: Call,
    /// The sandbox.
    pub sandbox: Sandbox,
}

/// What a subject saw at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// What it is.
    pub kind: EntryKind,
    /// Bytes.
    pub size: u64,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    /// When it was last changed; whole seconds will do.
    pub modified: SystemTime,
}

/// What the commands of the exec suite do. Each is one command of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuestAction {
    /// Prints each of these in brackets, one a line: `[a b]`.
    PrintArguments(Vec<Vec<u8>>),
    /// Exits with 7.
    ExitSeven,
    /// As [`Self::ExitSeven`], as a shell line.
    ShellExitSeven,
    /// Prints the directory that it runs in, and a line end.
    PrintDirectory,
    /// Prints `to-stdout` and a line end to standard output, `to-stderr` and
    /// a line end to standard error.
    PrintToBoth,
    /// Prints every byte value to both streams, and exits with 7.
    PrintAllBytes,
    /// Prints the variable `CONFORMANCE` and nothing else.
    PrintVariable,
    /// Prints what it reads on standard input.
    Copy,
    /// Prints `begun` and a line end, then sleeps for 30 seconds.
    Sleep,
    /// Prints without end.
    Flood,
    /// Makes `path` a directory and a link to `target` in turns, without end.
    SwapDirectory {
        /// What changes.
        path: Vec<u8>,
        /// What the link points to.
        target: Vec<u8>,
    },
    /// A program that does not exist.
    Missing,
}

/// Why a subject could not do something.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubjectError {
    /// The guest at hand has no means to do it: the probe is skipped.
    Unsupported(String),
    /// It failed: the probe fails.
    Failed(String),
}

impl At {
    /// In this sandbox, under this call.
    #[must_use]
    pub const fn new(call: Call, sandbox: Sandbox) -> Self {
        Self { call, sandbox }
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// The command could not be run, or is no valid request.
    pub async fn exec(
        &self,
        command: stockade::exec::ExecBuilder,
    ) -> Result<stockade::ExecOutcome, SubjectError> {
        let request: ExecRequest = command.build()?;
        Ok(self.sandbox.exec(&self.call, request).await?)
    }
}

impl Seen {
    /// What was seen.
    #[must_use]
    pub const fn new(kind: EntryKind, size: u64, mode: u32, modified: SystemTime) -> Self {
        Self {
            kind,
            size,
            mode,
            modified,
        }
    }
}

impl SubjectError {
    /// The guest has no means to do it.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// It failed.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }
}

impl From<Error> for SubjectError {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => write!(f, "the guest cannot do this: {what}"),
            Self::Failed(what) => write!(f, "the guest failed to do this: {what}"),
        }
    }
}

impl std::error::Error for SubjectError {}
