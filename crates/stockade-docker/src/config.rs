//! What a host chooses once, for all sandboxes of a backend.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a backend reaches its engine, and what it may spend.
///
/// Everything has a default but the owner; no configuration file and no
/// variable of the environment is read but docker's own (`DOCKER_HOST`,
/// `DOCKER_CONTEXT`, `DOCKER_CONFIG`, `DOCKER_CERT_PATH`,
/// `DOCKER_TLS_VERIFY`), once, when the backend is bound.
#[derive(Clone)]
pub struct DockerConfig {
    pub(crate) owner: String,
    pub(crate) docker_path: PathBuf,
    pub(crate) environment: Option<BTreeMap<OsString, OsString>>,
    pub(crate) command_timeout: Duration,
    pub(crate) cleanup_window: Duration,
    pub(crate) replace_drifted: bool,
    pub(crate) pull_timeout: Duration,
    pub(crate) build_timeout: Duration,
    pub(crate) build_network: bool,
    pub(crate) in_flight: usize,
    pub(crate) runtime: RuntimeSource,
    pub(crate) file_plane: FilePlane,
    pub(crate) progress: Option<ProgressSink>,
}

/// Where the guest runtime comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RuntimeSource {
    /// The binary that this build carries for the engine's platform.
    #[default]
    Carried,
    /// A static binary of the engine's platform.
    File(PathBuf),
}

/// How files get into a sandbox and out of it. Both answer the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FilePlane {
    /// As tar streams through the engine, while the sandbox is paused. Large
    /// files go fastest this way. The default.
    #[default]
    Tar,
    /// Through the guest runtime, as the guest's own user. Many small files go
    /// fastest this way; nothing is paused, no docker command is run, and it
    /// works on engines that cannot pause or that remap users.
    Guest,
}

/// Something that takes long enough for a person to wonder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// An image is being pulled; a line of the client's own report.
    Pull {
        /// The image.
        image: String,
        /// What the client says.
        line: String,
    },
    /// An image is being built; a line of the client's own report.
    Build {
        /// The directory.
        directory: PathBuf,
        /// What the client says.
        line: String,
    },
    /// The guest runtime is copied into a volume of the engine, once.
    FillRuntime {
        /// The volume.
        volume: String,
    },
}

type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

impl DockerConfig {
    /// Defaults, for one owner.
    ///
    /// The owner names the installation: two hosts with the same owner on one
    /// engine share sandboxes and may remove each other's, two with different
    /// owners never do. 1 to 256 bytes without control characters.
    #[must_use]
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            docker_path: PathBuf::from("docker"),
            environment: None,
            command_timeout: Duration::from_secs(60),
            pull_timeout: Duration::from_secs(600),
            build_timeout: Duration::from_secs(600),
            build_network: true,
            cleanup_window: Duration::from_secs(5),
            replace_drifted: true,
            in_flight: 8,
            runtime: RuntimeSource::Carried,
            file_plane: FilePlane::Tar,
            progress: None,
        }
    }

    /// The docker client: a name to look up in `PATH`, or a path. Default `docker`.
    #[must_use]
    pub fn docker_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.docker_path = path.into();
        self
    }

    /// The environment to read docker's own settings from, instead of the
    /// process's at the time of binding.
    #[must_use]
    pub fn environment(mut self, variables: BTreeMap<OsString, OsString>) -> Self {
        self.environment = Some(variables);
        self
    }

    /// Longest time for one docker command other than a pull or a build.
    /// Default 60 s.
    #[must_use]
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// How long whoever asked for something is kept waiting for the removal of
    /// what is of no use any more. It goes on behind their back then, and
    /// [`close`](stockade::Backend::close) waits for it. Default 5 s.
    #[must_use]
    pub fn cleanup_window(mut self, window: Duration) -> Self {
        self.cleanup_window = window;
        self
    }

    /// Refuses a sandbox that was made from another spec, image or build of the
    /// guest runtime, also when nobody uses it. By default one that nobody uses
    /// is replaced, with what is in it.
    #[must_use]
    pub fn refuse_drifted(mut self) -> Self {
        self.replace_drifted = false;
        self
    }

    /// Longest time for one pull. Default 600 s.
    #[must_use]
    pub fn pull_timeout(mut self, timeout: Duration) -> Self {
        self.pull_timeout = timeout;
        self
    }

    /// Longest time for the build of one image. Default 600 s.
    #[must_use]
    pub fn build_timeout(mut self, timeout: Duration) -> Self {
        self.build_timeout = timeout;
        self
    }

    /// Builds images without a network. By default the steps of a build have
    /// the engine's own: a build runs the recipe of the host's own directory,
    /// never one that a guest wrote.
    #[must_use]
    pub fn build_without_network(mut self) -> Self {
        self.build_network = false;
        self
    }

    /// How many docker processes may run at the same time; more wait.
    /// Default 8: engines slow down sharply beyond about twenty.
    #[must_use]
    pub fn in_flight(mut self, most: usize) -> Self {
        self.in_flight = most.max(1);
        self
    }

    /// Where the guest runtime comes from. Default [`RuntimeSource::Carried`].
    #[must_use]
    pub fn runtime(mut self, source: RuntimeSource) -> Self {
        self.runtime = source;
        self
    }

    /// How files are moved. Default [`FilePlane::Tar`].
    #[must_use]
    pub fn file_plane(mut self, plane: FilePlane) -> Self {
        self.file_plane = plane;
        self
    }

    /// Told about what takes long. Called from the tasks that do the work, so
    /// it must not block.
    #[must_use]
    pub fn on_progress(mut self, sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }

    pub(crate) fn report(&self, progress: Progress) {
        if let Some(sink) = &self.progress {
            sink(progress);
        }
    }
}

/// Names what is set; values of the environment may be secret and stay out.
impl fmt::Debug for DockerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DockerConfig")
            .field("owner", &self.owner)
            .field("docker_path", &self.docker_path)
            .field("environment", &self.environment.as_ref().map(BTreeMap::len))
            .field("command_timeout", &self.command_timeout)
            .field("pull_timeout", &self.pull_timeout)
            .field("build_timeout", &self.build_timeout)
            .field("build_network", &self.build_network)
            .field("in_flight", &self.in_flight)
            .field("runtime", &self.runtime)
            .field("file_plane", &self.file_plane)
            .finish_non_exhaustive()
    }
}
