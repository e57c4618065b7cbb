//! What makes and removes sandboxes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::admit::admit;
use crate::call::Call;
use crate::declarations::Declarations;
use crate::disposal::{ReapFilter, Reaped, Removed, Which};
use crate::error::Result;
use crate::instance::Sandbox;
use crate::key::{BackendName, SandboxKey};
use crate::refusal::Refusal;
use crate::spec::SandboxSpec;

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What makes and removes sandboxes of one sort.
///
/// Object safe, so that a router holds `Vec<Arc<dyn Backend>>`.
///
/// Every method that takes a [`Call`] ends when the call must: with
/// [`ErrorKind::TimedOut`](crate::ErrorKind::TimedOut) or
/// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), and with what could
/// not be undone in [`Error::left_behind`](crate::Error::left_behind).
pub trait Backend: Send + Sync + 'static {
    /// The name of the backend, unique among those of one router.
    fn name(&self) -> &BackendName;

    /// What it promises to enforce.
    ///
    /// - Behaviour: fixed for the life of the object.
    fn declarations(&self) -> &Declarations;

    /// Whether it can serve the spec, as far as its declarations tell.
    ///
    /// - Behaviour: pure, so that a dry run and an acquire cannot disagree.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    fn admit(&self, spec: &SandboxSpec) -> Result<(), Refusal> {
        admit(self.declarations(), spec)
    }

    /// The sandbox of this key and the spec's kind, made if there is none.
    ///
    /// - Requires: nothing; the spec is admitted again, and the key checked
    ///   with [`admit_key`](crate::admit_key()).
    /// - Behaviour: the spec is served exactly, or refused with nothing made.
    /// - Behaviour: two acquires of one key and kind share one sandbox, also
    ///   from two processes.
    /// - Behaviour: one that was made from another spec is replaced when
    ///   nobody uses it, and otherwise refused with [`Refusal::Drifted`];
    ///   never pulled from under a call.
    /// - Behaviour: when a step fails, the call must end or the future is
    ///   dropped, what was made is removed; that may go on after the answer,
    ///   and [`Backend::close`] waits for it.
    fn acquire<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        spec: &'a Arc<SandboxSpec>,
    ) -> BoxFuture<'a, Result<Sandbox>>;

    /// Removes sandboxes of a key.
    ///
    /// - Behaviour: also those of other processes, and those in use, whose
    ///   commands end as [`ErrorKind::Lost`](crate::ErrorKind::Lost).
    /// - Behaviour: a conversation's key leaves the sandboxes of its calls.
    /// - Behaviour: one that is gone already is no failure; one that cannot
    ///   be removed does not keep the others.
    fn dispose<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        which: Which,
    ) -> BoxFuture<'a, Result<Removed>>;

    /// Removes every sandbox of a conversation: of all agents, calls and kinds.
    ///
    /// - Behaviour: as of [`Backend::dispose`].
    fn dispose_scope<'a>(
        &'a self,
        call: &'a Call,
        scope: &'a str,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Removed>>;

    /// Removes what the filter picks, of this and of other processes.
    ///
    /// - Behaviour: whole groups: a sandbox with its volumes, networks,
    ///   services and proxy.
    /// - Behaviour: when what there is cannot be listed, nothing is removed.
    fn reap<'a>(&'a self, call: &'a Call, filter: &'a ReapFilter) -> BoxFuture<'a, Result<Reaped>>;

    /// Waits until everything that is still being undone is undone.
    ///
    /// - Behaviour: sandboxes that callers acquired stay.
    fn close<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Removed>>;
}
