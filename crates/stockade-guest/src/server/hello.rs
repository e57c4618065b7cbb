//! What the sandbox really has, read before any guest code runs.

use std::time::Instant;

use rustix::process::DumpableBehavior;
use rustix::process::{Resource, getrlimit};
use stockade_wire::message::{Hello, LimitsInForce, MountInForce};
use stockade_wire::{Kind, Text, message};

use crate::cgroup::Cgroup;
use crate::facts;
use crate::mounts::{self, Mount};

/// Where the engine mounts what every container has.
const ENGINES: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// Flag of an interface that is up, `net/if.h`.
const IFF_UP: u32 = 1;

/// The first frame of every connection.
#[derive(Debug)]
pub(super) struct Greeting {
    hello: Hello,
    started: Instant,
}

impl Greeting {
    /// Reads what there is to say.
    ///
    /// # Errors
    ///
    /// A sentence on why it cannot be said.
    pub(super) fn read(
        runtime_dir: &[u8],
        shielded: bool,
        started: Instant,
    ) -> Result<(Self, Cgroup), String> {
        let mountinfo = read("/proc/self/mountinfo")?;
        let membership = read("/proc/self/cgroup")?;
        let status = read("/proc/self/status")?;
        let interfaces = read("/proc/self/net/dev")?;
        let mounts = mounts::parse(&mountinfo);
        let cgroup = Cgroup::open(&mounts, &String::from_utf8_lossy(&membership));
        let hello = Hello {
            protocol: stockade_wire::PROTOCOL,
            digest: facts::marker(runtime_dir),
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            age_ms: 0,
            kill_generation: 0,
            live_runs: 0,
            limits: limits(&cgroup, &String::from_utf8_lossy(&status)),
            mounts: mounts.iter().filter_map(in_force).collect(),
            network: interface_names(&String::from_utf8_lossy(&interfaces)).any(may_carry_traffic),
            shielded,
        };
        message::to_payload(Kind::Hello, &hello)
            .map_err(|error| format!("the sandbox cannot be described: {error}"))?;
        Ok((Self { hello, started }, cgroup))
    }

    /// Content of the runtime volume's marker file.
    pub(super) fn digest(&self) -> &str {
        &self.hello.digest
    }

    /// The hello of now.
    pub(super) fn hello(&mut self, kill_generation: u64, live_runs: u32, now: Instant) -> &Hello {
        self.hello.age_ms = super::millis(now.duration_since(self.started));
        self.hello.kill_generation = kill_generation;
        self.hello.live_runs = live_runs;
        &self.hello
    }
}

/// Whether guest code is kept from tracing this process. True from the first
/// instruction when the binary may be executed but not read.
pub(crate) fn is_shielded() -> bool {
    let behavior = rustix::process::dumpable_behavior();
    behavior.is_ok_and(|behavior| behavior != DumpableBehavior::Dumpable)
}

fn limits(cgroup: &Cgroup, status: &str) -> LimitsInForce {
    let open_files = getrlimit(Resource::Nofile);
    LimitsInForce {
        memory: cgroup.memory,
        pids: cgroup.pids,
        milli_cpus: cgroup.milli_cpus,
        open_files_soft: open_files.current,
        open_files_hard: open_files.maximum,
        core: getrlimit(Resource::Core).current,
        no_new_privileges: rustix::thread::no_new_privs().unwrap_or(false),
        // Unreadable counts as everything: the host then sees what it did not ask for.
        capability_bounds: capability_bounds(status).unwrap_or(u64::MAX),
        cgroup_version: cgroup.version,
    }
}

fn capability_bounds(status: &str) -> Option<u64> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

fn in_force(mount: &Mount) -> Option<MountInForce> {
    let engines = ENGINES.iter().any(|base| {
        let below = mount.path.strip_prefix(*base);
        below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
    });
    (!engines).then(|| MountInForce {
        path: Text::from(mount.path.clone()),
        kind: mount.kind.clone(),
        read_only: mount.read_only,
        size: mount.size(),
    })
}

/// The names in `/proc/net/dev`, loopback left out.
fn interface_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .filter(|name| *name != "lo")
}

/// Some kernels put tunnels (`tunl0`, `sit0`) into every namespace. They are
/// down, without an address, and stay so for whoever has no privileges.
fn may_carry_traffic(name: &str) -> bool {
    let Ok(flags) = read(&format!("/sys/class/net/{name}/flags")) else {
        return true;
    };
    let flags = String::from_utf8_lossy(&flags).trim().to_owned();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    !flags.is_ok_and(|flags| flags & IFF_UP == 0)
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_own_mounts_are_left_out_and_their_neighbours_are_not() {
        let mounts = mounts::parse(
            b"1 0 0:1 / / rw - overlay overlay rw\n\
              2 1 0:2 / /proc rw - proc proc rw\n\
              3 1 0:3 / /dev/shm rw - tmpfs shm rw\n\
              4 1 0:4 / /devices rw - tmpfs t rw,size=4k\n",
        );
        let said: Vec<_> = mounts.iter().filter_map(in_force).collect();
        let paths: Vec<_> = said.iter().map(|mount| mount.path.as_bytes()).collect();
        assert_eq!(paths, [&b"/"[..], b"/devices"]);
    }

    #[test]
    fn interfaces_besides_loopback_are_named() {
        let text = "Inter-| Receive\n face |bytes\n    lo: 0 0\n  eth0: 1 2\n";
        assert_eq!(interface_names(text).collect::<Vec<_>>(), ["eth0"]);
    }

    #[test]
    fn the_bounding_set_is_a_mask() {
        assert_eq!(
            capability_bounds("Name:\tx\nCapBnd:\t00000000a80425fb\n"),
            Some(0xa804_25fb)
        );
        assert_eq!(capability_bounds("Name:\tx\n"), None);
    }
}
