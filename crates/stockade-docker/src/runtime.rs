//! The guest runtime on an engine: a volume that is filled once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal};
use stockade_wire::message::Facts;

use crate::config::{Progress, RuntimeSource};
use crate::engine::{Engine, Probe};
use crate::names;
use crate::plan::RuntimeAt;

/// How often a volume whose marker is missing is looked at again before it
/// counts as half-filled: another host may be filling it right now.
const LOOKS: u32 = 20;

/// Between two looks. A fill takes about 300 ms.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// How many half-filled volumes are passed over before the engine is given up.
const ATTEMPTS: u32 = 4;

/// The binary, and which volume of the engine holds it.
#[derive(Debug)]
pub(crate) struct Runtime {
    binary: Vec<u8>,
    digest: String,
    /// What the names of its volumes begin with, each of which is whole or was
    /// left half-filled.
    first: String,
    /// How often it was brought to the engine.
    fills: AtomicU64,
    /// The volume that was seen to be whole, or the first to try.
    volume: Mutex<String>,
}

impl Runtime {
    /// The runtime for the engine's platform.
    ///
    /// # Errors
    ///
    /// [`Refusal::RuntimeNotCarried`], or an error when the file of the
    /// configuration cannot be read.
    pub(crate) async fn of(engine: &Engine) -> Result<Self, Error> {
        let platform = engine.platform();
        let binary = match &engine.config().runtime {
            RuntimeSource::Carried => {
                let carried =
                    stockade_runtime::for_platform(platform.os(), platform.architecture());
                carried
                    .map(|carried| carried.bytes.to_vec())
                    .ok_or_else(|| {
                        let platform = platform.to_string();
                        Error::refused(Operation::Bind, Refusal::RuntimeNotCarried { platform })
                    })?
            }
            RuntimeSource::File(path) => tokio::fs::read(path).await.map_err(|error| {
                Error::new(ErrorKind::InvalidRequest, Operation::Bind)
                    .message(format!(
                        "the guest runtime {} cannot be read; name a static binary for {platform}",
                        path.display()
                    ))
                    .source(error)
                    .build()
            })?,
        };
        let digest = names::hex(&Sha256::digest(&binary));
        let volume = names::runtime_volume(&digest, platform.os(), platform.architecture(), 0);
        Ok(Self {
            binary,
            digest,
            first: volume.clone(),
            fills: AtomicU64::new(0),
            volume: Mutex::new(volume),
        })
    }

    /// Where it is, for a plan.
    pub(crate) fn at<T>(&self, with: impl FnOnce(RuntimeAt<'_>) -> T) -> T {
        let volume = self.volume();
        with(RuntimeAt {
            volume: &volume,
            digest: &self.digest,
        })
    }

    /// Whether a volume of that name is for this very build.
    pub(crate) fn is_of_this_build(&self, volume: &str) -> bool {
        let rest = volume.strip_prefix(&self.first);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// How often this process has brought it to the engine.
    pub(crate) fn fills(&self) -> u64 {
        self.fills.load(Ordering::Relaxed)
    }

    /// Runs `facts` in an image, which also proves that the volume is whole;
    /// fills it when it is not.
    pub(crate) async fn facts(
        &self,
        call: &Call,
        engine: &Engine,
        probe: Probe<'_>,
    ) -> Result<Facts, Error> {
        for attempt in 0..ATTEMPTS {
            let volume = self.volume();
            if let Some(facts) = self.look(call, engine, &volume, probe).await? {
                return Ok(facts);
            }
            let _phase = call.enter(Phase::Runtime);
            engine.config().report(Progress::FillRuntime {
                volume: volume.clone(),
            });
            // Only who makes the volume's first probe fills it: whoever comes
            // later finds the name of that probe taken, and waits.
            if engine
                .fill(call, &volume, probe.image_id, &self.digest, &self.binary)
                .await?
            {
                self.fills.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if let Some(facts) = self.wait_for_another(call, engine, &volume, probe).await? {
                return Ok(facts);
            }
            self.pass_over(engine, attempt + 1);
        }
        Err(Error::new(ErrorKind::Unavailable, Operation::Acquire)
            .message(format!(
                "the guest runtime cannot be brought to the engine: {ATTEMPTS} volumes stayed half-filled; \
                 check the engine's disk, and remove volumes with `docker volume ls -q --filter label=dev.stockade.role=runtime`"
            ))
            .phase(Phase::Runtime)
            .build())
    }

    /// `None` when the volume does not hold our runtime, whole.
    async fn look(
        &self,
        call: &Call,
        engine: &Engine,
        volume: &str,
        probe: Probe<'_>,
    ) -> Result<Option<Facts>, Error> {
        let facts = engine.image_facts(call, volume, probe).await?;
        Ok(facts.filter(|facts| facts.digest == self.digest))
    }

    async fn wait_for_another(
        &self,
        call: &Call,
        engine: &Engine,
        volume: &str,
        probe: Probe<'_>,
    ) -> Result<Option<Facts>, Error> {
        for _ in 0..LOOKS {
            call.bound(tokio::time::sleep(BETWEEN_LOOKS))
                .await
                .map_err(|why| {
                    Error::interrupted(Operation::Acquire, why)
                        .phase(Phase::Runtime)
                        .build()
                })?;
            if let Some(facts) = self.look(call, engine, volume, probe).await? {
                return Ok(Some(facts));
            }
        }
        Ok(None)
    }

    /// A half-filled volume may be in use by a probe that died; it is left to
    /// a later prune, and another name is taken.
    fn pass_over(&self, engine: &Engine, attempt: u32) {
        let platform = engine.platform();
        *self.lock() = names::runtime_volume(
            &self.digest,
            platform.os(),
            platform.architecture(),
            attempt,
        );
    }

    fn volume(&self) -> String {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, String> {
        self.volume.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
