//! Ctrl-C: the first one cleans up, the second one ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stockade::Call;
use tokio::signal::unix::{SignalKind, signal};

use crate::{exit, say, terminal};

/// Whether the user asked for the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Whether Ctrl-C (or a request to terminate) came.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Cancels `call` at the first SIGINT, SIGTERM or SIGHUP, and ends the
/// program at the second. `consequence` says what the first one leads to.
pub(crate) fn watch(call: &Call, consequence: &'static str) -> std::io::Result<Interrupted> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let call = call.clone();
    let flag = Interrupted::default();
    let seen = flag.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
            if seen.0.swap(true, Ordering::SeqCst) {
                end_at_once();
            }
            call.cancel();
            say::line(&format!(
                "interrupted: {consequence}; again to leave at once"
            ));
        }
    });
    Ok(flag)
}

#[expect(
    clippy::exit,
    reason = "the user asked a second time: nothing may be waited for"
)]
fn end_at_once() -> ! {
    terminal::restore();
    std::process::exit(i32::from(exit::INTERRUPTED))
}
