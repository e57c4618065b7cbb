//! What is known of an engine.

use std::fmt;

use crate::verbs::{ClientPart, EngineDescription, ServerPart};

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

impl EngineVersion {
    /// Reads the numbers at the start of a version, such as `28.5.2+dfsg4`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        two_numbers(text).map(|(major, minor)| Self { major, minor })
    }

    /// The oldest release that speaks an API, for engines that were built
    /// without a number of their own.
    pub(super) fn of_api(api: ApiVersion) -> Self {
        let (major, minor) = match api {
            api if api
                >= (ApiVersion {
                    major: 1,
                    minor: 48,
                }) =>
            {
                (28, 0)
            }
            api if api
                >= (ApiVersion {
                    major: 1,
                    minor: 41,
                }) =>
            {
                (20, 10)
            }
            _ => (0, 0),
        };
        Self { major, minor }
    }
}

impl ApiVersion {
    /// Reads a version such as `1.51`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        two_numbers(text).map(|(major, minor)| Self { major, minor })
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Version of the engine's HTTP API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl EngineFacts {
    pub(super) fn of(
        client: Option<ClientPart>,
        server: ServerPart,
        info: EngineDescription,
        version: EngineVersion,
    ) -> Self {
        let options = info.security_options.unwrap_or_default();
        let has = |name: &str| {
            // `name=seccomp,profile=builtin`
            let names = options.iter().filter_map(|option| option.split(',').next());
            names
                .filter_map(|option| option.strip_prefix("name="))
                .any(|option| option == name)
        };
        Self {
            version_text: server.version,
            version,
            api: ApiVersion::parse(&server.api_version).unwrap_or_default(),
            oldest_api: ApiVersion::parse(&server.min_api_version).unwrap_or_default(),
            client_version: client.map(|client| client.version).unwrap_or_default(),
            os: server.os,
            architecture: server.arch,
            operating_system: info.operating_system,
            kernel: server.kernel_version,
            id: info.id,
            name: info.name,
            cgroup_version: info.cgroup_version.parse().unwrap_or(0),
            cgroup_driver: info.cgroup_driver,
            memory_limit: info.memory_limit,
            swap_limit: info.swap_limit,
            pids_limit: info.pids_limit,
            cpu_quota: info.cpu_cfs_period && info.cpu_cfs_quota,
            user_namespaces: has("userns"),
            rootless: has("rootless"),
            seccomp: has("seccomp"),
            cpus: info.ncpu,
            memory_total: info.mem_total,
            storage_driver: info.driver,
            live_restore: info.live_restore_enabled,
        }
    }
}

/// The first two numbers of a version.
fn two_numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_whatever_follows_the_numbers() {
        let version = |major, minor| Some(EngineVersion { major, minor });
        assert_eq!(EngineVersion::parse("28.5.2+dfsg4"), version(28, 5));
        assert_eq!(EngineVersion::parse("20.10.24+dfsg1"), version(20, 10));
        assert_eq!(EngineVersion::parse("29.0.0-rc.1"), version(29, 0));
        for text in ["", "dev", "28", "v28.1", "99999999999.1", "-1.2"] {
            assert_eq!(EngineVersion::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_engine_without_a_number_is_judged_by_its_api() {
        let of_api = |text| EngineVersion::of_api(ApiVersion::parse(text).unwrap()).to_string();
        assert_eq!(of_api("1.51"), "28.0");
        assert_eq!(of_api("1.47"), "20.10");
        assert_eq!(of_api("1.40"), "0.0");
    }
}
