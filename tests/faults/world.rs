//! One host on a real engine, whose docker client does what it is told.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stockade::{
    Backend as _, Call, Error, ErrorKind, ExecOutcome, ExecRequest, ReapFilter, Sandbox,
    SandboxKey, SandboxSpec, SpecBuilder, Which,
};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::client::Client;
use stockade_tests::engine::{call, docker_ok, unique};
use tokio::time::{Instant, sleep};

/// What a backend runs as docker.
pub(crate) const CLIENT: &str = env!("CARGO_BIN_EXE_stockade-test-docker");

/// How long a docker command may take where nothing hangs; that of the
/// product.
pub(crate) const PATIENT: Duration = Duration::from_secs(60);

/// How long it may take where one hangs: longer than any takes on a loaded
/// engine, and no longer than a test can wait.
pub(crate) const IMPATIENT: Duration = Duration::from_secs(4);

/// How long what goes on in the background may take until it is asserted.
const SETTLE: Duration = Duration::from_secs(20);

/// How often what has to be there before a cell begins is tried again.
pub(crate) const PATIENCE: u32 = 4;

/// How a backend is configured beyond its owner and its client.
pub(crate) type Configure = Arc<dyn Fn(DockerConfig) -> DockerConfig + Send + Sync>;

/// A host, and the sandbox that it has or wants.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) owner: String,
    pub(crate) key: SandboxKey,
    pub(crate) spec: Arc<SandboxSpec>,
    pub(crate) backend: DockerBackend,
    pub(crate) sandbox: Option<Sandbox>,
    /// How every backend of the host is configured, and how the next one is.
    pub(crate) first: Configure,
    pub(crate) configure: Configure,
    /// The volumes that were filled with a guest runtime.
    pub(crate) filled: Arc<Mutex<BTreeSet<String>>>,
    /// The last sandbox that was acquired.
    last: String,
}

/// Something of an owner's on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    /// A container's full id, or a volume's name.
    pub(crate) id: String,
    pub(crate) name: String,
}

impl World {
    /// A host with a key of its own, and nothing on the engine.
    pub(crate) async fn new(spec: SpecBuilder, configure: Configure) -> Self {
        let owner = unique("faults");
        let client = Client::new(Path::new(CLIENT));
        let mut backend = connect(&client, &owner, &configure).await;
        for _ in 0..PATIENCE {
            if backend.is_err() {
                // Its time for one command may be short on a loaded engine.
                backend = connect(&client, &owner, &configure).await;
            }
        }
        let backend = backend.expect("the engine is there");
        Self {
            key: SandboxKey::new("faults", unique("thread"), "agent"),
            spec: spec.build().expect("the spec is valid"),
            client,
            owner,
            backend,
            sandbox: None,
            first: Arc::clone(&configure),
            configure,
            filled: Arc::default(),
            last: String::new(),
        }
    }

    /// The next process of the same host: it knows nothing.
    pub(crate) async fn connect(&self) -> Result<DockerBackend, Error> {
        connect(&self.client, &self.owner, &self.configure).await
    }

    pub(crate) async fn acquire(&self, call: &Call) -> Result<Sandbox, Error> {
        self.backend.acquire(call, &self.key, &self.spec).await
    }

    /// Gets a sandbox whose channel was not opened yet.
    pub(crate) async fn with_sandbox(&mut self) -> Result<(), Error> {
        // The last handle closes the channel.
        self.sandbox = None;
        let sandbox = self.acquire(&call()).await?;
        self.last = sandbox.id().as_str().to_owned();
        self.sandbox = Some(sandbox);
        Ok(())
    }

    /// The sandbox that it has.
    pub(crate) fn sandbox(&self) -> Sandbox {
        self.sandbox.clone().expect("it was acquired")
    }

    /// The full id of the container that it got last.
    pub(crate) fn id(&self) -> String {
        self.last.clone()
    }

    /// Names of the volumes that were filled.
    pub(crate) fn filled(&self) -> BTreeSet<String> {
        let mut filled = self.filled.lock().expect("nobody panics");
        std::mem::take(&mut filled)
    }

    /// What a host does next: it uses the sandbox that it has, or gets that of
    /// its key when it has none, or it is gone.
    pub(crate) async fn works(&mut self) -> Result<(), String> {
        if let Some(sandbox) = &self.sandbox {
            match echo(sandbox).await {
                Err(error) if error.kind() == ErrorKind::Lost => self.sandbox = None,
                echoed => return works(echoed),
            }
        }
        let acquired = self.with_sandbox().await;
        acquired.map_err(|error| format!("the next acquire failed: {error:?}"))?;
        works(echo(&self.sandbox()).await)
    }

    /// Everything that is left of the owner's.
    pub(crate) fn left(&self) -> Vec<Thing> {
        let filter = format!("label=dev.stockade.owner={}", self.owner);
        let format = "{{.ID}} {{.Names}}";
        let containers = [
            "ps",
            "-a",
            "--no-trunc",
            "--format",
            format,
            "--filter",
            &filter,
        ];
        let volumes = [
            "volume",
            "ls",
            "--format",
            "{{.Name}} {{.Name}}",
            "--filter",
            &filter,
        ];
        let (containers, volumes) = std::thread::scope(|scope| {
            let volumes = scope.spawn(|| docker_ok(volumes));
            (
                docker_ok(containers),
                volumes.join().expect("docker lists volumes"),
            )
        });
        let lines = containers.lines().chain(volumes.lines());
        lines
            .filter_map(|line| line.split_once(' '))
            .map(|(id, name)| Thing {
                id: id.to_owned(),
                name: name.to_owned(),
            })
            .collect()
    }

    /// What is left of the owner's beyond what may be, once the background has
    /// had its time.
    pub(crate) async fn left_beyond(&self, may_be: impl Fn(&Thing) -> bool) -> Vec<Thing> {
        let until = Instant::now() + SETTLE;
        loop {
            let left: Vec<_> = self
                .left()
                .into_iter()
                .filter(|thing| !may_be(thing))
                .collect();
            if left.is_empty() || Instant::now() > until {
                return left;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Removes the sandboxes of the key, and asserts that they are gone.
    pub(crate) async fn clear(&mut self) -> Result<(), String> {
        self.sandbox = None;
        let removed = self.backend.dispose(&call(), &self.key, Which::All).await;
        match removed {
            Ok(removed) if removed.is_clean() => {}
            other => return Err(format!("the next disposal failed: {other:?}")),
        }
        if !self.left().is_empty() {
            // What is of no sandbox yet is for a reap.
            let (call, everything) = (call(), ReapFilter::everything());
            let reaped = self.backend.reap(&call, &everything).await;
            let reaped = reaped.map_err(|error| format!("the next reap: {error:?}"))?;
            if !reaped.is_clean() {
                return Err(format!("the next reap failed: {reaped:?}"));
            }
        }
        match self.left_beyond(|_| false).await {
            left if left.is_empty() => Ok(()),
            left => Err(format!("left after the next disposal: {left:?}")),
        }
    }

    /// Ends the host, and asserts that it leaves nothing.
    pub(crate) async fn finish(mut self) -> Result<(), String> {
        self.client.release();
        self.clear().await?;
        match self.backend.close(&call()).await {
            Ok(closed) if closed.is_clean() => Ok(()),
            other => Err(format!("the close at the end: {other:?}")),
        }
    }
}

impl Thing {
    /// Whether it is a volume: those have no ids.
    pub(crate) fn is_volume(&self) -> bool {
        self.id == self.name
    }

    /// Whether a text names it.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        text.contains(&self.name) || text.contains(&self.id)
    }
}

async fn echo(sandbox: &Sandbox) -> Result<ExecOutcome, Error> {
    let request = ExecRequest::shell("echo works").build()?;
    sandbox.exec(&call(), request).await
}

fn works(echoed: Result<ExecOutcome, Error>) -> Result<(), String> {
    match echoed {
        Ok(outcome) if outcome.success() && outcome.stdout == "works\n" => Ok(()),
        other => Err(format!("the next command did not work: {other:?}")),
    }
}

async fn connect(
    client: &Client,
    owner: &str,
    configure: &Configure,
) -> Result<DockerBackend, Error> {
    let config = DockerConfig::new(owner).docker_path(client.path());
    DockerBackend::connect(&call(), configure(config)).await
}
