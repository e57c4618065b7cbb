//! What is known of an engine.

use std::fmt;

/// Where the engine is, pinned by value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Endpoint {
    /// Its address, such as `unix:///var/run/docker.sock`.
    pub host: String,
    /// The context that named it; `default` when it is no named context.
    pub context: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

/// Major and minor number of an engine's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_structs,
    reason = "versions are compared by these two numbers"
)]
pub struct EngineVersion {
    /// The number before the first dot.
    pub major: u32,
    /// The number after the first dot.
    pub minor: u32,
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Version of the engine's HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_structs,
    reason = "versions are compared by these two numbers"
)]
pub struct ApiVersion {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What the engine says of itself, read once when it is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineFacts {
    /// Its version in full, such as `28.5.2+dfsg4`.
    pub version_text: String,
    /// Its version in numbers.
    pub version: EngineVersion,
    /// Newest API that it speaks.
    pub api: ApiVersion,
    /// Oldest API that it speaks.
    pub oldest_api: ApiVersion,
    /// Version of the docker client.
    pub client_version: String,
    /// Operating system of its containers: `linux` or `windows`.
    pub os: String,
    /// Processor architecture, by Go's name, such as `amd64`.
    pub architecture: String,
    /// What it runs on, in words.
    pub operating_system: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Its id.
    pub id: String,
    /// Its host's name.
    pub name: String,
    /// 1 or 2.
    pub cgroup_version: u8,
    /// `cgroupfs`, `systemd` or `none`.
    pub cgroup_driver: String,
    /// Whether it can limit memory.
    pub memory_limit: bool,
    /// Whether it can limit swap.
    pub swap_limit: bool,
    /// Whether it can limit the number of processes.
    pub pids_limit: bool,
    /// Whether it can limit CPU time.
    pub cpu_quota: bool,
    /// Whether it remaps user ids of containers.
    pub user_namespaces: bool,
    /// Whether it runs without root.
    pub rootless: bool,
    /// Whether it filters system calls by default.
    pub seccomp: bool,
    /// Its processors.
    pub cpus: u64,
    /// Its memory in bytes.
    pub memory_total: u64,
    /// Storage driver of its images.
    pub storage_driver: String,
    /// Whether containers survive its restart.
    pub live_restore: bool,
}
