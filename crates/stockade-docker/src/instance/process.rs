//! The parts of a process handle that the contract asks a backend for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use stockade::exec::{EndReason, OutputChunk, ProcessControl, TtySize};
use stockade::{BoxFuture, Error, ErrorKind, Operation, Result};
use tokio::sync::mpsc;

use super::convert;
use super::watch::Order;
use crate::channel::{RunControl, RunOutput};

/// Sends frames, and tells the watcher what it must know.
#[derive(Debug)]
pub(super) struct Control {
    run: RunControl,
    orders: mpsc::UnboundedSender<Order>,
}

/// Ends the command unless it is disarmed: a caller that goes away while the
/// command waits for its turn must not leave it behind.
pub(super) struct EndOnDrop(Option<Arc<Control>>);

/// Output in the contract's terms.
pub(super) struct Output(pub(super) RunOutput);

impl Control {
    pub(super) fn new(run: RunControl, orders: mpsc::UnboundedSender<Order>) -> Self {
        Self { run, orders }
    }
}

impl ProcessControl for Control {
    fn signal(&self, signal: i32) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            // 64 is the last real-time signal of Linux.
            let number = u8::try_from(signal)
                .ok()
                .filter(|number| (1..=64).contains(number));
            let number = number.ok_or_else(|| {
                Error::new(ErrorKind::InvalidRequest, Operation::Signal)
                    .message(format!("there is no signal {signal}: signals are 1 to 64"))
                    .build()
            })?;
            self.run.signal(number);
            Ok(())
        })
    }

    fn resize(&self, size: TtySize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.run.resize(convert::tty(size));
            Ok(())
        })
    }

    fn end(&self, reason: EndReason) {
        self.run.end(convert::to_wire(reason));
        // A watcher that is gone has seen the end already.
        let _ = self.orders.send(Order::Ended(reason));
    }

    fn detach(&self) {
        self.run.detach();
        let _ = self.orders.send(Order::Detached);
    }
}

impl EndOnDrop {
    pub(super) fn new(control: Arc<Control>) -> Self {
        Self(Some(control))
    }

    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(control) = self.0.take() {
            control.end(EndReason::Cancelled);
        }
    }
}

impl Stream for Output {
    type Item = OutputChunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<OutputChunk>> {
        let next = Pin::new(&mut self.0).poll_next(context);
        next.map(|piece| piece.map(|(stream, bytes)| convert::chunk(stream, bytes)))
    }
}
