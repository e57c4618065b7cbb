//! Standard streams of a process, held open.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::error::CallErrorKind;
use crate::phrases;
use crate::verb::{Exit, Output};

/// A process whose standard input and output are the caller's. Dropping it
/// ends and reaps the process in the background.
#[derive(Debug)]
pub struct Stream {
    input: StreamInput,
    output: StreamOutput,
    control: StreamControl,
}

/// Standard input of the process. Shutting it down, or dropping it, is the
/// end of file.
#[derive(Debug)]
pub struct StreamInput(Option<ChildStdin>);

/// Standard output of the process. Its end may come before the process's.
#[derive(Debug)]
pub struct StreamOutput {
    stdout: ChildStdout,
    /// Told of the first output.
    speaks: Option<Arc<Notify>>,
}

/// The process itself. Dropping it ends and reaps the process in the
/// background.
#[derive(Debug)]
pub struct StreamControl {
    ending: Arc<Ending>,
    ended: watch::Receiver<Option<StreamEnd>>,
}

/// Whether a process is to end, as its control and its watcher see it.
///
/// A process that runs for a caller is no work that a client has to settle;
/// one that is being ended is, from the moment on at which that was asked.
#[derive(Debug)]
pub(crate) struct Ending {
    stop: CancellationToken,
    tasks: TaskTracker,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Runs,
    Ends(#[expect(dead_code, reason = "is waited for as long as it exists")] TaskTrackerToken),
    Ended,
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamEnd {
    /// How the docker client ended. For an `exec`, the exit code is the
    /// program's or docker's own, and nothing tells which.
    pub exit: Exit,
    /// Whether it was ended by us.
    pub stopped: bool,
    /// The end of its standard error, 64 KiB at most; the program's and
    /// docker's own.
    pub stderr: Bytes,
}

impl Stream {
    pub(crate) fn new(
        stdin: Option<ChildStdin>,
        stdout: ChildStdout,
        speaks: Arc<Notify>,
        ending: Arc<Ending>,
        ended: watch::Receiver<Option<StreamEnd>>,
    ) -> Self {
        Self {
            input: StreamInput(stdin),
            output: StreamOutput {
                stdout,
                speaks: Some(speaks),
            },
            control: StreamControl { ending, ended },
        }
    }

    /// Its parts, of which the control keeps the process.
    pub fn split(self) -> (StreamInput, StreamOutput, StreamControl) {
        (self.input, self.output, self.control)
    }
}

impl StreamControl {
    /// Ends the process; returns at once.
    pub fn kill(&self) {
        self.ending.ask();
    }

    /// Waits until the process has ended and is reaped. It may be called
    /// again, and answers the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait(&mut self) -> StreamEnd {
        match self
            .ended
            .wait_for(Option::is_some)
            .await
            .map(|end| end.clone())
        {
            Ok(Some(end)) => end,
            // The runtime that watched it has ended, and the process with it.
            Ok(None) | Err(_) => StreamEnd {
                exit: Exit::Signal(9),
                stopped: true,
                stderr: Bytes::new(),
            },
        }
    }
}

impl Drop for StreamControl {
    fn drop(&mut self) {
        self.ending.ask();
    }
}

impl Ending {
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self {
            stop: CancellationToken::new(),
            tasks,
            state: Mutex::new(State::Runs),
        }
    }

    /// Asks for the end.
    pub(crate) fn ask(&self) {
        let mut state = self.state();
        if matches!(*state, State::Runs) {
            *state = State::Ends(self.tasks.token());
        }
        self.stop.cancel();
    }

    /// Resolves when the end was asked for.
    pub(crate) async fn asked(&self) {
        self.stop.cancelled().await;
    }

    /// The process was reaped.
    pub(crate) fn is_over(&self) {
        *self.state() = State::Ended;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamEnd {
    /// What docker itself says to be wrong, if it does: for a stream that
    /// ended before it spoke. What a program writes can look the same.
    pub fn complaint(&self) -> Option<CallErrorKind> {
        let output = self.output();
        let failed = !self.exit.is_success();
        failed
            .then(|| phrases::classify(&output))
            .filter(|kind| *kind != CallErrorKind::Other)
    }

    pub(crate) fn output(&self) -> Output {
        Output {
            exit: self.exit,
            stdout: Bytes::new(),
            stderr: self.stderr.clone(),
            made: None,
            built: None,
        }
    }
}

impl AsyncRead for StreamOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stdout).poll_read(context, buffer))?;
        if let Some(speaks) = self.speaks.take() {
            speaks.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StreamInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Some(stdin) => Pin::new(stdin).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Some(stdin) => Pin::new(stdin).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Closes the pipe: a pipe knows no other end of file.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}
