//! A running command.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::task::AbortOnDropHandle;

use super::outcome::ProcessExit;
use super::request::{Stdin, TtySize};
use crate::backend::BoxFuture;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::words::words;

/// A running command, owned: dropping it ends the command with its whole tree.
#[must_use = "dropping a process ends it"]
pub struct Process {
    pid: u32,
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    output: Option<OutputStream>,
    ending: Ending,
    control: Arc<dyn ProcessControl>,
    feeder: Option<AbortOnDropHandle<io::Result<()>>>,
    detached: bool,
}

type OutputStream = Pin<Box<dyn Stream<Item = OutputChunk> + Send>>;

enum Ending {
    Running(BoxFuture<'static, Result<ProcessExit>>),
    Ended(ProcessExit),
    Failed,
}

/// What a backend makes a [`Process`] of.
#[expect(
    clippy::exhaustive_structs,
    reason = "a backend names every part; a new one is a change of the contract"
)]
pub struct ProcessParts {
    /// Process id inside the sandbox.
    pub pid: u32,
    /// Where standard input is written; shutting it down is its end.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Both outputs, tagged, in the order in which they arrived. Dropping it
    /// means that the rest is to be discarded, not that the command may stall.
    pub output: Pin<Box<dyn Stream<Item = OutputChunk> + Send>>,
    /// The end of the command, after the last of its output was handed over.
    pub exit: BoxFuture<'static, Result<ProcessExit>>,
    /// How to influence it.
    pub control: Arc<dyn ProcessControl>,
}

/// How a backend lets a command be influenced.
pub trait ProcessControl: Send + Sync + 'static {
    /// Sends a signal to the program.
    fn signal(&self, signal: i32) -> BoxFuture<'_, Result<()>>;

    /// Changes the size of its terminal.
    fn resize(&self, size: TtySize) -> BoxFuture<'_, Result<()>>;

    /// Has the command ended with its whole tree. Only asks: never blocks,
    /// needs no runtime, never panics, and may be called more than once.
    fn end(&self, reason: EndReason);

    /// Lets the command go on without its handle. Only asks, as [`ProcessControl::end`].
    fn detach(&self);
}

words! { unranked "reason for the end"
    /// Why a command is ended.
    EndReason {
        /// The call was cancelled, its deadline passed, or the caller asked.
        Cancelled = "cancelled",
        /// Its own timeout passed.
        TimedOut = "timed_out",
        /// It wrote more than its limit.
        OutputLimit = "output_limit",
        /// Its handle was dropped.
        Dropped = "dropped",
    }
}

words! { unranked "stream"
    /// One of the two outputs.
    StreamName {
        /// Standard output; everything, with a terminal.
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
    }
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "backends construct it")]
pub struct OutputChunk {
    /// Where it was written.
    pub stream: StreamName,
    /// What; never empty.
    pub bytes: Bytes,
}

/// Standard input of a command. Shutting it down, or dropping it, is its end.
pub struct ProcessStdin(Box<dyn AsyncWrite + Send + Unpin>);

/// Both outputs of a command, tagged, in the order in which they arrived.
///
/// Ends when the command's output ended. Dropping it discards the rest.
pub struct ProcessOutput(OutputStream);

impl Process {
    /// A process of these parts.
    pub fn new(parts: ProcessParts) -> Self {
        let ProcessParts {
            pid,
            stdin,
            output,
            exit,
            control,
        } = parts;
        Self {
            pid,
            stdin,
            output: Some(output),
            ending: Ending::Running(exit),
            control,
            feeder: None,
            detached: false,
        }
    }

    /// Its process id inside the sandbox.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its standard input, once, when it was asked for with [`Stdin::Piped`].
    pub fn take_stdin(&mut self) -> Option<ProcessStdin> {
        self.stdin.take().map(ProcessStdin)
    }

    /// Its output, once. Not taken, it is discarded while [`Process::wait`] waits.
    pub fn take_output(&mut self) -> Option<ProcessOutput> {
        self.output.take().map(ProcessOutput)
    }

    /// Sends a signal to the program, not to its tree.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a number that is no signal, `Lost` when the way to
    /// the sandbox is gone. A command that has ended is no error.
    pub async fn signal(&self, signal: i32) -> Result<()> {
        self.control.signal(signal).await
    }

    /// Changes the size of its terminal.
    ///
    /// # Errors
    ///
    /// As of [`Process::signal`]; without a terminal nothing happens.
    pub async fn resize(&self, size: TtySize) -> Result<()> {
        self.control.resize(size).await
    }

    /// Has it ended with its whole tree; [`Process::wait`] tells when that is done.
    pub fn end(&self, reason: EndReason) {
        self.control.end(reason);
    }

    /// Lets it go on without this handle.
    pub fn detach(mut self) {
        self.detached = true;
        if let Some(feeder) = self.feeder.take() {
            drop(feeder.detach());
        }
        self.control.detach();
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// `Lost` when the way to the sandbox is gone and the end cannot be known.
    ///
    /// Cancel safety: safe; call it again to go on waiting.
    pub async fn wait(&mut self) -> Result<ProcessExit> {
        std::future::poll_fn(|context| self.poll_wait(context)).await
    }

    /// Feeds standard input from what a request holds.
    pub(crate) fn feed(&mut self, stdin: Stdin) {
        let Some(mut to) = (match stdin {
            Stdin::Bytes(_) | Stdin::Reader(_) => self.stdin.take(),
            Stdin::Closed | Stdin::Piped => None,
        }) else {
            return;
        };
        let feeder = tokio::spawn(async move {
            let fed = match stdin {
                Stdin::Bytes(bytes) => to.write_all(&bytes).await,
                Stdin::Reader(from) => copy(from, &mut to).await,
                Stdin::Closed | Stdin::Piped => Ok(()),
            };
            fed?;
            to.shutdown().await
        });
        self.feeder = Some(AbortOnDropHandle::new(feeder));
    }

    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<Result<ProcessExit>> {
        if let Some(output) = &mut self.output {
            while let Poll::Ready(Some(_)) = output.as_mut().poll_next(context) {}
        }
        let exit = match &mut self.ending {
            Ending::Ended(exit) => return Poll::Ready(Ok(exit.clone())),
            Ending::Failed => return Poll::Ready(Err(already_reported())),
            Ending::Running(exit) => std::task::ready!(exit.as_mut().poll(context)),
        };
        self.ending = match &exit {
            Ok(exit) => Ending::Ended(exit.clone()),
            Err(_) => Ending::Failed,
        };
        Poll::Ready(exit)
    }
}

async fn copy(
    mut from: Box<dyn AsyncRead + Send + Unpin>,
    to: &mut (dyn AsyncWrite + Send + Unpin),
) -> io::Result<()> {
    tokio::io::copy(&mut from, to).await.map(drop)
}

fn already_reported() -> Error {
    Error::new(ErrorKind::Lost, Operation::Wait)
        .message("the command's end is not known; an earlier wait said why")
        .build()
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.detached && matches!(self.ending, Ending::Running(_)) {
            self.control.end(EndReason::Dropped);
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.pid)
            .field("running", &matches!(self.ending, Ending::Running(_)))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProcessParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessParts")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

impl AsyncWrite for ProcessStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl fmt::Debug for ProcessStdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessStdin")
    }
}

impl Stream for ProcessOutput {
    type Item = OutputChunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<OutputChunk>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for ProcessOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessOutput")
    }
}
