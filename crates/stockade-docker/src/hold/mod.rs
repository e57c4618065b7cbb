//! Holding a container: paused while files are copied, by one holder at a
//! time, and what to do about one that somebody else has paused.

mod lock;

use std::time::Duration;

use docker_driver::{CallErrorKind, Hold};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Result};
use tokio::time::{Instant, timeout_at};

pub(crate) use lock::{Lock, LockFolder};

use crate::engine::{Engine, Paused};

/// Longest time that a container is held.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// Added to the longest hold before a pause counts as nobody's: a thaw takes
/// its time on a loaded engine.
const MARGIN: Duration = Duration::from_secs(5);

/// A container that is held, and the lock that says so on this host.
#[derive(Debug)]
pub(crate) struct Held {
    hold: Hold,
    lock: Lock,
}

impl Held {
    /// Pauses a container as soon as nobody else holds it.
    ///
    /// Cancel safe: a container that was paused is thawed.
    pub(crate) async fn begin(
        engine: &Engine,
        call: &Call,
        operation: Operation,
        container: &str,
    ) -> Result<Self> {
        let mut lock = take(engine, call, operation, container).await?;
        loop {
            match engine.hold(call, operation, container, &lock).await? {
                Paused::ByUs(hold) => return Ok(Self { hold, lock }),
                Paused::BySomebody => settle(engine, call, operation, container, &mut lock).await?,
            }
        }
    }

    /// The hold, for copies.
    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Thaws it, and makes sure of it.
    pub(crate) async fn release(self, operation: Operation) -> Result<()> {
        let Self { hold, lock } = self;
        match hold.release().await {
            // A container that is gone needs no thaw.
            Err(error)
                if !matches!(
                    error.kind(),
                    CallErrorKind::NoSuchContainer | CallErrorKind::NotRunning
                ) =>
            {
                Err(Error::new(ErrorKind::Unavailable, operation)
                    .message(format!(
                        "the sandbox was paused for a copy and could not be thawed: {error}"
                    ))
                    .phase(Phase::Undo)
                    .detail(error.detail())
                    .source(error)
                    .build())
            }
            _ => {
                lock.give_back();
                Ok(())
            }
        }
    }
}

/// Keeps everybody on this host from pausing a container as long as it lives.
#[derive(Debug)]
pub(crate) struct Running {
    /// Nothing where no lock can be had: then there are no holders here.
    lock: Option<Lock>,
}

impl Running {
    /// Waits until nobody on this host holds the container; no docker call.
    ///
    /// Cancel safe.
    pub(crate) async fn claim(
        engine: &Engine,
        call: &Call,
        operation: Operation,
        container: &str,
    ) -> Result<Self> {
        match take(engine, call, operation, container).await {
            Ok(lock) => Ok(Self { lock: Some(lock) }),
            // Commands need no lock, and copies say what is wrong with it.
            Err(error) if error.kind() == ErrorKind::Internal => Ok(Self { lock: None }),
            Err(error) => Err(error),
        }
    }

    /// Waits until the container runs, whoever has paused it. True when it
    /// was paused.
    ///
    /// Cancel safe.
    pub(crate) async fn settle(
        &mut self,
        engine: &Engine,
        call: &Call,
        operation: Operation,
        container: &str,
    ) -> Result<bool> {
        let mut was_paused = false;
        while engine.is_paused(call, container).await? {
            was_paused = true;
            match &mut self.lock {
                Some(lock) => settle(engine, call, operation, container, lock).await?,
                None => engine.thaw(call, operation, container).await?,
            }
        }
        Ok(was_paused)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            lock.give_back();
        }
    }
}

async fn take(engine: &Engine, call: &Call, operation: Operation, container: &str) -> Result<Lock> {
    let _phase = call.enter(Phase::Queue);
    let lock = engine.locks().take(&engine.facts().id, container);
    let lock = call.bound(lock).await.map_err(|why| {
        Error::interrupted(operation, why)
            .message("another process is copying files of this sandbox")
            .phase(Phase::Queue)
            .build()
    })?;
    lock.map_err(|error| no_lock(operation, error))
}

/// Deals with a container that is paused while nobody on this host holds it:
/// what a dead holder of this host left is thawed at once; what another host
/// may have paused, when nothing has happened to it for longer than anybody
/// may hold it. Returns when it is worth trying again.
async fn settle(
    engine: &Engine,
    call: &Call,
    operation: Operation,
    container: &str,
    lock: &mut Lock,
) -> Result<()> {
    if lock
        .is_left_behind()
        .map_err(|error| no_lock(operation, error))?
    {
        return engine.thaw(call, operation, container).await;
    }
    // Opened before the first look, so that nothing happens in between unseen.
    let mut events = engine.events(call, operation, container).await?;
    if !engine.is_paused(call, container).await? {
        return Ok(());
    }
    let until = Instant::now() + LONGEST + MARGIN;
    let event = call.bound(timeout_at(until, events.next())).await;
    let event = event.map_err(|why| {
        Error::interrupted(operation, why)
            .message(
                "the sandbox is paused, by another host or by hand; it is thawed once it was \
                 paused for longer than a copy may take",
            )
            .phase(Phase::Queue)
            .build()
    })?;
    match event {
        // It was thawed, or taken by somebody else.
        Ok(_) => Ok(()),
        Err(_) if engine.is_paused(call, container).await? => {
            engine.thaw(call, operation, container).await
        }
        Err(_) => Ok(()),
    }
}

pub(crate) fn no_lock(operation: Operation, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, operation)
        .message(format!(
            "the lock of the sandbox cannot be taken: {error}; XDG_RUNTIME_DIR, or TMPDIR, must \
             be a directory of this user"
        ))
        .phase(Phase::Queue)
        .source(error)
        .build()
}
