//! Processes of this machine that belong to hosts or to containers, found by what the kernel says
//! of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// A process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// Its command line, with blanks.
    pub(super) line: String,
}

impl Process {
    /// Whether it is a stream to a PID 1.
    pub(super) fn is_relay(&self) -> bool {
        self.line.contains(" exec ") && self.line.ends_with(" attach")
    }

    /// Kills it; `false` when it has ended by itself.
    pub(super) fn kill(&self) -> Result<bool> {
        match kill_process(self.pid, Signal::KILL) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(why) => Err(why).with_context(|| format!("killing {self:?}")),
        }
    }
}

/// Processes whose environment names this endpoint as docker's, but for these.
pub(super) fn clients(endpoint: &str, but: &[u32]) -> Result<Vec<Process>> {
    let named = format!("DOCKER_HOST={endpoint}");
    let of_hosts = |folder: &Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == named.as_bytes())
    };
    let mut found = processes(of_hosts)?;
    let known = |process: &Process| {
        but.iter()
            .any(|&id| i64::from(id) == i64::from(process.pid.as_raw_nonzero().get()))
    };
    found.retain(|process| !known(process) && process.pid != rustix::process::getpid());
    Ok(found)
}

/// The first processes of containers whose control groups are below this one.
pub(super) fn first_processes(group: &str) -> Result<Vec<Process>> {
    let below = format!("/{group}/");
    processes(|folder| {
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        read("cgroup").contains(&below) && is_first(&read("status"))
    })
}

/// Whether a process is number 1 of the innermost namespace that it is in.
fn is_first(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().last() == Some("1"))
}

/// Every process that is so. One that ends meanwhile is none.
fn processes(is_so: impl Fn(&Path) -> bool) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("reading /proc")? {
        let folder: PathBuf = entry.context("reading /proc")?.path();
        let name = folder.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        if is_so(&folder) {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(Process {
                pid,
                line: line.trim_end().to_owned(),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_of_a_container_is_told_by_its_innermost_number() {
        assert!(is_first("Name:\tguest\nNSpid:\t4711\t52\t1\n"));
        assert!(!is_first("Name:\tsh\nNSpid:\t4712\t53\t7\n"));
        assert!(!is_first(""));
    }

    #[test]
    fn a_relay_is_told_from_other_clients() {
        let process = |line: &str| Process {
            pid: Pid::INIT,
            line: line.to_owned(),
        };
        assert!(process("docker exec --interactive abc /.stockade/guest attach").is_relay());
        assert!(!process("docker exec abc /.stockade/guest status").is_relay());
        assert!(!process("docker rm --force abc").is_relay());
    }

    #[test]
    fn a_process_that_is_known_is_left_out() {
        assert_eq!(
            clients("unix:///nobody/uses/this.sock", &[]).expect("a look"),
            []
        );
    }
}
