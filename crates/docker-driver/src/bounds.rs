//! How long a caller waits.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::CallErrorKind;

/// Stands for "no deadline": thirty years.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// How long a caller waits: until the deadline, or until it cancels.
///
/// It is the caller's patience only. How long a process may run is its verb's
/// [`TimeoutClass`](crate::TimeoutClass).
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "both parts must be given")]
pub struct Bounds {
    /// When the caller gives up.
    pub deadline: Instant,
    /// Cancels the call.
    pub cancel: CancellationToken,
}

impl Bounds {
    /// A caller who waits as long as the verb's own timeout allows.
    pub fn patient() -> Self {
        Self {
            deadline: Instant::now() + FAR_FUTURE,
            cancel: CancellationToken::new(),
        }
    }

    /// Resolves when the caller has given up, with the reason.
    pub(crate) async fn passed(&self) -> CallErrorKind {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => CallErrorKind::Cancelled,
            () = sleep_until(self.deadline) => CallErrorKind::DeadlinePassed,
        }
    }

    /// Drops the future when the caller gives up first.
    pub(crate) async fn limit<F: Future>(&self, future: F) -> Result<F::Output, CallErrorKind> {
        tokio::select! {
            biased;
            output = future => Ok(output),
            kind = self.passed() => Err(kind),
        }
    }
}
