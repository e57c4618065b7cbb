//! The control group of the sandbox, versions 1 and 2.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};
use stockade_wire::inquiry::{MemoryUse, TaskUse};

use crate::mounts::Mount;

/// Limits of version 1 that mean none are this or more, in bytes.
const UNLIMITED: u64 = 1 << 60;

/// What the control group allows, read once, and the files of what it counts,
/// opened before any guest code runs.
#[derive(Debug, Default)]
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
    memory_now: Option<OwnedFd>,
    memory_peak: Option<OwnedFd>,
    tasks: Option<OwnedFd>,
}

impl Cgroup {
    /// Reads the group of this process; `membership` is `/proc/self/cgroup`.
    pub(crate) fn open(mounts: &[Mount], membership: &str) -> Self {
        let place = |controller| directory(mounts, membership, controller);
        if let Some(memory) = place("memory") {
            let cpu = |file: &str| read(&place("cpu")?, file)?.trim().parse::<i64>().ok();
            let quota = cpu("cpu.cfs_quota_us").zip(cpu("cpu.cfs_period_us"));
            let pids = place("pids");
            return Self {
                version: 1,
                memory: limit(read(&memory, "memory.limit_in_bytes")),
                pids: limit(pids.as_ref().and_then(|pids| read(pids, "pids.max"))),
                milli_cpus: quota.and_then(|(quota, period)| milli_cpus(quota, period)),
                kills: open(&memory, "memory.oom_control"),
                memory_now: open(&memory, "memory.usage_in_bytes"),
                memory_peak: open(&memory, "memory.max_usage_in_bytes"),
                tasks: pids.and_then(|pids| open(&pids, "pids.current")),
            };
        }
        let Some(unified) = place("") else {
            return Self::default();
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
            memory_now: open(&unified, "memory.current"),
            memory_peak: open(&unified, "memory.peak"),
            tasks: open(&unified, "pids.current"),
        }
    }

    /// How many processes were killed for want of memory so far; `None` when
    /// that cannot be known.
    pub(crate) fn kills(&self) -> Option<u64> {
        count(&read_again(self.kills.as_ref())?)
    }

    /// Memory in use, and what is allowed.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        MemoryUse {
            current: number(self.memory_now.as_ref()),
            peak: number(self.memory_peak.as_ref()),
            limit: self.memory,
        }
    }

    /// Processes and threads, and how many are allowed.
    pub(crate) fn task_use(&self) -> TaskUse {
        TaskUse {
            current: number(self.tasks.as_ref()),
            limit: self.pids,
        }
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

/// A file that was opened before, as it is now.
fn read_again(file: Option<&OwnedFd>) -> Option<String> {
    let mut buffer = [0; 1024];
    let read = rustix::io::pread(file?, &mut buffer, 0).ok()?;
    Some(String::from_utf8_lossy(buffer.get(..read)?).into_owned())
}

fn number(file: Option<&OwnedFd>) -> Option<u64> {
    read_again(file)?.trim().parse().ok()
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
    fn figures_are_read_as_they_are_at_the_time_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display().to_string();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text);
        for (version, kind, options, membership, now, peak, most) in [
            (
                1,
                "cgroup",
                "rw,memory,pids",
                "4:memory,pids:/\n",
                "memory.usage_in_bytes",
                "memory.max_usage_in_bytes",
                "memory.limit_in_bytes",
            ),
            (
                2,
                "cgroup2",
                "rw",
                "0::/\n",
                "memory.current",
                "memory.peak",
                "memory.max",
            ),
        ] {
            for (file, text) in [
                (now, "5\n"),
                (peak, "9\n"),
                (most, "100\n"),
                ("pids.current", "3\n"),
                ("pids.max", "max\n"),
            ] {
                write(file, text).unwrap();
            }
            let cgroup = Cgroup::open(&[mount(kind, "/", &at, options)], membership);
            assert_eq!(cgroup.version, version);
            write(now, "7\n").unwrap();
            let expected = MemoryUse {
                current: Some(7),
                peak: Some(9),
                limit: Some(100),
            };
            assert_eq!(cgroup.memory_use(), expected);
            let expected = TaskUse {
                current: Some(3),
                limit: None,
            };
            assert_eq!(cgroup.task_use(), expected);
        }
        assert_eq!(Cgroup::open(&[], "").memory_use(), MemoryUse::default());
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
