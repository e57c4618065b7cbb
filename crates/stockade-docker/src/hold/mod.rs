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

/// A container that runs, and that nobody on this host pauses as long as this
/// lives.
#[derive(Debug)]
pub(crate) struct Running(Option<Lock>);

impl Running {
    /// Waits until a container that was found paused runs.
    ///
    /// Cancel safe.
    pub(crate) async fn wait(
        engine: &Engine,
        call: &Call,
        operation: Operation,
        container: &str,
    ) -> Result<Self> {
        // Whoever holds it on this host has the lock until it is thawed.
        let mut lock = take(engine, call, operation, container).await?;
        while engine.is_paused(call, container).await? {
            settle(engine, call, operation, container, &mut lock).await?;
        }
        Ok(Self(Some(lock)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
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
