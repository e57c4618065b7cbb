//! One sandbox of the table, and the handles to it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Programs;
use super::run;
use crate::backend::BoxFuture;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::exec::{ExecRequest, Process};
use crate::instance::{Instance, Sandbox};
use crate::key::InstanceId;
use crate::spec::SandboxSpec;

/// One sandbox.
pub(super) struct State {
    id: InstanceId,
    spec: Arc<SandboxSpec>,
    made: Instant,
    removed: CancellationToken,
    presence: Mutex<Presence>,
}

/// Who is there.
struct Presence {
    /// Handles and commands.
    users: usize,
    /// Since when there is nobody.
    idle_since: Instant,
}

/// Counts as somebody while it lives.
pub(super) struct User(Arc<State>);

/// One handle: an acquire's answer.
pub(super) struct MemoryInstance {
    state: User,
    programs: Programs,
    freshly_created: bool,
}

impl State {
    pub(super) fn new(number: u64, spec: Arc<SandboxSpec>) -> Self {
        let now = Instant::now();
        let id = InstanceId::new(format!("memory-{number}"));
        Self {
            id: id.unwrap_or_else(|error| unreachable!("a valid id: {error}")),
            spec,
            made: now,
            removed: CancellationToken::new(),
            presence: Mutex::new(Presence {
                users: 0,
                idle_since: now,
            }),
        }
    }

    pub(super) fn id(&self) -> &InstanceId {
        &self.id
    }

    pub(super) fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.made)
    }

    /// For how long nobody was there; nothing while somebody is.
    pub(super) fn idle(&self, now: Instant) -> Option<Duration> {
        let presence = self.presence();
        let idle = now.saturating_duration_since(presence.idle_since);
        (presence.users == 0).then_some(idle)
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.presence().users > 0
    }

    /// Whether it was removed, or ended by itself: at its maximum age, or at
    /// its idle limit with nobody there.
    pub(super) fn has_ended(&self) -> bool {
        let now = Instant::now();
        let idle = self.idle(now);
        let over = self.age(now) >= self.spec.max_age()
            || idle.is_some_and(|idle| idle >= self.spec.idle_limit());
        if over {
            self.remove();
        }
        self.removed.is_cancelled()
    }

    /// Ends it with everything that runs in it.
    pub(super) fn remove(&self) {
        self.removed.cancel();
    }

    /// Waits until it has been removed or reaches its maximum age.
    pub(super) async fn ended(&self) {
        tokio::select! {
            () = self.removed.cancelled() => {}
            () = tokio::time::sleep_until(self.made + self.spec.max_age()) => {}
        }
    }

    fn presence(&self) -> MutexGuard<'_, Presence> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl User {
    pub(super) fn of(state: &Arc<State>) -> Self {
        state.presence().users += 1;
        Self(Arc::clone(state))
    }

    pub(super) fn state(&self) -> &Arc<State> {
        &self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut presence = self.0.presence();
        presence.users -= 1;
        presence.idle_since = Instant::now();
    }
}

impl MemoryInstance {
    /// Opens a handle.
    pub(super) fn open(state: &Arc<State>, programs: &Programs, freshly_created: bool) -> Sandbox {
        Sandbox::new(Arc::new(Self {
            state: User::of(state),
            programs: Arc::clone(programs),
            freshly_created,
        }))
    }
}

impl Instance for MemoryInstance {
    fn id(&self) -> &InstanceId {
        self.state.state().id()
    }

    fn freshly_created(&self) -> bool {
        self.freshly_created
    }

    fn spec(&self) -> &SandboxSpec {
        self.state.state().spec()
    }

    fn spawn<'a>(
        &'a self,
        _call: &'a Call,
        request: ExecRequest,
    ) -> BoxFuture<'a, Result<Process>> {
        Box::pin(async move {
            let state = self.state.state();
            if state.has_ended() {
                return Err(gone(Operation::Spawn));
            }
            Ok(run::start(state, &self.programs, request))
        })
    }
}

/// The error of a sandbox that is no more.
pub(super) fn gone(operation: Operation) -> Error {
    Error::new(ErrorKind::Lost, operation)
        .message("the sandbox was removed or has ended; acquire it again")
        .build()
}

impl fmt::Debug for MemoryInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryInstance").field(self.id()).finish()
    }
}
