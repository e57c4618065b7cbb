//! A running command.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::feed::Feeder;
use super::outcome::ProcessExit;
use super::request::{Stdin, TtySize};
use crate::backend::BoxFuture;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::words::words;

/// A running command, owned: dropping it ends the command with its whole tree.
///
/// It is not cloneable: two owners could not both decide about its end.
#[must_use = "dropping a process ends it"]
pub struct Process {
    pid: u32,
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    output: Option<OutputStream>,
    ending: Ending,
    control: Arc<dyn ProcessControl>,
    feeder: Feeder,
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
    /// Process id inside the sandbox; 0 when it never ran.
    pub pid: u32,
    /// Where standard input is written, when the request asked for it.
    /// Shutting it down, or dropping it, is its end. A write fails with
    /// [`io::ErrorKind::BrokenPipe`] when the program reads no more.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Both outputs, tagged, in the order in which they arrived, then the
    /// end. Dropping it means that the rest is to be discarded, never that
    /// the command may stall.
    pub output: Pin<Box<dyn Stream<Item = OutputChunk> + Send>>,
    /// The end of the command. Resolves once the last of its output is in
    /// the stream.
    pub exit: BoxFuture<'static, Result<ProcessExit>>,
    /// How to influence it.
    pub control: Arc<dyn ProcessControl>,
}

/// How a backend lets a command be influenced.
pub trait ProcessControl: Send + Sync + 'static {
    /// Sends a signal to the program. A command that has ended is no error.
    fn signal(&self, signal: i32) -> BoxFuture<'_, Result<()>>;

    /// Changes the size of its terminal. Without one nothing happens.
    fn resize(&self, size: TtySize) -> BoxFuture<'_, Result<()>>;

    /// Has the command ended with its whole tree. Only asks: never blocks,
    /// needs no runtime, never panics, and may be called more than once; the
    /// first reason counts. The end is reported by [`ProcessParts::exit`].
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
#[expect(
    clippy::exhaustive_structs,
    reason = "backends construct it; a piece has a place and content"
)]
pub struct OutputChunk {
    /// Where it was written.
    pub stream: StreamName,
    /// What; never empty.
    pub bytes: Bytes,
}

/// Standard input of a command. Shutting it down, or dropping it, is its end.
///
/// A write to a program that reads no more fails with
/// [`io::ErrorKind::BrokenPipe`].
pub struct ProcessStdin(Box<dyn AsyncWrite + Send + Unpin>);

/// Both outputs of a command, tagged, in the order in which they arrived.
///
/// Ends when the command's output ended. Dropping it discards the rest; kept
/// and not read, it makes the command wait once the way to it is full.
pub struct ProcessOutput(OutputStream);

/// Pieces of output that one poll of [`Process::wait`] discards at most, so
/// that a flood does not keep its task from everything else.
const DISCARDED_AT_ONCE: usize = 64;

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
            feeder: Feeder::default(),
            detached: false,
        }
    }

    /// Its process id inside the sandbox; 0 when it never ran.
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
    /// [`ErrorKind::InvalidRequest`] for a number that is not from 1 to 64,
    /// [`ErrorKind::Lost`] when the way to the sandbox is gone. A command that
    /// has ended is no error.
    ///
    /// Cancel safety: safe; the signal may or may not have been sent.
    pub async fn signal(&self, signal: i32) -> Result<()> {
        if !(1..=64).contains(&signal) {
            let message = format!("signal {signal} does not exist; give a number from 1 to 64");
            return Err(Error::new(ErrorKind::InvalidRequest, Operation::Signal)
                .message(message)
                .into());
        }
        self.control.signal(signal).await
    }

    /// Changes the size of its terminal; without one nothing happens.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] when the way to the sandbox is gone.
    ///
    /// Cancel safety: safe; the size may or may not have changed.
    pub async fn resize(&self, size: TtySize) -> Result<()> {
        self.control.resize(size).await
    }

    /// Has it ended with its whole tree; [`Process::wait`] tells when that is
    /// done. Never blocks, and does nothing to a command that has ended.
    pub fn end(&self, reason: EndReason) {
        self.control.end(reason);
    }

    /// Lets it go on without this handle, until its own timeout.
    ///
    /// It outlives the way to the sandbox only with
    /// [`Background::Keep`](super::Background::Keep). Standard input that the
    /// request holds is still fed to its end; its output is discarded.
    pub fn detach(mut self) {
        self.detached = true;
        self.feeder.detach();
        self.control.detach();
    }

    /// Waits for its end.
    ///
    /// Needs nobody to read: output that was not taken is discarded, and
    /// standard input that was not taken is closed, as a program that waits
    /// for it could never end. Called again after the end, it gives the same.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] when the way to the sandbox is gone and the end
    /// cannot be known; [`ErrorKind::InvalidRequest`] when the reader of the
    /// request's standard input failed, for which the command was ended.
    ///
    /// Cancel safety: safe; call it again to go on waiting.
    pub async fn wait(&mut self) -> Result<ProcessExit> {
        self.stdin = None;
        std::future::poll_fn(|context| self.poll_wait(context)).await
    }

    /// Feeds standard input from what a request holds, until it ends or the
    /// command does.
    pub(crate) fn feed(&mut self, from: Stdin) {
        if let Stdin::Bytes(_) | Stdin::Reader(_) = &from
            && let Some(to) = self.stdin.take()
        {
            self.feeder = Feeder::start(from, to, Arc::clone(&self.control));
        }
    }

    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<Result<ProcessExit>> {
        self.discard_output(context);
        let exit = match &mut self.ending {
            Ending::Ended(exit) => return Poll::Ready(Ok(exit.clone())),
            Ending::Failed => return Poll::Ready(Err(already_reported())),
            Ending::Running(exit) => ready!(exit.as_mut().poll(context)),
        };
        let exit = match self.feeder.take_failure() {
            Some(source) => Err(input_failed(source)),
            None => exit,
        };
        self.feeder = Feeder::default();
        self.ending = match &exit {
            Ok(exit) => Ending::Ended(exit.clone()),
            Err(_) => Ending::Failed,
        };
        Poll::Ready(exit)
    }

    fn discard_output(&mut self, context: &mut Context<'_>) {
        for _ in 0..DISCARDED_AT_ONCE {
            let Some(output) = &mut self.output else {
                return;
            };
            match output.as_mut().poll_next(context) {
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => self.output = None,
                Poll::Pending => return,
            }
        }
        context.waker().wake_by_ref();
    }
}

fn already_reported() -> Error {
    Error::new(ErrorKind::Lost, Operation::Wait)
        .message("the command's end is not known; an earlier wait said why")
        .build()
}

fn input_failed(source: io::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, Operation::Wait)
        .message(
            "the reader given for standard input failed, and the command was ended; give one \
             that can be read to its end",
        )
        .source(source)
        .build()
}

impl Drop for Process {
    fn drop(&mut self) {
        // A way to the sandbox that is lost may come back, and the command with it.
        let may_run = !matches!(self.ending, Ending::Ended(_));
        if may_run && !self.detached {
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

impl ProcessStdin {
    /// Writes everything, then the end.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::BrokenPipe`] when the program reads no more.
    ///
    /// Cancel safety: not safe; a part may have been written.
    pub async fn write_all_and_close(mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.shutdown().await
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

impl ProcessOutput {
    /// The next piece, or `None` at the end.
    ///
    /// Cancel safety: safe; no piece is lost.
    pub async fn next(&mut self) -> Option<OutputChunk> {
        std::future::poll_fn(|context| self.0.as_mut().poll_next(context)).await
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
