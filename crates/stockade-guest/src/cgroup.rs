//! The control group of the sandbox, versions 1 and 2.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};

use crate::mounts::Mount;

/// Limits of version 1 that mean none are this or more, in bytes.
const UNLIMITED: u64 = 1 << 60;

/// What the control group allows, read once, and its kill counter.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// 1 or 2; 0 when none is visible.
    pub(crate) version: u8,
    /// Bytes of memory.
    pub(crate) memory: Option<u64>,
    /// Processes and threads.
    pub(crate) pids: Option<u64>,
    /// Thousandths of a CPU.
    pub(crate) milli_cpus: Option<u64>,
    /// The file that counts processes killed for want of memory.
    kills: Option<OwnedFd>,
}

impl Cgroup {
    /// Reads the group of this process; `membership` is `/proc/self/cgroup`.
    pub(crate) fn open(mounts: &[Mount], membership: &str) -> Self {
        let place = |controller| directory(mounts, membership, controller);
        if let Some(memory) = place("memory") {
            let cpu = |file: &str| read(&place("cpu")?, file)?.trim().parse::<i64>().ok();
            let quota = cpu("cpu.cfs_quota_us").zip(cpu("cpu.cfs_period_us"));
            return Self {
                version: 1,
                memory: limit(read(&memory, "memory.limit_in_bytes")),
                pids: limit(place("pids").and_then(|pids| read(&pids, "pids.max"))),
                milli_cpus: quota.and_then(|(quota, period)| milli_cpus(quota, period)),
                kills: open(&memory, "memory.oom_control"),
            };
        }
        let Some(unified) = place("") else {
            return Self {
                version: 0,
                memory: None,
                pids: None,
                milli_cpus: None,
                kills: None,
            };
        };
        Self {
            version: 2,
            memory: limit(read(&unified, "memory.max")),
            pids: limit(read(&unified, "pids.max")),
            milli_cpus: read(&unified, "cpu.max").and_then(|text| {
                let mut words = text.split_whitespace().map(|word| word.parse().ok());
                milli_cpus(words.next()??, words.next()??)
            }),
            kills: open(&unified, "memory.events"),
        }
    }

    /// How many processes were killed for want of memory so far; `None` when
    /// that cannot be known.
    pub(crate) fn kills(&self) -> Option<u64> {
        let mut buffer = [0; 1024];
        let read = rustix::io::pread(self.kills.as_ref()?, &mut buffer, 0).ok()?;
        count(&String::from_utf8_lossy(buffer.get(..read)?))
    }
}

/// Where the group of a controller is visible; the empty one is version 2's.
fn directory(mounts: &[Mount], membership: &str, controller: &str) -> Option<Vec<u8>> {
    let mount = mounts.iter().find(|mount| match controller {
        "" => mount.kind == "cgroup2",
        _ => mount.kind == "cgroup" && mount.options.split(',').any(|one| one == controller),
    })?;
    let own = membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        controllers
            .split(',')
            .any(|one| one == controller)
            .then_some(path)
    })?;
    // An engine mounts the group itself (its path is then the mount's root),
    // or everything (the path is below), or gives a namespace (both are `/`).
    let root = String::from_utf8_lossy(&mount.root);
    let below = own.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
    let below = below.trim_start_matches('/');
    Some([&mount.path, &b"/"[..], below.as_bytes()].concat())
}

fn open(directory: &[u8], file: &str) -> Option<OwnedFd> {
    let path = [directory, b"/", file.as_bytes()].concat();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()
}

fn read(directory: &[u8], file: &str) -> Option<String> {
    let mut buffer = [0; 256];
    let read = rustix::io::read(open(directory, file)?, &mut buffer).ok()?;
    Some(String::from_utf8_lossy(buffer.get(..read)?).into_owned())
}

fn limit(text: Option<String>) -> Option<u64> {
    let limit = text?.trim().parse().ok()?;
    (limit < UNLIMITED).then_some(limit)
}

fn milli_cpus(quota: i64, period: i64) -> Option<u64> {
    let quota = u64::try_from(quota).ok().filter(|quota| *quota > 0)?;
    let period = u64::try_from(period).ok().filter(|period| *period > 0)?;
    Some(quota.checked_mul(1000)? / period)
}

fn count(text: &str) -> Option<u64> {
    let counter = |line: &str| line.strip_prefix("oom_kill ")?.trim().parse().ok();
    text.lines().find_map(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, root: &str, path: &str, options: &str) -> Mount {
        Mount {
            root: root.into(),
            path: path.into(),
            kind: kind.into(),
            read_only: true,
            options: options.into(),
        }
    }

    #[test]
    fn the_group_is_found_however_the_engine_mounts_it() {
        let legacy = |root: &str| vec![mount("cgroup", root, "/sys/fs/cgroup/memory", "rw,memory")];
        let membership = "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/docker/a\n";
        let found = |mounts: &[Mount], membership: &str, controller: &str| {
            directory(mounts, membership, controller).map(|path| String::from_utf8(path).unwrap())
        };
        let own = found(&legacy("/docker/a"), membership, "memory");
        assert_eq!(own.as_deref(), Some("/sys/fs/cgroup/memory/"));
        let all = found(&legacy("/"), membership, "memory");
        assert_eq!(all.as_deref(), Some("/sys/fs/cgroup/memory/docker/a"));
        assert_eq!(found(&legacy("/"), membership, "pids"), None);
        let unified = [mount("cgroup2", "/", "/sys/fs/cgroup", "rw,nsdelegate")];
        let own = found(&unified, "0::/\n", "");
        assert_eq!(own.as_deref(), Some("/sys/fs/cgroup/"));
        assert_eq!(found(&[], membership, "memory"), None);
    }

    #[test]
    fn limits_that_mean_none_are_none() {
        assert_eq!(limit(Some("1073741824\n".into())), Some(1 << 30));
        assert_eq!(limit(Some("max\n".into())), None);
        assert_eq!(limit(Some("9223372036854771712\n".into())), None);
        assert_eq!(milli_cpus(150_000, 100_000), Some(1500));
        assert_eq!(milli_cpus(-1, 100_000), None);
        assert_eq!(milli_cpus(1, 0), None);
    }

    #[test]
    fn the_kill_counter_is_read_in_both_versions() {
        assert_eq!(
            count("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            Some(3)
        );
        assert_eq!(
            count("low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n"),
            Some(1)
        );
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\n"), None);
    }
}
