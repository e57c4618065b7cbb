//! Every requirement of a sandbox, checked one by one, each with its fix.

use stockade::spec::PullPolicy;
use stockade::{
    Backend as _, Call, Error, ErrorKind, ExecRequest, ExecStatus, Image, IsolationScope,
    Operation, SandboxKey, SandboxSpec, Which,
};

use crate::backend::DockerBackend;
use crate::config::DockerConfig;
use crate::engine::Engine;

/// One requirement and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// What is required.
    pub name: &'static str,
    /// Whether it is there.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do, unless it is fine.
    pub fix: Option<String>,
}

/// Whether a requirement is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is.
    Fine,
    /// Sandboxes work; something else does not, or less safely.
    Warning,
    /// No sandbox will start.
    Failed,
    /// It could not be checked, since an earlier one failed.
    Skipped,
}

impl Verdict {
    /// One lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// Checks everything that can be checked without an image, and with one also
/// that a sandbox of it starts, answers and goes away.
///
/// Never fails: what goes wrong is a check that failed.
pub async fn examine(call: &Call, config: DockerConfig, image: Option<&str>) -> Vec<Check> {
    let backend = DockerBackend::connect(call, config).await;
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) => {
            return vec![
                failed("engine", &error),
                skipped("limits"),
                skipped("sandbox"),
            ];
        }
    };
    let mut checks = engine_checks(backend.engine());
    checks.push(match image {
        Some(image) => sandbox(call, &backend, image).await,
        None => Check {
            name: "sandbox",
            verdict: Verdict::Skipped,
            found: "no image was named".to_owned(),
            fix: Some("name one with --image to run a sandbox of it".to_owned()),
        },
    });
    checks
}

fn engine_checks(engine: &Engine) -> Vec<Check> {
    let facts = engine.facts();
    let mut checks = vec![
        fine("client", format!("docker {}", facts.client_version)),
        fine(
            "engine",
            format!(
                "Docker Engine {} at {}",
                facts.version_text,
                engine.endpoint()
            ),
        ),
        fine(
            "guest runtime",
            format!("carried for {}", engine.platform()),
        ),
    ];
    let limits = [
        ("memory limit", facts.memory_limit),
        ("swap limit", facts.swap_limit),
        ("process limit", facts.pids_limit),
        ("CPU limit", facts.cpu_quota),
    ];
    for (name, enforced) in limits {
        checks.push(if enforced {
            fine(name, format!("enforced (control groups version {})", facts.cgroup_version))
        } else {
            Check {
                name,
                verdict: Verdict::Failed,
                found: "the engine's host does not enforce it".to_owned(),
                fix: Some(
                    "enable the control group controller on the engine's host; on older kernels boot with \
                     `cgroup_enable=memory swapaccount=1`; `docker info` names what is missing"
                        .to_owned(),
                ),
            }
        });
    }
    checks.push(if facts.seccomp {
        fine("seccomp", "the engine filters system calls".to_owned())
    } else {
        Check {
            name: "seccomp",
            verdict: Verdict::Warning,
            found: "the engine does not filter system calls".to_owned(),
            fix: Some("use a kernel and an engine with seccomp; more of the kernel can be reached without".to_owned()),
        }
    });
    checks
}

async fn sandbox(call: &Call, backend: &DockerBackend, image: &str) -> Check {
    match try_sandbox(call, backend, image).await {
        Ok(found) => fine("sandbox", found),
        Err(error) => failed("sandbox", &error),
    }
}

async fn try_sandbox(call: &Call, backend: &DockerBackend, image: &str) -> Result<String, Error> {
    let spec = SandboxSpec::builder("doctor")
        .image(Image::reference(image).with_pull(PullPolicy::Missing))
        .isolation_scope(IsolationScope::Call)
        .build()?;
    let key = SandboxKey::new("doctor", "doctor", "doctor").with_call(call.id().as_str());
    let tried = async {
        let sandbox = backend.acquire(call, &key, &spec).await?;
        // The one program that every image has under our runtime.
        let request = ExecRequest::argv([crate::plan::GUEST, "version"]).build()?;
        sandbox.exec(call, request).await
    };
    let outcome = tried.await;
    // Also when the call is over: nothing may be left.
    let window = Call::with_timeout(backend.engine().config().command_timeout);
    let removed = backend.dispose(&window, &key, Which::All).await?;
    let _ = backend.close(&window).await?;
    let outcome = outcome?;
    if outcome.status != ExecStatus::Exited(0) {
        return Err(Error::new(ErrorKind::Internal, Operation::Exec)
            .message(format!("a command in it ended with {}", outcome.status))
            .detail(outcome.stderr_text())
            .build());
    }
    if let Some(failure) = removed.folded() {
        return Err(Error::new(ErrorKind::Internal, Operation::Dispose)
            .message(format!("it was not removed: {failure}"))
            .build());
    }
    let wall = outcome.times.wall.as_millis();
    Ok(format!(
        "one of {image} started as planned, ran a command in {wall} ms, and was removed"
    ))
}

fn fine(name: &'static str, found: String) -> Check {
    Check {
        name,
        verdict: Verdict::Fine,
        found,
        fix: None,
    }
}

fn skipped(name: &'static str) -> Check {
    let found = "not checked, since the engine was not reached".to_owned();
    Check {
        name,
        verdict: Verdict::Skipped,
        found,
        fix: None,
    }
}

/// Our sentences say what is wrong and, after the last semicolon, what to do.
fn failed(name: &'static str, error: &Error) -> Check {
    let text = error.to_string();
    let (found, fix) = match text.rsplit_once("; ") {
        Some((found, fix)) => (found.to_owned(), fix.to_owned()),
        None => (
            text,
            "look at the detail with `--json`, and at the engine's own log".to_owned(),
        ),
    };
    Check {
        name,
        verdict: Verdict::Failed,
        found,
        fix: Some(fix),
    }
}
