//! A sandbox without an engine: the namespaces that one would make.

mod client;
pub(crate) mod files;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use stockade_wire::ends::End;
use stockade_wire::inquiry::{ANSWER, Activity, Retired};

pub(crate) use client::{Client, argv, shell};

/// How long anything may take before the test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// PID 1 in its own namespaces; everything in them ends when this is dropped.
pub(crate) struct Sandbox {
    unshare: Child,
    pid: u32,
    uid: u32,
    folder: tempfile::TempDir,
}

/// How a sandbox differs from the usual one.
pub(crate) struct Options {
    pub(crate) idle_limit: Duration,
    pub(crate) maximum_age: Duration,
    /// Processes of the sandbox's user.
    pub(crate) processes: u32,
    /// Commands of a root shell, after the namespaces are made and before
    /// PID 1 starts; `WORK` is the work directory.
    pub(crate) prepare: &'static str,
    /// More options of the work directory's file system, each after a comma.
    pub(crate) work: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            idle_limit: Duration::from_secs(600),
            maximum_age: Duration::from_secs(600),
            processes: 2000,
            prepare: "",
            work: "",
        }
    }
}

impl Sandbox {
    /// The usual sandbox; `None`, with a printed reason, where namespaces are
    /// not permitted.
    pub(crate) fn start() -> Option<Self> {
        Self::with(&Options::default())
    }

    #[expect(
        clippy::print_stdout,
        reason = "whoever reads the test's output must see it"
    )]
    pub(crate) fn with(options: &Options) -> Option<Self> {
        if let Err(why) = permitted() {
            println!("skipped: {why}");
            return None;
        }
        let folder = folder();
        let uid = own_uid();
        let Options {
            idle_limit,
            maximum_age,
            processes,
            prepare,
            work,
        } = options;
        let at = folder.path().display();
        let prepare = prepare.replace("WORK", &format!("{at}/work"));
        let script = format!(
            "set -e
             mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts
             mount -t tmpfs -o mode=0755,uid={uid},gid={uid}{work} work {at}/work
             {prepare}
             exec setpriv --reuid {uid} --regid {uid} --clear-groups --bounding-set -all \
               --no-new-privs prlimit --nproc={processes} --core=0 \
               {at}/runtime/guest init --work {at}/work --runtime-dir {at}/runtime \
               --idle-limit-ms {} --max-age-ms {}",
            idle_limit.as_millis(),
            maximum_age.as_millis(),
        );
        let unshare = command("unshare")
            .args([
                "--fork",
                "--kill-child",
                "--pid",
                "--mount",
                "--net",
                "--ipc",
            ])
            .args(["--mount-proc", "sh", "-c", &script])
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("INHERITED", "yes")
            .spawn()
            .expect("unshare starts");
        let pid = wait_for(|| child_of(unshare.id()));
        Some(Self {
            unshare,
            pid,
            uid,
            folder,
        })
    }

    /// The work directory, inside.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// A path inside, as it is reached from outside.
    pub(crate) fn outside(&self, inside: &Path) -> PathBuf {
        let relative = inside.strip_prefix("/").unwrap();
        Path::new(&format!("/proc/{}/root", self.pid)).join(relative)
    }

    /// The binary, inside and outside.
    pub(crate) fn guest(&self) -> PathBuf {
        self.folder.path().join("runtime/guest")
    }

    /// Attaches as a host does.
    pub(crate) fn attach(&self) -> Client {
        Client::open(self.relay())
    }

    /// A relay as an engine starts it: in the namespaces, by a parent outside.
    pub(crate) fn relay(&self) -> Command {
        self.run_by_engine(&["attach"])
    }

    /// What PID 1 says to somebody that the engine started, as it is printed.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        let output = self.run_by_engine(arguments).output();
        output.expect("an asker starts")
    }

    /// The answer to `guest status`.
    pub(crate) fn status(&self, arguments: &[&str]) -> Activity {
        let arguments = [&["status"], arguments].concat();
        parsed(&self.ask(&arguments))
    }

    /// The answer to `guest retire`.
    pub(crate) fn retire(&self, arguments: &[&str]) -> Retired {
        let arguments = [&["retire"], arguments].concat();
        parsed(&self.ask(&arguments))
    }

    /// The guest runtime as an engine starts it in a sandbox.
    pub(crate) fn run_by_engine(&self, arguments: &[&str]) -> Command {
        let uid = self.uid.to_string();
        let mut started = self.enter();
        started
            .args([
                "setpriv",
                "--reuid",
                &uid,
                "--regid",
                &uid,
                "--clear-groups",
            ])
            .args(["--bounding-set", "-all", "--no-new-privs"])
            .arg(self.guest())
            .args(arguments);
        started
    }

    /// The beginning of a command that runs as root in the namespaces.
    pub(crate) fn enter(&self) -> Command {
        let mut enter = command("nsenter");
        enter.args(["--target", &self.pid.to_string()]);
        enter.args(["--pid", "--mount", "--net", "--ipc"]);
        enter
    }

    /// Sends a signal to PID 1 from outside.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.pid.to_string();
        let status = command("kill").args(["-s", signal, &pid]).status();
        assert!(status.expect("kill starts").success());
    }

    /// Waits for the end of PID 1 and answers its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        let status = wait_for(|| self.unshare.try_wait().expect("unshare can be waited for"));
        status.code()
    }

    /// Waits for the end of PID 1 and answers why it ended.
    pub(crate) fn end(self) -> Option<End> {
        End::of_code(self.wait()?.into())
    }

    /// Processes of the sandbox's user that are alive, PID 1 left out.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mine = |pid: &u32| {
            let status = status_of(*pid);
            let alive = !status.contains("\nState:\tZ");
            alive && status.contains(&format!("\nUid:\t{}\t", self.uid)) && *pid != self.pid
        };
        all_processes().into_iter().filter(mine).collect()
    }

    /// Processes of PID 1's namespace that wait to be reaped.
    pub(crate) fn zombies(&self) -> usize {
        let marker = format!("\nUid:\t{}\t", self.uid);
        let zombie = |pid: &u32| {
            let status = status_of(*pid);
            status.contains("\nState:\tZ") && status.contains(&marker)
        };
        all_processes().iter().filter(|pid| zombie(pid)).count()
    }

    /// Supervisors of live commands, by their pids outside.
    pub(crate) fn supervisors(&self) -> Vec<u32> {
        let named = |pid: &u32| status_of(*pid).starts_with("Name:\tstockade-run\n");
        self.processes().into_iter().filter(named).collect()
    }

    /// Largest resident set of PID 1 so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = status_of(self.pid);
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.expect("PID 1 lives") * 1024
    }

    /// CPU time of PID 1 so far.
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The kernel takes everything else along, and `unshare` follows.
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let (Some(pid), Ok(None)) = (pid, self.unshare.try_wait()) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.unshare.wait();
    }
}

/// The one JSON document that was printed.
pub(crate) fn parsed<T: DeserializeOwned>(output: &Output) -> T {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{complaint}");
    assert!(output.stdout.len() <= ANSWER);
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// Waits until there is something, looking often.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "no tokio in these tests")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until something holds.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    wait_for(|| holds().then_some(()));
}

/// The binary that is tested.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stockade-guest"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests start what an engine would"
)]
pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

/// A folder that the sandbox's user can reach, with the runtime in it as an
/// engine would have it.
fn folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), mode(0o755)).unwrap();
    let runtime = folder.path().join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    std::fs::copy(binary(), runtime.join("guest")).unwrap();
    std::fs::set_permissions(runtime.join("guest"), mode(0o111)).unwrap();
    std::fs::write(runtime.join(stockade_wire::MARKER), "0123abcd\n").unwrap();
    folder
}

/// A user that no other sandbox has, so that limits on a user's processes are
/// a sandbox's own.
fn own_uid() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    200_000 + std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed) % 64
}

fn permitted() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("not root".into());
    }
    for tool in ["setpriv", "prlimit", "nsenter"] {
        if command(tool).arg("--version").output().is_err() {
            return Err(format!("no {tool}"));
        }
    }
    let trial = command("unshare")
        .args([
            "--fork",
            "--pid",
            "--mount",
            "--net",
            "--ipc",
            "--mount-proc",
            "true",
        ])
        .output();
    match trial {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

fn child_of(parent: u32) -> Option<u32> {
    let marker = format!("\nPPid:\t{parent}\n");
    let is_child = |pid: &u32| status_of(*pid).contains(&marker);
    all_processes().into_iter().find(is_child)
}

fn all_processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.parse().ok()).collect()
}

fn status_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}
