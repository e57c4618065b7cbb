//! A backend in memory, for tests and examples.
//!
//! Its programs are functions of the test, run as tasks of the host's own
//! process: it isolates nothing and must never be given code that is not
//! trusted. Everything else is the contract's: keys and kinds, reuse and
//! drift, lifetimes on tokio's clock, commands with standard streams,
//! timeouts, cancellation, output limits, signals and background work,
//! disposal and reaping.

mod guest;
mod instance;
mod run;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

pub use self::guest::Guest;
use self::instance::{MemoryInstance, State};
use crate::admit::{admit, admit_key};
use crate::backend::{Backend, BoxFuture};
use crate::call::{Call, Phase};
use crate::declarations::Declarations;
use crate::disposal::{ReapFilter, Reaped, Removed, Which};
use crate::error::{Error, Operation, Result};
use crate::instance::Sandbox;
use crate::key::{BackendName, Kind, SandboxKey};
use crate::refusal::Refusal;
use crate::spec::SandboxSpec;
use crate::vocabulary::{Capability, EgressMode, IsolationScope, OsFamily};

/// A backend whose sandboxes are entries of a table, and whose programs are
/// functions.
///
/// Any image is accepted and means nothing: every sandbox has the programs
/// that the backend was given.
#[derive(Clone)]
pub struct MemoryBackend {
    name: BackendName,
    declarations: Declarations,
    programs: Programs,
    table: Arc<Mutex<Table>>,
}

/// A program: what it is given, and the exit code that it ends with.
type Program = Arc<dyn Fn(Guest) -> BoxFuture<'static, i32> + Send + Sync>;

type Programs = Arc<BTreeMap<Vec<u8>, Program>>;

#[derive(Default)]
struct Table {
    sandboxes: BTreeMap<(SandboxKey, Kind), Arc<State>>,
    made: u64,
}

impl MemoryBackend {
    /// A backend named `memory`, without programs and without sandboxes.
    #[must_use]
    pub fn new() -> Self {
        let name = BackendName::new("memory");
        Self {
            name: name.unwrap_or_else(|error| unreachable!("a valid name: {error}")),
            declarations: Declarations::new()
                .with_capabilities([Capability::Exec])
                .with_egress_modes([EgressMode::Closed])
                .with_os_families([OsFamily::Posix])
                .with_isolation_scopes([IsolationScope::Conversation, IsolationScope::Call]),
            programs: Arc::default(),
            table: Arc::default(),
        }
    }

    /// Adds a program: a function that is given its arguments, variables and
    /// streams, and ends with an exit code. One that panics ends by signal 6.
    ///
    /// A shell line runs the program `sh` with `-c` and the line.
    #[must_use]
    pub fn with_program<F, R>(mut self, name: impl AsRef<[u8]>, program: F) -> Self
    where
        F: Fn(Guest) -> R + Send + Sync + 'static,
        R: Future<Output = i32> + Send + 'static,
    {
        let program: Program = Arc::new(move |guest| Box::pin(program(guest)));
        let programs = Arc::make_mut(&mut self.programs);
        programs.insert(name.as_ref().to_vec(), program);
        self
    }

    /// Replaces the name.
    #[must_use]
    pub fn with_name(mut self, name: BackendName) -> Self {
        self.name = name;
        self
    }

    /// Replaces what it declares, true or not.
    #[must_use]
    pub fn with_declarations(mut self, declarations: Declarations) -> Self {
        self.declarations = declarations;
        self
    }

    /// Number of sandboxes that exist now.
    #[must_use]
    pub fn sandboxes(&self) -> usize {
        self.table().sandboxes.len()
    }

    /// The table, without those that have ended by themselves.
    fn table(&self) -> MutexGuard<'_, Table> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.sandboxes.retain(|_, state| !state.has_ended());
        table
    }

    fn acquire_now(
        &self,
        call: &Call,
        key: &SandboxKey,
        spec: &Arc<SandboxSpec>,
    ) -> Result<Sandbox> {
        let refused = |refusal| Error::refused(Operation::Acquire, refusal);
        let admitting = call.enter(Phase::Admit);
        admit(&self.declarations, spec).map_err(refused)?;
        admit_key(spec, key).map_err(refused)?;
        drop(admitting);
        if let Some(why) = call.interruption() {
            return Err(Error::interrupted(Operation::Acquire, why).into());
        }
        let _creating = call.enter(Phase::Create);
        let mut table = self.table();
        let entry = (key.clone(), spec.kind().clone());
        if let Some(state) = table.sandboxes.get(&entry) {
            let fields = state.spec().drift(spec);
            if fields.is_empty() {
                return Ok(MemoryInstance::open(state, &self.programs, false));
            }
            if state.is_in_use() {
                let fields = fields.into_iter().map(str::to_owned).collect();
                return Err(refused(Refusal::Drifted { fields }));
            }
            state.remove();
        }
        table.made += 1;
        let state = Arc::new(State::new(table.made, Arc::clone(spec)));
        let sandbox = MemoryInstance::open(&state, &self.programs, true);
        table.sandboxes.insert(entry, state);
        Ok(sandbox)
    }

    /// Removes every sandbox that the filter picks.
    fn remove(&self, picks: impl Fn(&SandboxKey, &Kind, &State) -> bool) -> u64 {
        let mut table = self.table();
        let before = table.sandboxes.len();
        table.sandboxes.retain(|(key, kind), state| {
            let picked = picks(key, kind, state);
            if picked {
                state.remove();
            }
            !picked
        });
        (before - table.sandboxes.len()) as u64
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for MemoryBackend {
    fn name(&self) -> &BackendName {
        &self.name
    }

    fn declarations(&self) -> &Declarations {
        &self.declarations
    }

    fn acquire<'a>(
        &'a self,
        call: &'a Call,
        key: &'a SandboxKey,
        spec: &'a Arc<SandboxSpec>,
    ) -> BoxFuture<'a, Result<Sandbox>> {
        Box::pin(async move { self.acquire_now(call, key, spec) })
    }

    fn dispose<'a>(
        &'a self,
        _call: &'a Call,
        key: &'a SandboxKey,
        which: Which,
    ) -> BoxFuture<'a, Result<Removed>> {
        Box::pin(async move {
            let count = self.remove(|other, kind, state| {
                other == key
                    && match &which {
                        Which::All => true,
                        Which::Kind(wanted) => kind == wanted,
                        Which::Instance(id) => state.id() == id,
                    }
            });
            Ok(Removed::new(count))
        })
    }

    fn dispose_scope<'a>(
        &'a self,
        _call: &'a Call,
        scope: &'a str,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Removed>> {
        Box::pin(async move {
            let count = self.remove(|key, _, _| key.scope == scope && key.thread_id == thread);
            Ok(Removed::new(count))
        })
    }

    fn reap<'a>(
        &'a self,
        _call: &'a Call,
        filter: &'a ReapFilter,
    ) -> BoxFuture<'a, Result<Reaped>> {
        Box::pin(async move {
            let now = Instant::now();
            let sandboxes = self.remove(|key, _, state| {
                let of_scope = filter
                    .scope
                    .as_ref()
                    .is_none_or(|scope| key.scope == *scope);
                let old = filter.older_than.is_none_or(|age| state.age(now) > age);
                let idle = filter
                    .idle_for
                    .is_none_or(|idle| state.idle(now).is_some_and(|since| since > idle));
                of_scope && old && idle
            });
            Ok(Reaped {
                sandboxes,
                ..Reaped::default()
            })
        })
    }

    fn close<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Result<Removed>> {
        // Nothing is undone later: what is made is made in one step.
        Box::pin(async { Ok(Removed::default()) })
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend")
            .field("name", &self.name)
            .field("sandboxes", &self.sandboxes())
            .finish_non_exhaustive()
    }
}
