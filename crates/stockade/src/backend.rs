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
/// Object safe: a router holds `Vec<Arc<dyn Backend>>`.
pub trait Backend: Send + Sync + 'static {
    /// The name of the backend, unique among those of one router.
    fn name(&self) -> &BackendName;

    /// What it promises to enforce; fixed for the life of the object.
    fn declarations(&self) -> &Declarations;

    /// Whether it can serve the spec, as far as its declarations tell. Pure.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    fn admit(&self, spec: &SandboxSpec) -> Result<(), Refusal> {
        admit(self.declarations(), spec)
    }

    /// The sandbox of this key and the spec's kind, made if there is none.
    fn acquire<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        spec: &'a Arc<SandboxSpec>,
    ) -> BoxFuture<'a, Result<Sandbox>>;

    /// Removes sandboxes of a key.
    fn dispose<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        which: Which,
    ) -> BoxFuture<'a, Result<Removed>>;

    /// Removes every sandbox of a conversation.
    fn dispose_scope<'a>(
        &'a self,
        call: &'a Call,
        scope: &'a str,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Removed>>;

    /// Removes what is old or idle.
    fn reap<'a>(&'a self, call: &'a Call, filter: &'a ReapFilter) -> BoxFuture<'a, Result<Reaped>>;

    /// Waits for what is still being undone.
    fn close<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Removed>>;
}
