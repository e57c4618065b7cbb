//! Feeds a command's standard input from what its request holds.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    failed: Arc<Failed>,
}

type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// What is left of a reader that failed.
#[derive(Default)]
struct Failed(Mutex<(Option<io::Error>, Option<Input>)>);

/// An input that is not fed to its end yet.
///
/// A command must never take half its input for the whole. So when the reader
/// fails or panics, the command is ended, and the input stays open until the
/// end was reported.
struct Unfinished {
    input: Option<Input>,
    control: Arc<dyn ProcessControl>,
    failed: Arc<Failed>,
}

impl Feeder {
    /// Feeds bytes or a reader.
    pub(super) fn start(from: Stdin, to: Input, control: Arc<dyn ProcessControl>) -> Self {
        let failed = Arc::<Failed>::default();
        let unfinished = Unfinished {
            input: Some(to),
            control,
            failed: Arc::clone(&failed),
        };
        Self {
            task: Some(AbortOnDropHandle::new(tokio::spawn(unfinished.feed(from)))),
            failed,
        }
    }

    /// Why the reader failed, once; closes the input.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        std::mem::take(&mut *self.failed.lock()).0
    }

    /// Lets the task go on by itself.
    pub(super) fn detach(&mut self) {
        if let Some(task) = self.task.take() {
            drop(task.detach());
        }
    }
}

impl Unfinished {
    async fn feed(mut self, from: Stdin) {
        let Some(to) = &mut self.input else {
            return;
        };
        let fed = match from {
            Stdin::Bytes(bytes) => {
                write_all(to, &bytes).await;
                Ok(())
            }
            Stdin::Reader(reader) => copy(reader, to).await,
            Stdin::Closed | Stdin::Piped => Ok(()),
        };
        match fed {
            Ok(()) => self.input = None,
            Err(error) => self.failed.lock().0 = Some(error),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(input) = self.input.take() else {
            return;
        };
        {
            let mut failed = self.failed.lock();
            failed.1 = Some(input);
            if std::thread::panicking() {
                failed.0 = Some(io::Error::other("the reader panicked"));
            }
        }
        self.control.end(EndReason::Cancelled);
    }
}

impl Failed {
    fn lock(&self) -> MutexGuard<'_, (Option<io::Error>, Option<Input>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Errors only when the reader does.
async fn copy(mut from: Box<dyn AsyncRead + Send + Unpin>, to: &mut Input) -> io::Result<()> {
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

async fn write_all(to: &mut Input, bytes: &[u8]) {
    if to.write_all(bytes).await.is_ok() {
        // The program may read no more, which is its own business.
        let _ = to.shutdown().await;
    }
}
