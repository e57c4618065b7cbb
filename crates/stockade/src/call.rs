//! One operation's deadline, cancellation, identity and phase clock.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::key::CallId;
use crate::words::words;

/// Longest time that a call can be given: thirty years, which stands for "no deadline".
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// One operation, from the caller's request to its answer: a deadline that is
/// fixed once, cancellation, an id that joins everything that is recorded of
/// it, and a clock of its phases.
///
/// Clones are the same call. Dropping a call cancels nothing.
#[derive(Clone)]
pub struct Call {
    id: CallId,
    started: Instant,
    deadline: Instant,
    token: CancellationToken,
    clock: Arc<Mutex<Vec<PhaseRecord>>>,
}

/// Why a call must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interruption {
    /// Its deadline passed.
    DeadlinePassed,
    /// It was cancelled.
    Cancelled,
}

words! { unranked "phase"
    /// What an operation is doing.
    Phase {
        /// Checking whether the spec can be served.
        Admit = "admit",
        /// Waiting for a free place.
        Queue = "queue",
        /// Finding and pinning the engine.
        Bind = "bind",
        /// Finding out about the image.
        Image = "image",
        /// Pulling the image.
        Pull = "pull",
        /// Building the image.
        Build = "build",
        /// Bringing the guest runtime to the engine.
        Runtime = "runtime",
        /// Looking at what is there.
        Observe = "observe",
        /// Making the network.
        Network = "network",
        /// Making the sandbox.
        Create = "create",
        /// Opening the channel into the sandbox.
        Channel = "channel",
        /// Starting a command.
        Start = "start",
        /// Running a command.
        Run = "run",
        /// Moving files.
        Transfer = "transfer",
        /// Undoing what was made.
        Undo = "undo",
        /// Removing.
        Dispose = "dispose",
    }
}

/// How long a call spent in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhaseTime {
    /// The phase.
    pub phase: Phase,
    /// When it was first entered, counted from the start of the call.
    pub first_entered: Duration,
    /// How often it was entered.
    pub entered: u32,
    /// Time spent in it; parts that ran side by side count each.
    pub took: Duration,
}

/// Keeps a phase open until it is dropped.
#[must_use = "the phase ends when this is dropped"]
pub struct PhaseGuard {
    phase: Phase,
    entered: Instant,
    clock: Arc<Mutex<Vec<PhaseRecord>>>,
}

/// Bounded by the number of phases, however often they are entered.
struct PhaseRecord {
    phase: Phase,
    first: Instant,
    entered: u32,
    closed: Duration,
    open: Vec<Instant>,
}

impl Call {
    /// A call that must be over in this time.
    ///
    /// Times of more than thirty years are taken as thirty years.
    #[must_use]
    pub fn with_timeout(timeout: Duration) -> Self {
        Self::with_id(CallId::unique(), timeout)
    }

    /// As [`Call::with_timeout`], with an id of the caller's.
    #[must_use]
    pub fn with_id(id: CallId, timeout: Duration) -> Self {
        let started = Instant::now();
        Self {
            id,
            started,
            deadline: started + timeout.min(FAR_FUTURE),
            token: CancellationToken::new(),
            clock: Arc::default(),
        }
    }

    /// A part of this call: same id and phase clock, never a later deadline,
    /// cancelled with this call and by itself.
    #[must_use]
    pub fn child(&self, at_most: Duration) -> Self {
        Self {
            deadline: self.deadline.min(Instant::now() + at_most.min(FAR_FUTURE)),
            token: self.token.child_token(),
            ..self.clone()
        }
    }

    /// The id that joins what is recorded of this call.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// When the call must be over, on the clock of the tokio runtime.
    #[must_use]
    pub fn deadline(&self) -> std::time::Instant {
        self.deadline.into_std()
    }

    /// Time left until the deadline; zero after it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Time since the call was made; a child counts from its parent's start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Cancels this call and its children, not its parent.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Whether it was cancelled; a passed deadline is not a cancellation.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Why the call must end now, if it must.
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        if self.is_cancelled() {
            Some(Interruption::Cancelled)
        } else if self.remaining().is_zero() {
            Some(Interruption::DeadlinePassed)
        } else {
            None
        }
    }

    /// Waits until the call is cancelled.
    ///
    /// Cancel safety: safe; nothing is lost.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Waits until the call must end, and says why.
    ///
    /// Cancel safety: safe; nothing is lost.
    pub async fn interrupted(&self) -> Interruption {
        tokio::select! {
            biased;
            () = self.token.cancelled() => Interruption::Cancelled,
            () = tokio::time::sleep_until(self.deadline) => Interruption::DeadlinePassed,
        }
    }

    /// Runs a future until it is done or the call must end, whichever comes
    /// first. A future that is done wins.
    ///
    /// # Errors
    ///
    /// The reason when the call ended first; the future was dropped.
    ///
    /// Cancel safety: that of the future.
    pub async fn bound<F: Future>(&self, future: F) -> Result<F::Output, Interruption> {
        tokio::select! {
            biased;
            output = future => Ok(output),
            why = self.interrupted() => Err(why),
        }
    }

    /// Enters a phase until the guard is dropped. Phases may overlap.
    pub fn enter(&self, phase: Phase) -> PhaseGuard {
        let entered = Instant::now();
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        match clock.iter_mut().find(|record| record.phase == phase) {
            Some(record) => {
                record.entered = record.entered.saturating_add(1);
                record.open.push(entered);
            }
            None => clock.push(PhaseRecord {
                phase,
                first: entered,
                entered: 1,
                closed: Duration::ZERO,
                open: vec![entered],
            }),
        }
        PhaseGuard {
            phase,
            entered,
            clock: Arc::clone(&self.clock),
        }
    }

    /// The phase that was entered last and is still open.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let open = clock
            .iter()
            .filter_map(|record| Some((record.open.last()?, record.phase)));
        open.max_by_key(|(entered, _)| **entered)
            .map(|(_, phase)| phase)
    }

    /// The phases so far, in the order in which they were first entered; open
    /// ones count up to now.
    #[must_use]
    pub fn phases(&self) -> Vec<PhaseTime> {
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let time = |record: &PhaseRecord| PhaseTime {
            phase: record.phase,
            first_entered: record.first.saturating_duration_since(self.started),
            entered: record.entered,
            took: record.closed + record.open.iter().map(Instant::elapsed).sum::<Duration>(),
        };
        clock.iter().map(time).collect()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("remaining", &self.remaining())
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeadlinePassed => "the deadline passed",
            Self::Cancelled => "it was cancelled",
        })
    }
}

impl fmt::Debug for PhaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PhaseGuard").field(&self.phase).finish()
    }
}

impl Drop for PhaseGuard {
    fn drop(&mut self) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let record = clock.iter_mut().find(|record| record.phase == self.phase);
        if let Some(record) = record {
            if let Some(at) = record.open.iter().position(|open| *open == self.entered) {
                record.open.swap_remove(at);
            }
            record.closed += self.entered.elapsed();
        }
    }
}
