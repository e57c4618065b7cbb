//! One command of ours: its deadline, Ctrl-C, and the backend.

use std::time::Duration;

use stockade::{Backend as _, Call, SandboxKey, Which};
use stockade_docker::DockerBackend;

use crate::args::Engine;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupted};
use crate::{progress, say};

/// How long the removal may take when the call's own time is over.
const CLEANUP: Duration = Duration::from_secs(30);

/// What a command works with.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) call: Call,
    pub(crate) interrupted: Interrupted,
    json: bool,
}

impl Session {
    /// Starts the clock, and listens for Ctrl-C. `at_interrupt` says what
    /// happens then.
    pub(crate) fn start(
        deadline: Duration,
        json: bool,
        at_interrupt: &'static str,
    ) -> Result<Self, Failure> {
        let call = Call::with_timeout(deadline);
        let interrupted = interrupt::watch(&call, at_interrupt)
            .map_err(|error| Failure::Host(format!("signals cannot be watched: {error}")))?;
        Ok(Self {
            call,
            interrupted,
            json,
        })
    }

    /// Binds the engine.
    pub(crate) async fn connect(&self, engine: &Engine) -> Result<DockerBackend, Failure> {
        let config = progress::config(engine, self.json);
        Ok(DockerBackend::connect(&self.call, config).await?)
    }

    /// Our own exit code for a result.
    pub(crate) fn code(&self, result: Result<u8, Failure>) -> u8 {
        match result {
            Ok(_) if self.interrupted.is_set() => crate::exit::INTERRUPTED,
            Ok(code) => code,
            Err(failure) => failure.tell(self.json, Some(&self.call), Some(&self.interrupted)),
        }
    }
}

/// Removes the sandboxes of a key, whatever happened. Also says whether
/// something is left.
pub(crate) async fn remove(backend: &DockerBackend, key: &SandboxKey, which: Which) -> bool {
    let call = Call::with_timeout(CLEANUP);
    let disposed = backend.dispose(&call, key, which).await;
    let closed = backend.close(&call).await;
    let mut left = false;
    for result in [disposed, closed] {
        match result {
            Ok(removed) => {
                for failure in &removed.failures {
                    left = true;
                    say::line(&format!("not removed: {failure}"));
                }
            }
            Err(error) => {
                left = true;
                say::error(&error);
            }
        }
    }
    left
}
