//! Standard streams of a process, held open.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::verb::Exit;

/// An open stream. [`split`](Self::split) gives its three parts.
#[derive(Debug)]
pub struct Stream {
    input: StreamInput,
    output: StreamOutput,
    control: StreamControl,
}

/// Standard input of the process. Shutting it down is the end of file.
#[derive(Debug)]
pub struct StreamInput(());

/// Standard output of the process.
#[derive(Debug)]
pub struct StreamOutput(());

/// The process itself. Dropping it ends and reaps the process.
#[derive(Debug)]
pub struct StreamControl(());

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamEnd {
    /// How the docker client ended.
    pub exit: Exit,
    /// The end of its standard error, 64 KiB at most.
    pub stderr: Bytes,
}

impl Stream {
    /// The parts.
    pub fn split(self) -> (StreamInput, StreamOutput, StreamControl) {
        (self.input, self.output, self.control)
    }
}

impl StreamControl {
    /// Ends the process; returns at once.
    pub fn kill(&self) {
        todo!("skeleton")
    }

    /// Waits until it has ended and is reaped. Cancel safe: may be called
    /// again, and gives the same answer each time.
    pub async fn wait(&mut self) -> StreamEnd {
        todo!("skeleton")
    }
}

impl AsyncRead for StreamOutput {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        todo!("skeleton")
    }
}

impl AsyncWrite for StreamInput {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        todo!("skeleton")
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        todo!("skeleton")
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        todo!("skeleton")
    }
}
