//! Compares what a fresh sandbox really has with what was planned. Pure.

use stockade_wire::message::{Hello, MountInForce};

/// What the hello of a sandbox must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) runtime_digest: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) memory: u64,
    pub(crate) pids: u64,
    pub(crate) milli_cpus: u64,
    pub(crate) open_files_soft: u64,
    pub(crate) open_files_hard: u64,
    pub(crate) read_only_root: bool,
    /// Each tmpfs that was asked for, with its size in bytes.
    pub(crate) tmpfs: Vec<(String, u64)>,
    /// The work directory, if it is a volume on disk.
    pub(crate) disk: Option<String>,
    /// Where the guest runtime is mounted.
    pub(crate) runtime_dir: String,
}

/// Every difference, as sentences that a person can act on; empty when the
/// sandbox is what was asked for.
pub(crate) fn differences(expected: &Expected, hello: &Hello) -> Vec<String> {
    let mut found = Differences(Vec::new());
    let limits = &hello.limits;
    found.compare("guest runtime", &expected.runtime_digest, &hello.digest);
    found.compare("user id", &expected.uid, &hello.uid);
    found.compare("group id", &expected.gid, &hello.gid);
    found.limit("memory", expected.memory, limits.memory);
    found.limit("processes", expected.pids, limits.pids);
    found.limit(
        "thousandths of a CPU",
        expected.milli_cpus,
        limits.milli_cpus,
    );
    found.limit(
        "open files (soft)",
        expected.open_files_soft,
        limits.open_files_soft,
    );
    found.limit(
        "open files (hard)",
        expected.open_files_hard,
        limits.open_files_hard,
    );
    found.limit("core size", 0, limits.core);
    found.require("no-new-privileges is not set", limits.no_new_privileges);
    found.require(
        "capabilities are left in the bounding set",
        limits.capability_bounds == 0,
    );
    found.require(
        "there is a network interface besides loopback",
        !hello.network,
    );
    found.require(
        "the guest runtime can be traced by guest code",
        hello.shielded,
    );
    found.mounts(expected, &hello.mounts);
    found.0
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Display>(&mut self, what: &str, asked: &T, found: &T) {
        if asked != found {
            self.0
                .push(format!("{what}: asked for {asked}, found {found}"));
        }
    }

    fn limit(&mut self, what: &str, asked: u64, found: Option<u64>) {
        match found {
            Some(found) if found == asked => {}
            Some(found) => self
                .0
                .push(format!("{what}: asked for {asked}, found {found}")),
            None => self.0.push(format!(
                "{what}: asked for {asked}, found no limit in force"
            )),
        }
    }

    fn require(&mut self, otherwise: &str, holds: bool) {
        if !holds {
            self.0.push(otherwise.to_owned());
        }
    }

    fn mounts(&mut self, expected: &Expected, mounts: &[MountInForce]) {
        let at = |path: &str| {
            // The last mount on a path is the one that is seen.
            mounts
                .iter()
                .rev()
                .find(|mount| mount.path.as_bytes() == path.as_bytes())
        };
        match at("/") {
            Some(root) if root.read_only == expected.read_only_root => {}
            Some(_) if expected.read_only_root => self.0.push("the root is writable".into()),
            Some(_) => self.0.push("the root is read-only".into()),
            None => self.0.push("the root is not among the mounts".into()),
        }
        match at(&expected.runtime_dir) {
            Some(runtime) if runtime.read_only => {}
            _ => self
                .0
                .push("the guest runtime's directory is writable".into()),
        }
        for (path, size) in &expected.tmpfs {
            match at(path) {
                Some(mount) if mount.kind == "tmpfs" && mount.size == Some(*size) => {}
                Some(mount) => {
                    let found = mount
                        .size
                        .map_or("no size".into(), |size| format!("{size} bytes"));
                    let kind = &mount.kind;
                    self.0.push(format!(
                        "{path}: asked for a tmpfs of {size} bytes, found {kind} with {found}"
                    ));
                }
                None => self
                    .0
                    .push(format!("{path}: asked for a tmpfs, found no mount")),
            }
        }
        if let Some(disk) = &expected.disk
            && at(disk).is_none_or(|mount| mount.read_only)
        {
            self.0.push(format!(
                "{disk}: asked for a volume, found none to write to"
            ));
        }
        for mount in mounts {
            let path = String::from_utf8_lossy(mount.path.as_bytes());
            let planned = path == "/"
                || path == expected.runtime_dir
                || expected.disk.as_deref() == Some(&*path)
                || expected.tmpfs.iter().any(|(tmpfs, _)| *tmpfs == path);
            if !planned && !mount.read_only && !engines_own(&path) {
                self.0.push(format!(
                    "{path}: a writable {} that nobody asked for",
                    mount.kind
                ));
            }
        }
    }
}

/// What every container of the engine has: small files that name the host,
/// and the shared memory and message queues of its own IPC namespace.
fn engines_own(path: &str) -> bool {
    matches!(path, "/etc/hostname" | "/etc/hosts" | "/etc/resolv.conf")
        || ["/dev", "/proc", "/sys"]
            .iter()
            .any(|base| path == *base || path.starts_with(&format!("{base}/")))
}

#[cfg(test)]
mod tests {
    use stockade_wire::message::LimitsInForce;

    use super::*;

    fn mount(path: &str, kind: &str, read_only: bool, size: Option<u64>) -> MountInForce {
        MountInForce {
            path: path.into(),
            kind: kind.into(),
            read_only,
            size,
        }
    }

    fn planned() -> (Expected, Hello) {
        let expected = Expected {
            runtime_digest: "abc".into(),
            uid: 65534,
            gid: 65534,
            memory: 1 << 30,
            pids: 256,
            milli_cpus: 1000,
            open_files_soft: 1024,
            open_files_hard: 4096,
            read_only_root: true,
            tmpfs: vec![("/work".into(), 256 << 20), ("/tmp".into(), 64 << 20)],
            disk: None,
            runtime_dir: "/.stockade".into(),
        };
        let hello = Hello {
            protocol: stockade_wire::PROTOCOL,
            digest: "abc".into(),
            uid: 65534,
            gid: 65534,
            age_ms: 1,
            kill_generation: 0,
            live_runs: 0,
            limits: LimitsInForce {
                memory: Some(1 << 30),
                pids: Some(256),
                milli_cpus: Some(1000),
                open_files_soft: Some(1024),
                open_files_hard: Some(4096),
                core: Some(0),
                no_new_privileges: true,
                capability_bounds: 0,
                cgroup_version: 2,
            },
            mounts: vec![
                mount("/", "overlay", true, None),
                mount("/work", "tmpfs", false, Some(256 << 20)),
                mount("/tmp", "tmpfs", false, Some(64 << 20)),
                mount("/.stockade", "ext4", true, None),
                mount("/etc/hosts", "ext4", false, None),
                mount("/dev/shm", "tmpfs", false, Some(64 << 20)),
            ],
            network: false,
            shielded: true,
        };
        (expected, hello)
    }

    #[test]
    fn a_sandbox_as_planned_has_no_difference() {
        let (expected, hello) = planned();
        assert_eq!(differences(&expected, &hello), Vec::<String>::new());
    }

    #[test]
    fn a_work_directory_on_disk_is_there_and_writable() {
        let (mut expected, mut hello) = planned();
        expected.tmpfs.remove(0);
        expected.disk = Some("/work".into());
        hello.mounts[1] = mount("/work", "ext4", false, None);
        assert_eq!(differences(&expected, &hello), Vec::<String>::new());
        hello.mounts[1].read_only = true;
        assert_eq!(differences(&expected, &hello).len(), 1);
        hello.mounts.remove(1);
        assert_eq!(differences(&expected, &hello).len(), 1);
    }

    #[test]
    fn a_work_directory_of_the_image_is_no_mount() {
        let (mut expected, hello) = planned();
        expected.tmpfs.remove(0);
        assert_eq!(differences(&expected, &hello).len(), 1);
    }

    #[test]
    fn every_single_deviation_is_named() {
        type Change = fn(&mut Hello);
        let changes: [(&str, Change); 17] = [
            ("guest runtime", |hello| hello.digest.clear()),
            ("user id", |hello| hello.uid = 0),
            ("group id", |hello| hello.gid = 0),
            ("memory", |hello| hello.limits.memory = None),
            ("processes", |hello| hello.limits.pids = Some(512)),
            ("CPU", |hello| hello.limits.milli_cpus = None),
            ("open files (soft)", |hello| {
                hello.limits.open_files_soft = Some(1)
            }),
            ("open files (hard)", |hello| {
                hello.limits.open_files_hard = None
            }),
            ("core", |hello| hello.limits.core = None),
            ("no-new-privileges", |hello| {
                hello.limits.no_new_privileges = false
            }),
            ("capabilities", |hello| {
                hello.limits.capability_bounds = 1 << 21
            }),
            ("network", |hello| hello.network = true),
            ("traced", |hello| hello.shielded = false),
            ("the root is writable", |hello| {
                hello.mounts[0].read_only = false
            }),
            ("/work", |hello| hello.mounts[1].size = None),
            ("/tmp", |hello| drop(hello.mounts.remove(2))),
            ("/host", |hello| {
                hello.mounts.push(mount("/host", "ext4", false, None))
            }),
        ];
        for (name, change) in changes {
            let (expected, mut hello) = planned();
            change(&mut hello);
            let found = differences(&expected, &hello);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(found[0].contains(name), "{name}: {found:?}");
        }
    }
}
