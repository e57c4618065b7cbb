//! The backend: one engine, and what this process knows of its sandboxes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use stockade::vocabulary::{EgressMode, Feature, IsolationScope, OsFamily};
use stockade::{
    Backend, BackendName, BothTransferLimits, BoxFuture, Call, Capability, Declarations, Error,
    ErrorKind, Isolation, Operation, ReapFilter, Reaped, Removed, Result, Sandbox, SandboxKey,
    SandboxSpec, TransferLimits, Which,
};

use crate::config::DockerConfig;
use crate::engine::Engine;
use crate::image::Images;
use crate::instance::Session;
use crate::ledger::{Kinds, Ledger};
use crate::runtime::Runtime;
use crate::{acquire, dispose, reap};

/// Sandboxes as containers of one Docker engine.
///
/// Cheap to clone; clones are the same backend. Bound when it is made: no
/// later change of a context, of a configuration file or of the environment
/// moves it to another engine.
#[derive(Debug, Clone)]
pub struct DockerBackend {
    pub(crate) inner: Arc<Inner>,
}

/// What the operations share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: BackendName,
    pub(crate) declarations: Declarations,
    pub(crate) engine: Engine,
    pub(crate) runtime: Runtime,
    pub(crate) images: Images,
    pub(crate) kinds: Kinds,
    pub(crate) ledger: Ledger,
    sessions: Sessions,
}

/// One session per container and process, shared by all handles.
#[derive(Debug, Default)]
struct Sessions {
    by_id: Mutex<HashMap<String, Weak<Session>>>,
}

impl DockerBackend {
    /// Finds the engine, pins it, and reads what it can enforce: at most
    /// three docker commands.
    ///
    /// # Errors
    ///
    /// `Unavailable` when there is no client, no such context, no daemon, no
    /// permission, another product, or an engine before 20.10, each with what
    /// to do; a refusal when no guest runtime is carried for its platform.
    ///
    /// Cancel safe: nothing is made on the engine.
    pub async fn connect(call: &Call, config: DockerConfig) -> Result<Self> {
        let engine = Engine::bind(call, config).await?;
        let runtime = Runtime::of(&engine).await?;
        let inner = Inner {
            name: name()?,
            declarations: declarations(),
            engine,
            runtime,
            images: Images::default(),
            kinds: Kinds::default(),
            ledger: Ledger::default(),
            sessions: Sessions::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Where the engine is, as docker names it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.inner.engine.endpoint()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// How many docker processes this backend has started, for whoever keeps
    /// a budget.
    #[must_use]
    pub fn invocations(&self) -> u64 {
        self.inner.engine.invocations()
    }
}

fn name() -> Result<BackendName> {
    BackendName::new("docker").map_err(|error| {
        Error::new(ErrorKind::Internal, Operation::Bind)
            .message(error.to_string())
            .build()
    })
}

/// What a closed sandbox on any engine that can be bound gives. What depends
/// on the engine's host (limits) is refused per spec, since it is read back
/// from the engine and not a property of this backend.
fn declarations() -> Declarations {
    Declarations::new()
        .with_capabilities([
            Capability::Exec,
            Capability::FilesIn,
            Capability::FilesOut,
            Capability::FilesList,
            Capability::FilesDelete,
            Capability::Reclaim,
        ])
        .with_limits(BothTransferLimits::new(
            TransferLimits::CEILING,
            TransferLimits::CEILING,
        ))
        .with_egress_modes([EgressMode::Closed])
        .with_os_families([OsFamily::Posix])
        .with_isolation(Isolation::Container)
        .with_isolation_scopes([IsolationScope::Conversation, IsolationScope::Call])
        .with_features([
            Feature::HardeningAsImage,
            Feature::ExecutionContract,
            Feature::DiscardAfterAbort,
            Feature::StorageRoot,
            Feature::StorageDisk,
            Feature::ImageBuild,
        ])
}

impl Backend for DockerBackend {
    fn name(&self) -> &BackendName {
        &self.inner.name
    }

    fn declarations(&self) -> &Declarations {
        &self.inner.declarations
    }

    /// Gets the sandbox: one docker command when the image is known and the
    /// name is free, or when this process knows the sandbox already. With a
    /// work directory on disk it is four to make it, and one more to look for
    /// that of a conversation first; one that has ended with its content is
    /// started by one more than it takes to find it.
    ///
    /// Cancel safety: dropping the future, or cancelling the call, removes
    /// what was being made; [`Backend::close`] waits for that.
    fn acquire<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        spec: &'a Arc<SandboxSpec>,
    ) -> BoxFuture<'a, Result<Sandbox>> {
        Box::pin(acquire::acquire(&self.inner, call, key, spec))
    }

    fn dispose<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        which: Which,
    ) -> BoxFuture<'a, Result<Removed>> {
        Box::pin(dispose::dispose(&self.inner, call, key, which))
    }

    fn dispose_scope<'a>(
        &'a self,
        call: &'a Call,
        scope: &'a str,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Removed>> {
        Box::pin(dispose::dispose_scope(&self.inner, call, scope, thread))
    }

    fn reap<'a>(&'a self, call: &'a Call, filter: &'a ReapFilter) -> BoxFuture<'a, Result<Reaped>> {
        Box::pin(reap::reap(&self.inner, call, filter))
    }

    fn close<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Removed>> {
        Box::pin(dispose::close(&self.inner, call))
    }
}

impl Inner {
    /// The session of a container, or the one that `make` makes.
    pub(crate) fn session(&self, id: &str, make: impl FnOnce() -> Session) -> Arc<Session> {
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, session| session.strong_count() > 0);
        if let Some(session) = sessions.get(id).and_then(Weak::upgrade)
            && !session.is_dead()
        {
            return session;
        }
        let session = Arc::new(make());
        sessions.insert(id.to_owned(), Arc::downgrade(&session));
        session
    }

    /// Whether this process has a live session of that name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        let sessions = self.sessions.lock();
        sessions
            .values()
            .filter_map(Weak::upgrade)
            .any(|session| session.name() == name && !session.is_dead())
    }

    /// Takes note that a container is gone.
    pub(crate) fn bury(&self, id: &str, why: &str) {
        if let Some(session) = self
            .sessions
            .lock()
            .remove(id)
            .and_then(|session| session.upgrade())
        {
            session.bury(why);
        }
    }
}

impl Sessions {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Weak<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
