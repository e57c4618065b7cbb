//! How the engine's processes are started, and what is healed when only some of them are dead.
//!
//! Three processes make the engine: the first one, which holds the namespaces and reaps;
//! containerd, which holds the containers; and dockerd. Each daemon is started apart from the
//! other, so that containers outlive a restart of dockerd where live restore is on. A dockerd that
//! is run without privileges starts its containerd itself.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::{Pid, Signal};
use serde_json::json;

use super::cgroups;
use super::find;
use super::home::Home;
use super::inside::{PATH, READY};
use super::leftovers::{self, Processes};
use super::{Changes, Make, remap, rootless};
use crate::process::{Program, tail};
use crate::progress::{Stopwatch, say};

/// The programs that become a daemon in the end. The first gives it a session of its own.
pub(super) const STARTERS: [&str; 3] = ["setsid", "setpriv", "rootlesskit"];

/// How long a daemon may take to load what is stored and to answer.
const STARTING: Duration = Duration::from_secs(60);

/// How long a daemon that asks its containers to stop may take for it.
pub(super) const STOPPING: Duration = Duration::from_secs(45);

/// How long a daemon that has been up for a while may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Starts what does not run. Whatever is left of an engine that cannot be healed is cleared.
///
/// The caller holds the cache's lock, and the root file system is there.
pub(super) fn ensure(home: &Home) -> Result<()> {
    let processes = Processes::of(home)?;
    if processes.complete() && answers(home) {
        return Ok(());
    }
    // With both daemons dead nobody knows the truth about the containers any more.
    let worth_healing = processes.containerd.is_some() || processes.dockerd.is_some();
    let healable = worth_healing && home.make() != Make::Rootless;
    if let Some(first) = processes.first.filter(|_| healable) {
        say("the engine is up only in part; starting the rest of it");
        match heal(home, first, &processes) {
            Ok(()) => return Ok(()),
            Err(why) => say(format_args!("that failed, so it is started anew: {why:#}")),
        }
    }
    leftovers::clear(home)?;
    cgroups::delegate()?;
    home.prepare()?;
    configure(home, Settings::of(home))?;
    let first = start_first(home)?;
    if home.make() != Make::Rootless {
        start_containerd(home, first)?;
    }
    start_dockerd(home, first)
}

/// Ends dockerd and starts it again with what is changed.
pub(super) fn restart(home: &Home, changes: Changes, kill: bool) -> Result<()> {
    if home.make() == Make::Rootless {
        bail!("an engine without privileges is stopped and started, not restarted");
    }
    let processes = Processes::of(home)?;
    let (Some(first), Some(dockerd)) = (processes.first, processes.dockerd) else {
        bail!("the provisioned engine is not up; `cargo xtask engine up` starts it");
    };
    let mut settings = Settings::of(home);
    if let Some(wanted) = changes.live_restore {
        settings.live_restore = wanted;
        set_live_restore(home, dockerd, settings)?;
    }
    leftovers::send(dockerd, if kill { Signal::KILL } else { Signal::TERM })?;
    if !leftovers::wait(dockerd, STOPPING)? {
        bail!("dockerd did not end within {} s", STOPPING.as_secs());
    }
    if let Some(wanted) = changes.userns_remap {
        // A running daemon must not read it: it would refuse its whole configuration.
        settings.userns_remap = wanted;
        configure(home, settings)?;
    }
    start_dockerd(home, first)
}

/// Starts the daemons that are dead, and replaces a dockerd that does not answer.
fn heal(home: &Home, first: Pid, processes: &Processes) -> Result<()> {
    if processes.containerd.is_none() {
        start_containerd(home, first)?;
    }
    if let Some(dockerd) = processes.dockerd {
        // It finds a new containerd by itself, within seconds.
        let answered = patiently("dockerd", ANSWER, || Ok(answers(home).then_some(())));
        if answered.is_ok() {
            return Ok(());
        }
        leftovers::send(dockerd, Signal::KILL)?;
        if !leftovers::wait(dockerd, STOPPING)? {
            bail!("dockerd does not end");
        }
    }
    start_dockerd(home, first)
}

/// Makes the namespaces, and in them the process that holds them.
fn start_first(home: &Home) -> Result<Pid> {
    let own = std::env::current_exe().context("the path of xtask itself")?;
    let line = Program::new(STARTERS[0])
        .args([
            "--fork", "unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork",
        ])
        .args(["--propagation", "private", "--"])
        .arg(own)
        .args(["engine", "inside", home.make().name()])
        .arg(home.folder())
        .only_env()
        .env("PATH", PATH)
        .first_line(&fresh_log(home, "first")?)?;
    if line != READY {
        bail!("the engine's first process said `{line}` instead of `{READY}`");
    }
    // It says so just before it becomes the program that the search knows it by.
    patiently("the engine's first process", STARTING, || {
        Ok(Processes::of(home)?.first)
    })
}

fn start_containerd(home: &Home, first: Pid) -> Result<()> {
    start(
        home,
        first,
        "containerd",
        &["--config", "/etc/docker/containerd.toml"],
    )
}

fn start_dockerd(home: &Home, first: Pid) -> Result<()> {
    // A killed daemon leaves this file, and the next one refuses to start when the number in it
    // has come to belong to any other process.
    let stale = format!("/proc/{}/root/run/docker.pid", first.as_raw_nonzero());
    match fs::remove_file(&stale) {
        Err(why) if why.kind() != ErrorKind::NotFound => {
            return Err(why).with_context(|| format!("removing {stale}"));
        }
        _ => {}
    }
    let line: &[&str] = match home.make() {
        Make::Rootless => &["--rootless", "--config-file", "/etc/docker/daemon.json"],
        _ => &[],
    };
    start(home, first, "dockerd", line)?;
    let answered = patiently("dockerd", STARTING, || {
        if answers(home) {
            return Ok(Some(()));
        }
        let processes = Processes::of(home)?;
        if processes.dockerd.is_none() && !processes.starting {
            bail!("dockerd ended as soon as it was started");
        }
        Ok(None)
    });
    answered.map_err(|why| {
        let log = home.log("dockerd");
        let text = fs::read(&log).unwrap_or_default();
        why.context(format!("the end of {}:\n{}", log.display(), tail(&text)))
    })
}

/// Starts a daemon in the namespaces of the first process, in a session of its own and as the
/// first process's child.
fn start(home: &Home, first: Pid, daemon: &str, args: &[&str]) -> Result<()> {
    let program = Program::new("nsenter")
        .arg(format!("--target={}", first.as_raw_nonzero()))
        .args([
            "--mount", "--net", "--pid", "--ipc", "--uts", "--root", "--wd", "--",
        ])
        .args([STARTERS[0], "--fork"])
        .only_env()
        .env("PATH", PATH);
    let program = match home.make() {
        Make::Rootless => program
            .args(rootless::LINE)
            .env("HOME", rootless::RUNTIME)
            .env("XDG_RUNTIME_DIR", rootless::RUNTIME),
        _ => program.env("HOME", "/root"),
    };
    program
        .arg(daemon)
        .args(args)
        .log_to(&fresh_log(home, daemon)?)
}

/// What can be changed of the daemon.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    live_restore: bool,
    userns_remap: bool,
}

impl Settings {
    /// Those that the last start or restart left; at first those of the make, which are Docker's
    /// own but for what the make is named after.
    fn of(home: &Home) -> Self {
        let read = || -> Option<serde_json::Value> {
            serde_json::from_slice(&fs::read(home.config("daemon.json")).ok()?).ok()
        };
        let Some(found) = read() else {
            return Self {
                live_restore: false,
                userns_remap: home.make().remaps(),
            };
        };
        Self {
            live_restore: found["live-restore"].as_bool().unwrap_or(false),
            userns_remap: found["userns-remap"].is_string(),
        }
    }
}

/// Writes what both daemons read when they start.
fn configure(home: &Home, settings: Settings) -> Result<()> {
    let mut dockerd = json!({
        "hosts": ["unix:///run/stockade/docker.sock"],
        "live-restore": settings.live_restore,
        "log-opts": { "max-size": "10m" },
    });
    if home.make() == Make::Rootless {
        rootless::prepare(home)?;
        dockerd["data-root"] = "/var/lib/docker".into();
    } else {
        dockerd["containerd"] = "/run/containerd/containerd.sock".into();
        dockerd["cgroup-parent"] = format!("/{}", home.cgroup()).into();
        dockerd["exec-opts"] = json!(["native.cgroupdriver=cgroupfs"]);
    }
    if settings.userns_remap {
        remap::prepare(&home.root())?;
        dockerd["userns-remap"] = remap::DEFAULT.into();
    }
    let containerd = match home.make() {
        // Before version 2 of containerd, which the third form of the file came with.
        Make::Old => {
            "version = 2\n\
             disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"
        }
        _ => {
            "version = 3\n\
             disabled_plugins = [\n\
             \x20 \"io.containerd.grpc.v1.cri\",\n\
             \x20 \"io.containerd.cri.v1.images\",\n\
             \x20 \"io.containerd.cri.v1.runtime\",\n\
             ]\n"
        }
    };
    for (file, text) in [
        ("daemon.json", format!("{dockerd:#}\n")),
        ("containerd.toml", containerd.to_owned()),
    ] {
        let path = home.config(file);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Changes this setting of a running daemon: the one that stops decides what its containers do.
fn set_live_restore(home: &Home, dockerd: Pid, settings: Settings) -> Result<()> {
    configure(home, settings)?;
    leftovers::send(dockerd, Signal::HUP)?;
    let info = Program::new(home.client())
        .args(["info", "--format", "{{.LiveRestoreEnabled}}"])
        .env("DOCKER_HOST", home.endpoint())
        .deadline(ANSWER);
    patiently("the new setting of live restore", ANSWER, || {
        let wanted = settings.live_restore.to_string();
        Ok((info.read()?.trim() == wanted).then_some(()))
    })
}

/// Asks again until there is an answer.
fn patiently<T>(
    what: &str,
    longest: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let waiting = Stopwatch::start();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if waiting.elapsed() > longest {
            return Err(anyhow!("waited {} s in vain for {what}", longest.as_secs()));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the daemon answers and has its containerd.
fn answers(home: &Home) -> bool {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(home.socket())?;
        // It listens before it is ready, so the answer itself is the event to wait for.
        stream.set_read_timeout(Some(ANSWER))?;
        // Version 1.0, so that the answer ends with the stream.
        stream.write_all(b"GET /version HTTP/1.0\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| find::is_complete(&answer))
}

/// The file for a process's output, with that of its predecessor kept beside it.
fn fresh_log(home: &Home, of: &str) -> Result<std::path::PathBuf> {
    let log = home.log(of);
    let before: &Path = &log.with_extension("log.before");
    match fs::rename(&log, before) {
        Err(why) if why.kind() != ErrorKind::NotFound => {
            Err(why).with_context(|| format!("keeping {}", log.display()))
        }
        _ => Ok(log),
    }
}
