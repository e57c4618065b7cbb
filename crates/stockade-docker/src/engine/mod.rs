//! The engine as this backend uses it: the driver's verbs under a call's
//! deadline, and the driver's errors in the contract's words.

mod build;
mod containers;
mod disk;
mod history;
mod holds;
mod images;
mod inquiry;
mod inventory;
mod lift;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use docker_driver::{
    BindConfig, Bounds, CallError, Docker, EngineFacts, EngineTime, Environment, InvalidName,
    Mutation, Query,
};
use stockade::disposal::RemovalFailure;
use stockade::spec::Platform;
use stockade::vocabulary::DisposalCode;
use stockade::{Call, Error, ErrorKind, Operation, Phase, Removed, Result};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::DockerConfig;
use crate::hold::LockFolder;
use crate::names;

pub(crate) use build::Recipe;
pub(crate) use containers::{CreateFailed, Created, Described, Found};
pub(crate) use history::Remembered;
pub(crate) use holds::Paused;
pub(crate) use images::Probe;
pub(crate) use inquiry::Inquired;
pub(crate) use inventory::{Inventory, by_id, by_name};
pub(crate) use lift::{call as lift_call, disposal_code, lost};

/// Longest name of an owner, in bytes: it is a part of every label filter.
const OWNER: usize = 256;

/// How often the removal of what is of no use is tried.
const TRIES: u32 = 2;

/// One bound engine; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    docker: Docker,
    config: DockerConfig,
    platform: Platform,
    /// Names this backend object in the labels of what it makes.
    run: String,
    locks: LockFolder,
    /// Where work goes on whose caller may be gone.
    runtime: Handle,
    tasks: TaskTracker,
    /// What that work could not remove.
    failures: Mutex<Vec<RemovalFailure>>,
}

impl Engine {
    /// Finds the engine and pins it.
    pub(crate) async fn bind(call: &Call, config: DockerConfig) -> Result<Self> {
        let _phase = call.enter(Phase::Bind);
        let owner = &config.owner;
        let fits = (1..=OWNER).contains(&owner.len()) && !owner.chars().any(char::is_control);
        if !fits {
            return Err(Error::new(ErrorKind::InvalidRequest, Operation::Bind)
                .message(format!(
                    "the owner is empty, longer than {OWNER} bytes or holds control characters; name the installation"
                ))
                .build());
        }
        let bound = call.bound(Docker::bind(bind_config(&config))).await;
        let docker = bound
            .map_err(|why| {
                Error::interrupted(Operation::Bind, why)
                    .phase(Phase::Bind)
                    .build()
            })?
            .map_err(lift::bind)?;
        let facts = docker.engine();
        let platform = format!("{}/{}", facts.os, facts.architecture);
        let platform = platform.parse().map_err(|_| {
            Error::new(ErrorKind::Unavailable, Operation::Bind)
                .message(format!(
                    "the engine's platform {platform} is none that is known"
                ))
                .build()
        })?;
        let run = names::nonce()?;
        let locks = LockFolder::of_this_user();
        let swept = locks.clone();
        // Whether it works is nobody's concern but the next sweep's.
        let _ = tokio::task::spawn_blocking(move || swept.sweep()).await;
        let tasks = TaskTracker::new();
        // A closed tracker still takes tasks; it is what lets a wait for all
        // of them end.
        tasks.close();
        Ok(Self {
            inner: Arc::new(Inner {
                docker,
                config,
                platform,
                run,
                locks,
                runtime: Handle::current(),
                tasks,
                failures: Mutex::default(),
            }),
        })
    }

    pub(crate) fn config(&self) -> &DockerConfig {
        &self.inner.config
    }

    pub(crate) fn facts(&self) -> &EngineFacts {
        self.inner.docker.engine()
    }

    /// Where the engine is, for people.
    pub(crate) fn endpoint(&self) -> String {
        self.inner.docker.endpoint().to_string()
    }

    /// The engine's own platform.
    pub(crate) fn platform(&self) -> &Platform {
        &self.inner.platform
    }

    pub(crate) fn owner(&self) -> &str {
        &self.inner.config.owner
    }

    pub(crate) fn run(&self) -> &str {
        &self.inner.run
    }

    /// The engine's own clock.
    pub(crate) async fn now(&self, call: &Call, operation: Operation) -> Result<SystemTime> {
        let now = self.query(call, EngineTime).await;
        Ok(now.or_error(operation, Phase::Observe)?.time)
    }

    /// How many docker processes were started.
    pub(crate) fn invocations(&self) -> u64 {
        self.inner.docker.log().counts().total()
    }

    /// Removes a container that is of no use, and waits for the cleanup
    /// window; whether it is gone by then. It goes on in the background
    /// otherwise, and what goes wrong is kept for whoever closes the backend.
    pub(crate) async fn discard(&self, id: &str) -> bool {
        let discarding = self.discard_behind(id.to_owned());
        let window = self.inner.config.cleanup_window;
        matches!(tokio::time::timeout(window, discarding).await, Ok(Ok(true)))
    }

    /// The same without waiting.
    pub(crate) fn discard_behind(&self, id: String) -> JoinHandle<bool> {
        let engine = self.clone();
        let discarding = async move { engine.try_to_discard(&id).await };
        self.inner.tasks.spawn_on(discarding, &self.inner.runtime)
    }

    async fn try_to_discard(&self, id: &str) -> bool {
        let mut last = None;
        for _ in 0..TRIES {
            // Nobody's call: it may take as long as its command may.
            let call = Call::with_timeout(self.inner.config.command_timeout);
            match self.remove(&call, Operation::Dispose, id).await {
                Ok(()) => return true,
                Err(error) => last = Some(error),
            }
        }
        if let Some(error) = last {
            let code = disposal_code(&error);
            let failure = RemovalFailure::new(code, id, error.to_string());
            self.lock_failures().push(failure);
        }
        false
    }

    /// Waits for background work, and says what of it failed.
    pub(crate) async fn settle(&self, call: &Call) -> Removed {
        let deadline = Instant::from_std(call.deadline());
        // Its commands are the driver's, so it comes first.
        let _ = tokio::time::timeout_at(deadline, self.inner.tasks.wait()).await;
        let settled = self.inner.docker.settle(deadline).await;
        let mut removed = Removed::default();
        removed.failures.append(&mut self.lock_failures());
        let unfinished = settled.unfinished.max(self.inner.tasks.len());
        if unfinished > 0 {
            let what = format!("{unfinished} docker commands");
            let detail = "they still run when the time is over";
            removed
                .failures
                .push(RemovalFailure::new(DisposalCode::Timeout, what, detail));
        }
        for failed in settled.failed {
            let what = failed.undo.to_string();
            removed
                .failures
                .push(RemovalFailure::new(DisposalCode::Unknown, what, failed.why));
        }
        removed
    }

    fn lock_failures(&self) -> std::sync::MutexGuard<'_, Vec<RemovalFailure>> {
        self.inner
            .failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn query<V: Query>(&self, call: &Call, verb: V) -> Asked<V::Answer> {
        let answer = call
            .bound(self.inner.docker.query(&self.bounds(call), verb))
            .await;
        answer.map_or_else(Asked::Interrupted, Asked::from)
    }

    async fn mutate<V: Mutation>(&self, call: &Call, verb: V) -> Asked<V::Answer> {
        let answer = call
            .bound(self.inner.docker.mutate(&self.bounds(call), verb))
            .await;
        answer.map_or_else(Asked::Interrupted, Asked::from)
    }

    /// The call's deadline. Its cancellation drops the future, which is what
    /// the driver acts on.
    fn bounds(&self, call: &Call) -> Bounds {
        Bounds {
            deadline: Instant::from_std(call.deadline()),
            cancel: CancellationToken::new(),
        }
    }
}

/// A container that nobody has taken over yet. Dropped, it is removed, and what
/// goes wrong is kept for whoever closes the backend.
struct Unclaimed {
    engine: Engine,
    id: Option<String>,
}

impl Unclaimed {
    fn new(engine: &Engine, id: impl Into<String>) -> Self {
        Self {
            engine: engine.clone(),
            id: Some(id.into()),
        }
    }

    fn claim(mut self) -> String {
        self.id.take().unwrap_or_default()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            drop(self.engine.discard_behind(id));
        }
    }
}

/// What became of one docker command.
enum Asked<T> {
    Answered(T),
    Failed(CallError),
    Interrupted(stockade::Interruption),
}

impl<T> From<Result<T, CallError>> for Asked<T> {
    fn from(result: Result<T, CallError>) -> Self {
        match result {
            Ok(answer) => Self::Answered(answer),
            Err(error) => Self::Failed(error),
        }
    }
}

impl<T> Asked<T> {
    /// The answer, or the error of an operation.
    fn or_error(self, operation: Operation, phase: Phase) -> Result<T> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Failed(error) => Err(lift::call(operation, phase, error)),
            Self::Interrupted(why) => Err(Error::interrupted(operation, why).phase(phase).build()),
        }
    }
}

/// A name that the engine cannot take: ours are always fit, and what comes
/// from a caller is refused with what is wrong.
fn unfit(error: InvalidName) -> Error {
    Error::new(ErrorKind::InvalidRequest, Operation::Acquire)
        .message(error.to_string())
        .build()
}

fn bind_config(config: &DockerConfig) -> BindConfig {
    let environment = match &config.environment {
        Some(variables) => from_map(variables),
        None => Environment::of_this_process(),
    };
    let mut bind = BindConfig::new(environment);
    bind.docker_path.clone_from(&config.docker_path);
    bind.in_flight = config.in_flight;
    bind.timeouts.short = config.command_timeout;
    bind.timeouts.long = config.pull_timeout.max(config.build_timeout);
    bind
}

fn from_map(variables: &BTreeMap<OsString, OsString>) -> Environment {
    variables
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
