//! What a container is made with: a closed set, of which most is not a choice.

use std::fmt;

use super::Mount;
use crate::argv::{
    Argv, ContainerId, ContainerName, ContainerPath, CreationMark, EnvVar, ImageRef, Label,
    Platform,
};

/// Numeric user and group, so that nothing of the image decides what they
/// mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_structs,
    reason = "an identity is these two numbers"
)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// The options of `docker run` and `docker create`.
///
/// Always set, without a way to change them: no network, all capabilities
/// dropped, no new privileges, private IPC and control group namespaces, no
/// log driver, no health check, no restart, no init of docker's, and no pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    name: ContainerName,
    mark: CreationMark,
    image: ImageRef,
    labels: Vec<Label>,
    platform: Option<Platform>,
    entrypoint: Option<String>,
    command: Vec<String>,
    user: Option<User>,
    groups: Vec<u32>,
    work_dir: Option<ContainerPath>,
    hostname: Option<ContainerName>,
    environment: Vec<EnvVar>,
    mounts: Vec<Mount>,
    volumes_from: Option<ContainerId>,
    read_only: bool,
    remove: bool,
    memory: Option<u64>,
    memory_and_swap: Option<u64>,
    milli_cpus: Option<u64>,
    pids: Option<u64>,
    shm_bytes: Option<u64>,
    ulimits: Vec<Ulimit>,
    stop_signal: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ulimit {
    name: &'static str,
    soft: u64,
    hard: u64,
}

impl RunOptions {
    /// A container of this name from this image.
    pub fn new(name: ContainerName, mark: CreationMark, image: ImageRef) -> Self {
        Self {
            name,
            mark,
            image,
            labels: Vec::new(),
            platform: None,
            entrypoint: None,
            command: Vec::new(),
            user: None,
            groups: Vec::new(),
            work_dir: None,
            hostname: None,
            environment: Vec::new(),
            mounts: Vec::new(),
            volumes_from: None,
            read_only: false,
            remove: false,
            memory: None,
            memory_and_swap: None,
            milli_cpus: None,
            pids: None,
            shm_bytes: None,
            ulimits: Vec::new(),
            stop_signal: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &ContainerName {
        &self.name
    }

    /// The mark of this creation.
    pub fn mark(&self) -> &CreationMark {
        &self.mark
    }

    /// Adds labels.
    #[must_use]
    pub fn labels(mut self, labels: impl IntoIterator<Item = Label>) -> Self {
        self.labels.extend(labels);
        self
    }

    /// Demands the image's variant for a platform.
    #[must_use]
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }

    /// The program, in place of the image's own entry point, and its
    /// arguments.
    #[must_use]
    pub fn program<S: Into<String>>(
        mut self,
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        self.entrypoint = Some(program.into());
        self.command = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Identity of every process; the image's own if not given.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.user = Some(user);
        self
    }

    /// Supplementary groups.
    #[must_use]
    pub fn groups(mut self, groups: impl IntoIterator<Item = u32>) -> Self {
        self.groups.extend(groups);
        self
    }

    /// Working directory; the engine creates it when it is missing.
    #[must_use]
    pub fn work_dir(mut self, path: ContainerPath) -> Self {
        self.work_dir = Some(path);
        self
    }

    /// Host name inside; the engine's choice if not given.
    #[must_use]
    pub fn hostname(mut self, name: ContainerName) -> Self {
        self.hostname = Some(name);
        self
    }

    /// Adds environment variables. No value is ever in a word.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = EnvVar>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Adds mounts.
    #[must_use]
    pub fn mounts(mut self, mounts: impl IntoIterator<Item = Mount>) -> Self {
        self.mounts.extend(mounts);
        self
    }

    /// Mounts every volume of that container at the same path, where no mount
    /// of its own is. An anonymous one is then shared: it ends with the last
    /// container that has it.
    #[must_use]
    pub fn volumes_from(mut self, container: ContainerId) -> Self {
        self.volumes_from = Some(container);
        self
    }

    /// Makes the root file system read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Has the engine remove the container, with its anonymous volumes, when
    /// it ends.
    #[must_use]
    pub fn remove_at_end(mut self) -> Self {
        self.remove = true;
        self
    }

    /// Most memory in bytes, with no swap on top.
    #[must_use]
    pub fn memory_without_swap(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self.memory_and_swap = Some(bytes);
        self
    }

    /// Most memory in bytes, where the engine cannot limit swap.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Most CPU time, in thousandths of one CPU.
    #[must_use]
    pub fn milli_cpus(mut self, thousandths: u64) -> Self {
        self.milli_cpus = Some(thousandths);
        self
    }

    /// Most processes and threads.
    #[must_use]
    pub fn pids(mut self, most: u64) -> Self {
        self.pids = Some(most);
        self
    }

    /// Size of `/dev/shm` in bytes.
    #[must_use]
    pub fn shm_bytes(mut self, bytes: u64) -> Self {
        self.shm_bytes = Some(bytes);
        self
    }

    /// Open files of one process.
    #[must_use]
    pub fn open_files(mut self, soft: u64, hard: u64) -> Self {
        self.ulimits.push(Ulimit {
            name: "nofile",
            soft,
            hard,
        });
        self
    }

    /// Size of a core dump in bytes.
    #[must_use]
    pub fn core_bytes(mut self, most: u64) -> Self {
        self.ulimits.push(Ulimit {
            name: "core",
            soft: most,
            hard: most,
        });
        self
    }

    /// The signal that `docker stop` and the engine's own shutdown send.
    #[must_use]
    pub fn stop_signal(mut self, signal: super::Signal) -> Self {
        self.stop_signal = Some(signal.as_str());
        self
    }

    /// Adds the options, the image and the command.
    pub(super) fn add_to(&self, argv: Argv) -> Argv {
        let marked = std::iter::once(self.mark.label()).chain(&self.labels);
        let argv = argv
            .option("name", &self.name)
            .options("label", marked)
            .option("pull", "never")
            .option("network", "none")
            .option("cap-drop", "ALL")
            .option("security-opt", "no-new-privileges")
            .option("ipc", "private")
            .option("cgroupns", "private")
            .option("log-driver", "none")
            .option("restart", "no")
            .option("init", false)
            .flag("no-healthcheck")
            .option("read-only", self.read_only)
            .option("rm", self.remove)
            .maybe("platform", self.platform.as_ref())
            .maybe("user", self.user)
            .options("group-add", &self.groups)
            .maybe("workdir", self.work_dir.as_ref())
            .maybe("hostname", self.hostname.as_ref())
            .maybe("memory", self.memory)
            .maybe("memory-swap", self.memory_and_swap)
            .maybe("cpus", self.milli_cpus.map(Thousandths))
            .maybe("pids-limit", self.pids)
            .maybe("shm-size", self.shm_bytes)
            .options("ulimit", &self.ulimits)
            .maybe("stop-signal", self.stop_signal)
            .maybe("entrypoint", self.entrypoint.as_ref())
            .maybe("volumes-from", self.volumes_from.as_ref())
            .environment(&self.environment)
            .id_file();
        let argv = self
            .mounts
            .iter()
            .map(Mount::option)
            .fold(argv, |argv, (name, value)| argv.option(name, value));
        argv.positional(&self.image).command(&self.command)
    }
}

impl fmt::Display for Ulimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}:{}", self.name, self.soft, self.hard)
    }
}

/// A count of thousandths as the decimal number that docker reads exactly.
struct Thousandths(u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
