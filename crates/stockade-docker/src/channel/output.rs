//! Output of a run: both streams in the order of arrival, under our credit.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use stockade_wire::frame::StreamName;
use tokio::sync::mpsc;

use super::RunControl;
use super::runs::OutputCredit;

/// A stream of pieces of output. Dropping it discards the rest, and the
/// program goes on writing into nothing.
#[derive(Debug)]
pub(crate) struct RunOutput {
    queue: mpsc::UnboundedReceiver<(StreamName, Bytes)>,
    credit: Arc<OutputCredit>,
    control: RunControl,
}

impl RunOutput {
    pub(super) fn new(
        queue: mpsc::UnboundedReceiver<(StreamName, Bytes)>,
        credit: Arc<OutputCredit>,
        control: RunControl,
    ) -> Self {
        Self {
            queue,
            credit,
            control,
        }
    }

    fn consumed(&self, stream: StreamName, bytes: usize) {
        if let Some(grant) = self.credit.consume(stream, bytes) {
            self.control.grant(stream, grant);
        }
    }
}

impl Stream for RunOutput {
    type Item = (StreamName, Bytes);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.queue.poll_recv(context);
        if let Poll::Ready(Some((stream, bytes))) = &next {
            self.consumed(*stream, bytes.len());
        }
        next
    }
}

impl Drop for RunOutput {
    fn drop(&mut self) {
        // After the close the reader grants by itself; what is queued is ours.
        self.queue.close();
        while let Ok((stream, bytes)) = self.queue.try_recv() {
            self.consumed(stream, bytes.len());
        }
    }
}
