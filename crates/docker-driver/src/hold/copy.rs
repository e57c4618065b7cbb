//! Copies within a hold.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::Hold;
use crate::error::{CallError, CallErrorKind, Called};
use crate::stream::{Stream, StreamControl, StreamEnd, StreamInput, StreamOutput};
use crate::verb::{Exit, ParseError};
use crate::verbs::copy;

/// Most bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// A tar stream on its way into a held container. Dropped, the docker client
/// is ended; what it has sent by then, the engine may still unpack.
#[derive(Debug)]
pub struct TarIn<'hold> {
    copy: Copy<'hold>,
    input: StreamInput,
    /// Docker says nothing there when it has unpacked what it read.
    output: StreamOutput,
}

/// A tar stream on its way out of a held container. Dropped, it is ended.
#[derive(Debug)]
pub struct TarOut<'hold> {
    copy: Copy<'hold>,
    output: StreamOutput,
    buffer: BytesMut,
    ended: bool,
}

#[derive(Debug)]
struct Copy<'hold> {
    hold: &'hold Hold,
    call: Called,
    control: StreamControl,
}

impl<'hold> TarIn<'hold> {
    pub(super) fn new(hold: &'hold Hold, call: Called, stream: Stream) -> Self {
        let (input, output, control) = stream.split();
        Self {
            copy: Copy {
                hold,
                call,
                control,
            },
            input,
            output,
        }
    }

    /// Sends the next bytes.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`], [`CallErrorKind::NoProgress`], or what
    /// docker says. Whatever it is, the copy has ended, and what is in the
    /// container is what was sent before, in part or whole; nothing if these
    /// would have been the first bytes.
    ///
    /// # Cancel safety
    ///
    /// None: some of the bytes may have been sent.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), CallError> {
        let mut left = &bytes[..];
        while !left.is_empty() {
            // Also before the first byte of all: after the copy was started.
            if !self.copy.hold.is_in_force() {
                return Err(self.copy.abort(CallErrorKind::HoldEnded).await);
            }
            let limit = self.copy.hold.no_progress;
            match timeout(limit, self.input.write(left)).await {
                Ok(Ok(written)) => left = &left[written..],
                Ok(Err(error)) => return Err(self.broken(error).await),
                Err(_) => return Err(self.copy.abort(CallErrorKind::NoProgress).await),
            }
        }
        Ok(())
    }

    /// Ends the stream, and waits until docker has unpacked it.
    ///
    /// # Errors
    ///
    /// What docker says, for instance [`CallErrorKind::DiskFull`]: some of it
    /// may be there.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the docker client; the engine may go on.
    pub async fn finish(mut self) -> Result<(), CallError> {
        let limit = self.copy.hold.no_progress;
        // It closes the pipe, and cannot fail.
        let _ = self.input.shutdown().await;
        match timeout(limit, self.copy.control.wait()).await {
            // Whole, and unpacked while it was frozen: the engine thaws none
            // in the middle of a copy, and the guard ends copies first.
            Ok(end) if end.exit.is_success() => self.is_silent(&end).await,
            Ok(end) => Err(self.copy.failed(end).await),
            Err(_) => Err(self.copy.abort(CallErrorKind::NoProgress).await),
        }
    }

    /// A client that answers where docker says nothing is none that has
    /// copied.
    async fn is_silent(&mut self, end: &StreamEnd) -> Result<(), CallError> {
        let mut said = [0; 64];
        let limit = self.copy.hold.no_progress;
        match timeout(limit, self.output.read(&mut said)).await {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(_)) => {
                let error = copy::spoke();
                Err(self.copy.call.unexpected(error, &end.output()))
            }
            Ok(Err(error)) => {
                let error = ParseError::new(copy::SILENCE, error);
                Err(self.copy.call.unexpected(error, &end.output()))
            }
            Err(_) => Err(self.copy.abort(CallErrorKind::NoProgress).await),
        }
    }

    /// Docker does not read on.
    async fn broken(&mut self, error: io::Error) -> CallError {
        let limit = self.copy.hold.no_progress;
        match timeout(limit, self.copy.control.wait()).await {
            Ok(end) if end.exit.is_success() => {
                let why = format!("it ended before it had read everything ({error})");
                let error = ParseError::new("that of a whole copy", why);
                self.copy.call.unexpected(error, &end.output())
            }
            Ok(end) => self.copy.failed(end).await,
            Err(_) => self.copy.abort(CallErrorKind::NoProgress).await,
        }
    }
}

impl<'hold> TarOut<'hold> {
    pub(super) fn new(hold: &'hold Hold, call: Called, stream: Stream) -> Self {
        let (_, output, control) = stream.split();
        Self {
            copy: Copy {
                hold,
                call,
                control,
            },
            output,
            buffer: BytesMut::new(),
            ended: false,
        }
    }

    /// The next bytes, or `None` at the end of the stream. Only
    /// [`finish`](Self::finish) says whether that is all.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::NoProgress`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        if self.ended {
            return Ok(None);
        }
        self.buffer.reserve(CHUNK);
        let limit = self.copy.hold.no_progress;
        match timeout(limit, self.output.read_buf(&mut self.buffer)).await {
            Ok(Ok(1..)) => Ok(Some(self.buffer.split().freeze())),
            // An error is an end too: a pipe has no other.
            Ok(_) => {
                self.ended = true;
                Ok(None)
            }
            Err(_) => Err(self.copy.abort(CallErrorKind::NoProgress).await),
        }
    }

    /// Ends the stream here, because what has come is enough, and waits until
    /// its process is gone.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`]: what has come may not be of one moment.
    ///
    /// # Cancel safety
    ///
    /// The stream ends in any case.
    pub async fn stop(mut self) -> Result<(), CallError> {
        let held = self.copy.hold.is_in_force();
        self.copy.control.kill();
        self.copy.control.wait().await;
        match held {
            true => Ok(()),
            false => Err(self.copy.call.failed(CallErrorKind::HoldEnded)),
        }
    }

    /// Waits for the end, and says whether what has come is all, and of one
    /// moment. What has not been taken is skipped.
    ///
    /// # Errors
    ///
    /// What docker says, for instance [`CallErrorKind::NoSuchPath`]; and
    /// [`CallErrorKind::HoldEnded`], which comes first, since nothing counts
    /// then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the copy.
    pub async fn finish(mut self) -> Result<(), CallError> {
        while self.next().await?.is_some() {}
        let limit = self.copy.hold.no_progress;
        let end = match timeout(limit, self.copy.control.wait()).await {
            Ok(end) => end,
            Err(_) => return Err(self.copy.abort(CallErrorKind::NoProgress).await),
        };
        if !self.copy.hold.is_in_force() {
            let error = self.copy.call.failed(CallErrorKind::HoldEnded);
            return Err(error.with_output(&end.output()));
        }
        match end.exit.is_success() {
            true => Ok(()),
            false => Err(self.copy.failed(end).await),
        }
    }
}

impl Copy<'_> {
    /// What a docker client that has failed says to be wrong.
    async fn failed(&self, end: StreamEnd) -> CallError {
        let output = end.output();
        let kind = self
            .hold
            .client
            .why_no_copy(&self.hold.container, &output)
            .await;
        let ended_by_guard = matches!(
            kind,
            CallErrorKind::Other | CallErrorKind::Signalled | CallErrorKind::TarRefused
        ) && !self.hold.is_in_force();
        let kind = match ended_by_guard {
            true => CallErrorKind::HoldEnded,
            false => kind,
        };
        self.call.failed(kind).with_output(&output)
    }

    /// Ends the docker client, for a reason of ours.
    async fn abort(&mut self, kind: CallErrorKind) -> CallError {
        self.control.kill();
        let end = self.control.wait().await;
        let error = self.call.failed(kind);
        match end.exit {
            // It was we who ended it; but it may have said why it hung.
            Exit::Signal(_) if end.stderr.is_empty() => error,
            _ => error.with_output(&end.output()),
        }
    }
}
