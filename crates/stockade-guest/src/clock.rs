//! The one clock: monotonic time, which a guest cannot move.

use std::time::Instant;

/// The current time.
#[expect(
    clippy::disallowed_methods,
    reason = "tokio, whose clock is used elsewhere, has no place in PID 1"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
