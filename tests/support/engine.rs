//! A real engine, and sandboxes on it that prove that they left nothing.

#![expect(clippy::print_stdout, reason = "a test that does not run must say so")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the engine from outside the library"
)]

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stockade::exec::{ExecBuilder, ProcessOutput};
use stockade::{
    Backend as _, Call, ExecOutcome, ExecRequest, Image, IsolationScope, Process, Sandbox,
    SandboxKey, SandboxSpec, SpecBuilder, Which,
};
use stockade_docker::{DockerBackend, DockerConfig};

/// A minimal Debian with Python, a shell, procps, git and pip.
pub const PYTHON: &str = "stockade-test/python:1";
/// An image with nothing in it at all.
pub const EMPTY: &str = "stockade-test/empty:1";

/// One backend with an owner of its own, so that tests side by side see only
/// what is theirs.
#[expect(clippy::exhaustive_structs, reason = "tests take it apart")]
pub struct Host {
    /// The backend under test.
    pub backend: DockerBackend,
    /// Its owner, the value of the label that everything it makes carries.
    pub owner: String,
}

/// One sandbox of a host.
#[expect(clippy::exhaustive_structs, reason = "tests take it apart")]
pub struct Fixture {
    /// Its host.
    pub host: Host,
    /// Its key.
    pub key: SandboxKey,
    /// Its spec.
    pub spec: Arc<SandboxSpec>,
    /// Its handle.
    pub sandbox: Sandbox,
}

impl Host {
    /// A backend on the engine that xtask provided.
    pub async fn new() -> Self {
        Self::with(|config| config).await
    }

    /// The same with a changed configuration.
    pub async fn with(change: impl FnOnce(DockerConfig) -> DockerConfig) -> Self {
        require_engine();
        let owner = unique("test");
        let config = change(DockerConfig::new(&owner));
        let backend = DockerBackend::connect(&call(), config)
            .await
            .expect("the engine is there");
        Self { backend, owner }
    }

    /// A sandbox of this spec under a key of its own.
    pub async fn acquire(self, spec: SpecBuilder) -> Fixture {
        let spec = spec.build().expect("the spec is valid");
        let key = SandboxKey::new("tests", unique("thread"), "agent").with_call("1");
        let sandbox = self
            .backend
            .acquire(&call(), &key, &spec)
            .await
            .expect("a sandbox is acquired");
        Fixture {
            host: self,
            key,
            spec,
            sandbox,
        }
    }

    /// Names of the containers and volumes of this owner.
    pub fn left(&self) -> Vec<String> {
        left_of(&self.owner)
    }

    /// Waits for what is being undone, and asserts that nothing is left.
    pub async fn finish(self) {
        let closed = self
            .backend
            .close(&call())
            .await
            .expect("the backend closes");
        assert!(closed.failures.is_empty(), "{:?}", closed.failures);
        let left = self.left();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

impl Fixture {
    /// A `Strict` sandbox of the Python image.
    pub async fn python() -> Self {
        Host::new().await.acquire(spec(PYTHON)).await
    }

    /// Runs a request to its end.
    pub async fn exec(&self, request: ExecBuilder) -> ExecOutcome {
        let request = request.build().expect("the request is valid");
        self.sandbox
            .exec(&call(), request)
            .await
            .expect("the sandbox does its job")
    }

    /// Starts a request.
    pub async fn spawn(&self, request: ExecBuilder) -> Process {
        let request = request.build().expect("the request is valid");
        self.sandbox
            .spawn(&call(), request)
            .await
            .expect("the command starts")
    }

    /// Runs a shell line.
    pub async fn sh(&self, line: &str) -> ExecOutcome {
        self.exec(ExecRequest::shell(line)).await
    }

    /// Runs a Python program.
    pub async fn py(&self, program: &str) -> ExecOutcome {
        self.exec(ExecRequest::argv(["python3", "-c", program]))
            .await
    }

    /// The full id of the container.
    pub fn container(&self) -> &str {
        self.sandbox.id().as_str()
    }

    /// Removes the sandbox, and asserts that nothing is left.
    pub async fn close(self) {
        let removed = self
            .host
            .backend
            .dispose(&call(), &self.key, Which::All)
            .await;
        let removed = removed.expect("the sandbox is disposed of");
        assert!(removed.failures.is_empty(), "{:?}", removed.failures);
        drop(self.sandbox);
        self.host.finish().await;
    }
}

/// Reads output until all that was seen so far holds a word.
pub async fn read_until(output: &mut ProcessOutput, seen: &mut String, word: &str) {
    while !seen.contains(word) {
        let chunk = output.next().await;
        let chunk = chunk.unwrap_or_else(|| panic!("{word:?} never came, only {seen:?}"));
        seen.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
}

/// A call with time to spare on a loaded machine.
pub fn call() -> Call {
    Call::with_timeout(Duration::from_secs(120))
}

/// The spec of a sandbox for one call.
pub fn spec(image: &str) -> SpecBuilder {
    SandboxSpec::builder("test")
        .image(Image::reference(image))
        .isolation_scope(IsolationScope::Call)
}

/// A name that no other test and no other run has.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos());
    format!("{prefix}-{}-{nanos:x}-{next}", std::process::id())
}

/// Runs `docker` as a person would.
pub fn docker<const N: usize>(words: [&str; N]) -> Output {
    Command::new("docker")
        .args(words)
        .output()
        .expect("the docker client starts")
}

/// What `docker` printed, which must have worked.
pub fn docker_ok<const N: usize>(words: [&str; N]) -> String {
    let output = docker(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {words:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Restarts the daemon; `false` when it is not ours to restart.
///
/// # Panics
///
/// When it does not come back.
#[expect(
    clippy::must_use_candidate,
    reason = "whoever has restarted it once knows that it is ours"
)]
pub fn restart(options: &[&str]) -> bool {
    let Some(xtask) = std::env::var_os("STOCKADE_TEST_XTASK") else {
        println!("not run: the engine is not one of xtask's");
        return false;
    };
    let output = Command::new(xtask)
        .args(["engine", "restart"])
        .args(options)
        .output();
    let output = output.expect("xtask starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    true
}

/// Whether ids inside containers are others than the engine's own there, so
/// that a work directory in memory has no owner that the guest knows.
pub fn remaps_ids() -> bool {
    docker_ok(["info", "--format", "{{json .SecurityOptions}}"]).contains("name=userns")
}

/// Names of the containers and volumes that carry an owner's label.
pub fn left_of(owner: &str) -> Vec<String> {
    let filter = format!("label=dev.stockade.owner={owner}");
    let containers = docker_ok(["ps", "-a", "--format", "{{.Names}}", "--filter", &filter]);
    let volumes = docker_ok(["volume", "ls", "--format", "{{.Name}}", "--filter", &filter]);
    let lines = containers.lines().chain(volumes.lines());
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A missing engine is a mistake of how the tests were started, never a pass.
fn require_engine() {
    assert!(
        std::env::var_os("STOCKADE_TEST_ENGINE").is_some(),
        "these tests need an engine: start them with `cargo xtask test`"
    );
}
