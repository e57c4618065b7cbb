//! Standard input of a run, under the guest's credit.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use stockade_wire::Kind;
use stockade_wire::credit::{CreditError, SendCredit};
use stockade_wire::limits::FRAME_PAYLOAD;
use tokio::io::AsyncWrite;

use super::RunControl;

/// Writes to a program's standard input. Shutting it down, or dropping it,
/// is the end of input. When the program no longer reads, writing fails with
/// [`std::io::ErrorKind::BrokenPipe`], which is not a fault of anybody.
#[derive(Debug)]
pub(crate) struct RunStdin {
    state: Arc<StdinState>,
    control: RunControl,
    ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct StdinState {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    credit: SendCredit,
    closed: bool,
    waiting: Option<Waker>,
}

impl RunStdin {
    pub(super) fn new(state: Arc<StdinState>, control: RunControl) -> Self {
        Self {
            state,
            control,
            ended: false,
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.control.send(Kind::StdinEnd, &[]);
        }
    }
}

impl AsyncWrite for RunStdin {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let mut inner = self.state.lock();
        if inner.closed || self.ended {
            return Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(inner.credit.available()).min(FRAME_PAYLOAD);
        if count == 0 && !bytes.is_empty() {
            inner.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        inner.credit.spend(count).map_err(std::io::Error::other)?;
        drop(inner);
        self.control.send(Kind::Stdin, &bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for RunStdin {
    fn drop(&mut self) {
        self.end();
    }
}

impl StdinState {
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        wake(inner);
    }

    pub(super) fn refill(&self, bytes: u32) -> Result<(), CreditError> {
        let mut inner = self.lock();
        inner.credit.refill(bytes)?;
        wake(inner);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waiting = inner.waiting.take();
    drop(inner);
    if let Some(waker) = waiting {
        waker.wake();
    }
}
