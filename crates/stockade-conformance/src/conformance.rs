//! Runs suites against a backend.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stockade::{Backend, BoxFuture, Call, Capabilities, SandboxKey, SandboxSpec, Which};
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::posix::PosixSubject;
use crate::probe::{Probe, Run, Stop, Verdict};
use crate::report::{Outcome, ProbeReport, Report, SuiteReport};
use crate::site::{Bench, OTHER_THREAD, Site, THREAD};
use crate::subject::Subject;
use crate::suite::Suite;
use crate::suites;

/// The longest that one probe may take; one that takes longer has failed.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest that the disposal at the end may take.
const DISPOSAL: Duration = Duration::from_secs(60);

/// A run of suites against one backend and one spec.
///
/// The spec should have room for what is moved: at least 100 files in and out,
/// 2 MiB a file and 8 MiB in all, or the probes that need it are skipped. Run
/// it once for each spec that matters, such as another work directory.
#[must_use = "nothing is run before `run`"]
pub struct Conformance {
    backend: Arc<dyn Backend>,
    spec: Arc<SandboxSpec>,
    subject: Arc<dyn Subject>,
    suites: Vec<Suite>,
}

impl Conformance {
    /// Every suite, with a [`PosixSubject`].
    pub fn new(backend: Arc<dyn Backend>, spec: Arc<SandboxSpec>) -> Self {
        Self {
            backend,
            spec,
            subject: Arc::new(PosixSubject::new()),
            suites: Suite::ALL.to_vec(),
        }
    }

    /// Sets what acts inside the sandboxes.
    pub fn subject(mut self, subject: Arc<dyn Subject>) -> Self {
        self.subject = subject;
        self
    }

    /// Sets the suites, which run in this order.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.suites = suites.into_iter().collect();
        self
    }

    /// Runs the suites, one probe after another, and disposes of everything
    /// that they acquired.
    ///
    /// What is wrong with the backend, and a call that ends early, are in the
    /// report. Needs a tokio runtime with time.
    ///
    /// Cancel safety: safe; dropped, it disposes of everything in the
    /// background, as long as the runtime lives.
    pub async fn run(&self, call: &Call) -> Report {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        // No two runs share a sandbox, of this process or of others.
        let scope = format!("conformance-{}-{run}", call.id());
        let cleanup = Cleanup::new(&self.backend, &scope);
        let mut suites = Vec::with_capacity(self.suites.len());
        for &suite in &self.suites {
            suites.push(self.run_suite(call, &scope, suite).await);
        }
        Report {
            backend: self.backend.name().to_string(),
            suites,
            left_behind: cleanup.finish().await,
        }
    }

    async fn run_suite(&self, call: &Call, scope: &str, suite: Suite) -> SuiteReport {
        let refused = self.refusal(suite);
        let mut probes = Vec::new();
        if refused.is_none() {
            let key = SandboxKey::new(scope, THREAD, suite.as_str());
            for probe in suites::probes(suite).iter().copied().flatten() {
                let began = Instant::now();
                let outcome = match self.run_probe(call, &key, probe).await {
                    Ok(()) => Outcome::Passed,
                    Err(Stop::Failed(why)) => Outcome::Failed(why),
                    Err(Stop::Skipped(why)) => Outcome::Skipped(why),
                };
                probes.push(ProbeReport {
                    name: probe.name,
                    why: probe.why,
                    outcome,
                    elapsed: began.elapsed(),
                });
            }
        }
        SuiteReport {
            suite,
            refused,
            probes,
        }
    }

    /// Why a suite would attack nothing.
    fn refusal(&self, suite: Suite) -> Option<String> {
        let declared = self.backend.declarations().capabilities;
        if let Some(claim) = suite.capability()
            && !declared.contains(claim)
        {
            return Some(format!(
                "the backend does not declare {claim}; leave the suite out"
            ));
        }
        let missing = self.subject.needs().without(declared);
        (!missing.is_empty()).then(|| {
            format!("the subject needs {missing}, which the backend does not declare; give another")
        })
    }

    async fn run_probe(&self, call: &Call, key: &SandboxKey, probe: &Probe) -> Verdict {
        if let Some(why) = call.interruption() {
            return Err(Stop::Failed(format!("it was not run: {why}")));
        }
        let needs: Capabilities = probe.needs.iter().copied().collect();
        let missing = needs.without(self.backend.declarations().capabilities);
        if !missing.is_empty() {
            return Err(Stop::Skipped(format!(
                "it needs {missing}, which the backend does not declare"
            )));
        }
        let bench = Arc::new(Bench {
            backend: Arc::clone(&self.backend),
            spec: Arc::clone(&self.spec),
            subject: Arc::clone(&self.subject),
            call: call.child(PROBE_TIMEOUT),
            scope: key.scope.clone(),
            probe: probe.name,
        });
        match probe.run {
            Run::OnBench(run) => bounded(&bench.call, run(Arc::clone(&bench))).await,
            Run::OnSite(run) => self.run_on_site(&bench, key, run).await,
        }
    }

    async fn run_on_site(
        &self,
        bench: &Arc<Bench>,
        key: &SandboxKey,
        run: fn(Arc<Site>) -> BoxFuture<'static, Verdict>,
    ) -> Verdict {
        let opening = {
            let (bench, key) = (Arc::clone(bench), key.clone());
            async move { Site::open(&bench, &key).await.map(Arc::new) }
        };
        let opened = bounded(&bench.call, opening).await;
        let site = match opened {
            Ok(site) => site,
            Err(stop) => {
                self.start_over(key).await;
                return Err(stop.during("the probe's directories cannot be made"));
            }
        };
        let verdict = bounded(&bench.call, run(Arc::clone(&site))).await;
        // Whatever the probe left must not be in the way of the next one.
        let clearing = Call::with_timeout(DISPOSAL);
        let cleared = {
            let (site, call) = (Arc::clone(&site), clearing.clone());
            bounded(&clearing, async move { site.clear(&call).await }).await
        };
        if cleared.is_err() {
            drop(site);
            self.start_over(key).await;
        }
        verdict
    }

    /// Gives the next probe of a suite another sandbox.
    async fn start_over(&self, key: &SandboxKey) {
        let call = Call::with_timeout(DISPOSAL);
        let (backend, key) = (Arc::clone(&self.backend), key.clone());
        let disposing = call.clone();
        // What fails here is tried again at the end, and reported there.
        let _ = bounded(&call, async move {
            let _ = backend.dispose(&disposing, &key, Which::All).await?;
            Ok(())
        })
        .await;
    }
}

impl fmt::Debug for Conformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conformance")
            .field("backend", self.backend.name())
            .field("suites", &self.suites)
            .finish_non_exhaustive()
    }
}

/// Runs something of a backend or a subject, either of which may panic or
/// never end.
async fn bounded<T: Send + 'static>(
    call: &Call,
    work: impl Future<Output = Verdict<T>> + Send + 'static,
) -> Verdict<T> {
    let task = AbortOnDropHandle::new(tokio::spawn(work));
    match call.bound(task).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(error)) => Err(Stop::Failed(panicked(error))),
        Err(why) => Err(Stop::Failed(format!("it did not end: {why}"))),
    }
}

fn panicked(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "its task was ended with the runtime".to_owned();
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_default())
}

/// Disposes of everything of a run, at its end or when it is dropped.
struct Cleanup {
    backend: Arc<dyn Backend>,
    scope: Option<String>,
}

impl Cleanup {
    fn new(backend: &Arc<dyn Backend>, scope: &str) -> Self {
        Self {
            backend: Arc::clone(backend),
            scope: Some(scope.to_owned()),
        }
    }

    /// What could not be disposed of.
    async fn finish(mut self) -> Vec<String> {
        match &self.scope {
            None => Vec::new(),
            Some(scope) => {
                let left = dispose(Arc::clone(&self.backend), scope.clone()).await;
                self.scope = None;
                left
            }
        }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if let (Some(scope), Ok(runtime)) = (self.scope.take(), Handle::try_current()) {
            runtime.spawn(dispose(Arc::clone(&self.backend), scope));
        }
    }
}

/// Not under the run's call, which may have ended.
async fn dispose(backend: Arc<dyn Backend>, scope: String) -> Vec<String> {
    let mut left = Vec::new();
    for thread in [THREAD, OTHER_THREAD] {
        let call = Call::with_timeout(DISPOSAL);
        let (backend, scope, inner) = (Arc::clone(&backend), scope.clone(), call.clone());
        let disposing = async move { Ok(backend.dispose_scope(&inner, &scope, thread).await?) };
        match bounded(&call, disposing).await {
            Ok(removed) => left.extend(removed.failures.iter().map(ToString::to_string)),
            Err(Stop::Failed(why) | Stop::Skipped(why)) => left.push(why),
        }
    }
    left
}
