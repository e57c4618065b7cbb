//! How far a copy is, on standard error, for a person who waits.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytesize::ByteSize;
use tokio::task::JoinHandle;

/// Copies that take less are over before anybody wonders.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);

/// Shows one line from the first second on, and takes it away when dropped.
/// Says nothing where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Meter {
    counted: Arc<Counted>,
    drawing: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Counted {
    verb: &'static str,
    files: AtomicU64,
    bytes: AtomicU64,
    all_files: u64,
    all_bytes: u64,
    drawn: AtomicBool,
}

impl Meter {
    /// A meter of so much; `quiet` for `--json`.
    pub(crate) fn start(verb: &'static str, all_files: u64, all_bytes: u64, quiet: bool) -> Self {
        let counted = Arc::new(Counted {
            verb,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            all_files,
            all_bytes,
            drawn: AtomicBool::new(false),
        });
        let watched = !quiet && std::io::stderr().is_terminal();
        let drawing = watched.then(|| tokio::spawn(draw(Arc::clone(&counted))));
        Self { counted, drawing }
    }

    /// So much more is done.
    pub(crate) fn add(&self, files: u64, bytes: u64) {
        self.counted.files.fetch_add(files, Ordering::Relaxed);
        self.counted.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(drawing) = &self.drawing {
            drawing.abort();
        }
        if self.counted.drawn.load(Ordering::Relaxed) {
            // Nobody is left to tell when the terminal is gone.
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Counted {
    fn line(&self) -> String {
        let size = |bytes| ByteSize::b(bytes).display().iec();
        format!(
            "stockade: {}: {} of {} files, {} of {}",
            self.verb,
            self.files.load(Ordering::Relaxed),
            self.all_files,
            size(self.bytes.load(Ordering::Relaxed)),
            size(self.all_bytes),
        )
    }
}

async fn draw(counted: Arc<Counted>) {
    tokio::time::sleep(PATIENCE).await;
    loop {
        counted.drawn.store(true, Ordering::Relaxed);
        // Nobody is left to tell when the terminal is gone.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{}", counted.line());
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_line_says_how_much_of_how_much() {
        let meter = Meter::start("copying in", 3, 2048, true);
        meter.add(1, 1024);
        assert_eq!(
            meter.counted.line(),
            "stockade: copying in: 1 of 3 files, 1.0 KiB of 2.0 KiB"
        );
    }
}
