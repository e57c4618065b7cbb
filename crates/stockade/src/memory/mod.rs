//! A backend in memory, for tests and examples.
//!
//! Its programs are functions of the test, run as tasks of the host's own
//! process: it isolates nothing and must never be given code that is not
//! trusted. Everything else is the contract's: keys and kinds, reuse and
//! drift, lifetimes on tokio's clock, commands with standard streams,
//! timeouts, cancellation, output limits, signals and background work, files
//! with links, limits and owners, disposal and reaping.

mod flaw;
mod fs;
mod guest;
mod instance;
mod run;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

pub use self::flaw::Flaw;
pub use self::fs::GuestFiles;
pub use self::guest::Guest;
use self::instance::{MemoryInstance, State};
use crate::admit::{admit, admit_key};
use crate::backend::{Backend, BoxFuture};
use crate::call::{Call, Phase};
use crate::declarations::Declarations;
use crate::disposal::{ReapFilter, Reaped, RemovalFailure, Removed, Which};
use crate::error::{Error, Operation, Result};
use crate::instance::Sandbox;
use crate::key::{BackendName, InstanceId, Kind, SandboxKey};
use crate::limits::{BothTransferLimits, TransferLimits};
use crate::refusal::Refusal;
use crate::spec::SandboxSpec;
use crate::vocabulary::{Capability, DisposalCode, EgressMode, IsolationScope, OsFamily};

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
    flaw: Option<Flaw>,
}

/// A program: what it is given, and the exit code that it ends with.
type Program = Arc<dyn Fn(Guest) -> BoxFuture<'static, i32> + Send + Sync>;

type Programs = Arc<BTreeMap<Vec<u8>, Program>>;

#[derive(Default)]
struct Table {
    sandboxes: BTreeMap<(SandboxKey, Kind), Arc<State>>,
    made: u64,
    /// What was disposed of, for the flaws that bring it back; empty without one.
    gone: BTreeMap<(SandboxKey, Kind), Arc<State>>,
}

impl MemoryBackend {
    /// A backend named `memory`, without programs and without sandboxes.
    #[must_use]
    pub fn new() -> Self {
        let name = BackendName::new("memory");
        Self {
            name: name.unwrap_or_else(|error| unreachable!("a valid name: {error}")),
            declarations: Declarations::new()
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
                .with_isolation_scopes([IsolationScope::Conversation, IsolationScope::Call]),
            programs: Arc::default(),
            table: Arc::default(),
            flaw: None,
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

    /// Makes it lie in one way, instead of any before. For the tests of test
    /// suites, which must catch it.
    #[must_use]
    pub fn with_flaw(mut self, flaw: Flaw) -> Self {
        self.flaw = Some(flaw);
        self
    }

    /// The files of a sandbox, as its guest has them; nothing when the sandbox
    /// is gone. For tests, which plant and look from outside.
    #[must_use]
    pub fn files(&self, id: &InstanceId) -> Option<GuestFiles> {
        let table = self.table();
        let state = table.sandboxes.values().find(|state| state.id() == id);
        state.map(|state| state.guest_files())
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
        let entry = (self.filed(key), spec.kind().clone());
        let found = table.sandboxes.get(&entry);
        if let Some(state) = found.filter(|_| !self.has(Flaw::AcquireMakesAnother)) {
            let fields = state.spec().drift(spec);
            if fields.is_empty() {
                return Ok(self.open(state, false));
            }
            if state.is_in_use() {
                let fields = fields.into_iter().map(str::to_owned).collect();
                return Err(refused(Refusal::Drifted { fields }));
            }
            state.remove();
        }
        table.made += 1;
        let before = table.gone.get(&entry);
        let same = before.filter(|_| self.has(Flaw::SameIdAfterReplacement));
        let number = same.map_or(table.made, |state| state.number());
        let state = Arc::new(State::new(number, Arc::clone(spec), self.flaw));
        if let Some(before) = before.filter(|_| self.has(Flaw::ReplacementKeepsFiles)) {
            state.tree().inherit(&before.tree());
        }
        let sandbox = self.open(&state, true);
        table.sandboxes.insert(entry, state);
        Ok(sandbox)
    }

    fn open(&self, state: &Arc<State>, fresh: bool) -> Sandbox {
        let fresh = match self.flaw {
            Some(Flaw::AlwaysFresh) => true,
            Some(Flaw::NeverFresh) => false,
            _ => fresh,
        };
        MemoryInstance::open(state, &self.programs, fresh)
    }

    /// The key under which a sandbox is found.
    fn filed(&self, key: &SandboxKey) -> SandboxKey {
        let mut key = key.clone();
        if self.has(Flaw::AgentsShare) {
            key.agent_id.clear();
        }
        key
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Removes every sandbox that the filter picks.
    fn remove(&self, picks: impl Fn(&SandboxKey, &Kind, &State) -> bool) -> u64 {
        let mut table = self.table();
        let Table {
            sandboxes, gone, ..
        } = &mut *table;
        let before = sandboxes.len();
        sandboxes.retain(|(key, kind), state| {
            let picked = picks(key, kind, state);
            if picked {
                state.remove();
                if self.flaw.is_some() {
                    gone.insert((key.clone(), kind.clone()), Arc::clone(state));
                }
            }
            !picked
        });
        (before - sandboxes.len()) as u64
    }

    fn dispose_now(&self, key: &SandboxKey, which: &Which) -> Removed {
        let key = self.filed(key);
        let picks = |other: &SandboxKey, kind: &Kind, state: &State| {
            if self.has(Flaw::DisposeTakesSiblings) {
                return other.scope == key.scope && other.thread_id == key.thread_id;
            }
            let of_call = matches!(which, Which::AllWithCalls) && other.is_call_of(&key);
            (of_call || *other == key)
                && match which {
                    Which::All | Which::AllWithCalls => true,
                    Which::Kind(wanted) => kind == wanted,
                    Which::Instance(id) => {
                        state.id() == id || self.has(Flaw::DisposeIgnoresInstance)
                    }
                }
        };
        if self.has(Flaw::DisposeKeeps) {
            let table = self.table();
            let picked = table.sandboxes.iter();
            let picked = picked.filter(|((key, kind), state)| picks(key, kind, state));
            return Removed::new(picked.count() as u64);
        }
        let mut removed = Removed::new(self.remove(picks));
        if removed.count == 0 && self.has(Flaw::DisposeFailsTwice) {
            let failure = RemovalFailure::new(DisposalCode::Refused, "memory", "it is not there");
            removed.failures.push(failure);
        }
        removed
    }

    fn dispose_scope_now(&self, scope: &str, thread: &str) -> Removed {
        let spared = self.has(Flaw::DisposeScopeLeavesOne).then(|| {
            let table = self.table();
            let mut of_thread = table
                .sandboxes
                .iter()
                .filter(|((key, _), _)| key.scope == scope && key.thread_id == thread);
            of_thread.next_back().map(|(_, state)| state.id().clone())
        });
        let spared = spared.flatten();
        Removed::new(self.remove(|key, _, state| {
            let of_thread = key.thread_id == thread || self.has(Flaw::DisposeScopeTakesThreads);
            key.scope == scope && of_thread && Some(state.id()) != spared.as_ref()
        }))
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
        Box::pin(async move { Ok(self.dispose_now(key, &which)) })
    }

    fn dispose_scope<'a>(
        &'a self,
        _call: &'a Call,
        scope: &'a str,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Removed>> {
        Box::pin(async move { Ok(self.dispose_scope_now(scope, thread)) })
    }

    fn reap<'a>(
        &'a self,
        _call: &'a Call,
        filter: &'a ReapFilter,
    ) -> BoxFuture<'a, Result<Reaped>> {
        Box::pin(async move {
            let now = Instant::now();
            let kept = Cell::new(0);
            let sandboxes = self.remove(|key, _, state| {
                let of_scope = filter
                    .scope
                    .as_ref()
                    .is_none_or(|scope| key.scope == *scope);
                let old = filter.older_than.is_none_or(|age| state.age(now) > age);
                let idle = filter
                    .idle_for
                    .is_none_or(|idle| state.idle(now).is_some_and(|since| since > idle));
                let spared = of_scope && old && !filter.in_use && state.is_in_use();
                kept.set(kept.get() + u64::from(spared));
                of_scope && old && idle && !spared
            });
            Ok(Reaped {
                sandboxes,
                kept: kept.get(),
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
