//! Feeds a command's standard input from what its request holds.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::task::AbortOnDropHandle;

use super::process::{EndReason, ProcessControl};
use super::request::Stdin;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// A task that feeds standard input; it ends when this is dropped.
#[derive(Default)]
pub(super) struct Feeder {
    task: Option<AbortOnDropHandle<()>>,
    failure: Failure,
}

/// Why the reader failed; set before the command is ended for it.
type Failure = Arc<Mutex<Option<io::Error>>>;

/// Ends the command unless it was fed to the end: when the reader fails or
/// panics, and when the task is dropped half-way.
///
/// It must go before the input that it guards: a command must never take half
/// its input for the whole.
struct Unfinished {
    control: Option<Arc<dyn ProcessControl>>,
    failure: Failure,
}

impl Feeder {
    /// Feeds bytes or a reader.
    pub(super) fn start(
        from: Stdin,
        to: Box<dyn AsyncWrite + Send + Unpin>,
        control: Arc<dyn ProcessControl>,
    ) -> Self {
        let failure = Failure::default();
        let guarded = Arc::clone(&failure);
        let task = tokio::spawn(async move {
            // Dropped in reverse: the guard before the input that it guards.
            let mut to = to;
            let unfinished = Unfinished {
                control: Some(control),
                failure: guarded,
            };
            let fed = match from {
                Stdin::Bytes(bytes) => {
                    write_all(&mut to, &bytes).await;
                    Ok(())
                }
                Stdin::Reader(reader) => copy(reader, &mut to).await,
                Stdin::Closed | Stdin::Piped => Ok(()),
            };
            unfinished.finish(fed);
        });
        Self {
            task: Some(AbortOnDropHandle::new(task)),
            failure,
        }
    }

    /// Why the reader failed, once.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// Lets the task go on by itself.
    pub(super) fn detach(&mut self) {
        if let Some(task) = self.task.take() {
            drop(task.detach());
        }
    }
}

impl Unfinished {
    fn finish(mut self, fed: io::Result<()>) {
        match fed {
            Ok(()) => self.control = None,
            Err(error) => self.fail(error),
        }
    }

    fn fail(&self, error: io::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(error);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail(io::Error::other("the reader panicked"));
        }
        if let Some(control) = &self.control {
            control.end(EndReason::Cancelled);
        }
    }
}

/// Errors only when the reader does.
async fn copy(
    mut from: Box<dyn AsyncRead + Send + Unpin>,
    to: &mut (dyn AsyncWrite + Send + Unpin),
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        if to.write_all(&piece[..read]).await.is_err() {
            // The program reads no more, which is its own business.
            return Ok(());
        }
    }
    // As above.
    let _ = to.shutdown().await;
    Ok(())
}

async fn write_all(to: &mut (dyn AsyncWrite + Send + Unpin), bytes: &[u8]) {
    if to.write_all(bytes).await.is_ok() {
        // The program may read no more, which is its own business.
        let _ = to.shutdown().await;
    }
}
