//! Which processes and mounts of a provisioned engine exist, and how they are cleared.
//!
//! A process is the engine's when its root directory is the engine's root file system, which
//! nobody else enters. So no file has to be trusted that a crash could leave stale, and no name
//! has to be matched that a neighbour could share. Containers have roots of their own, but live in
//! the process namespace of the engine's first process, and die with it.

use std::fs::{self, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroups;
use super::home::Home;
use super::inside::FIRST;
use super::start::STARTERS;

/// How long the kernel may take to end a killed process and everything in its namespace.
const END: Duration = Duration::from_secs(20);

/// The processes of an engine, but for those of its containers.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The first process of the namespaces: with it everything ends.
    pub(super) first: Option<Pid>,
    pub(super) containerd: Option<Pid>,
    pub(super) dockerd: Option<Pid>,
    /// Whether there is one that will be a daemon as soon as it has executed it.
    pub(super) starting: bool,
    others: Vec<Pid>,
}

impl Processes {
    /// Looks through the processes of this machine.
    pub(super) fn of(home: &Home) -> Result<Self> {
        let mut processes = Self::default();
        let Ok(root) = fs::metadata(home.root()) else {
            return Ok(processes);
        };
        for entry in fs::read_dir("/proc").context("reading /proc")? {
            let name = entry.context("reading /proc")?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that ends meanwhile has neither root nor name.
            let folder = Path::new("/proc").join(&name);
            if !fs::metadata(folder.join("root")).is_ok_and(|found| same(&found, &root)) {
                continue;
            }
            let Ok(comm) = fs::read_to_string(folder.join("comm")) else {
                continue;
            };
            processes.add(Pid::from_raw(pid), comm.trim_end());
        }
        Ok(processes)
    }

    /// Whether all parts of the engine run.
    pub(super) fn complete(&self) -> bool {
        self.first.is_some() && self.containerd.is_some() && self.dockerd.is_some()
    }

    fn add(&mut self, pid: Option<Pid>, comm: &str) {
        let Some(pid) = pid else { return };
        let slot = match comm {
            FIRST => &mut self.first,
            "containerd" => &mut self.containerd,
            "dockerd" => &mut self.dockerd,
            other => {
                self.starting |= STARTERS.contains(&other);
                return self.others.push(pid);
            }
        };
        // A daemon that is about to execute something has a copy of itself for an instant, with
        // a higher number.
        match slot {
            Some(first) if first.as_raw_nonzero() < pid.as_raw_nonzero() => self.others.push(pid),
            _ => self.others.extend(slot.replace(pid)),
        }
    }

    /// All of them, the first process first.
    fn all(&self) -> impl Iterator<Item = Pid> {
        let named = [self.first, self.dockerd, self.containerd];
        named
            .into_iter()
            .flatten()
            .chain(self.others.iter().copied())
    }
}

/// Clears everything of an engine that is not stored on purpose: processes, control groups, the
/// socket, and mounts on the host.
pub(super) fn clear(home: &Home) -> Result<()> {
    // A few rounds, for what was born between the look and the kill.
    for _ in 0..5 {
        let processes = Processes::of(home)?;
        if processes.all().next().is_none() {
            break;
        }
        for pid in processes.all() {
            send(pid, Signal::KILL)?;
        }
        // A process that control groups of version 1 have frozen dies only when it is thawed.
        cgroups::thaw(&home.cgroup())?;
        for pid in processes.all() {
            if !wait(pid, END)? {
                bail!(
                    "process {pid} of the engine does not end",
                    pid = pid.as_raw_nonzero()
                );
            }
        }
    }
    cgroups::remove(&home.cgroup())?;
    match fs::remove_file(home.socket()) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            return Err(why).with_context(|| format!("removing {}", home.socket().display()));
        }
        _ => {}
    }
    clear_mounts(home.folder())
}

/// Sends a signal to a process, if it still exists.
pub(super) fn send(pid: Pid, signal: Signal) -> Result<()> {
    let Some(fd) = open(pid)? else { return Ok(()) };
    match pidfd_send_signal(fd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(why) => Err(why).with_context(|| format!("signalling process {pid:?}")),
    }
}

/// Waits until a process has ended, and tells whether it has.
pub(super) fn wait(pid: Pid, longest: Duration) -> Result<bool> {
    let Some(fd) = open(pid)? else {
        return Ok(true);
    };
    let mut watched = [PollFd::new(&fd, PollFlags::IN)];
    let longest = Timespec::try_from(longest).context("a time that the kernel can count")?;
    let ready = poll(&mut watched, Some(&longest)).context("waiting for a process")?;
    Ok(ready > 0)
}

/// A descriptor of a process, or nothing when it is gone.
fn open(pid: Pid) -> Result<Option<OwnedFd>> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        // Older kernels call a number invalid that lives on only as that of a group or a session.
        Err(Errno::SRCH | Errno::INVAL) => Ok(None),
        Err(why) => Err(why).with_context(|| format!("watching process {pid:?}")),
    }
}

/// Unmounts whatever is mounted below a folder in this mount namespace, deepest first.
pub(super) fn clear_mounts(folder: &Path) -> Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    for point in mounts_below(&table, folder).into_iter().rev() {
        unmount(&point, UnmountFlags::empty())
            .with_context(|| format!("unmounting {}", point.display()))?;
    }
    Ok(())
}

/// The mount points below a folder, in the order in which they were mounted.
fn mounts_below(table: &str, folder: &Path) -> Vec<PathBuf> {
    table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(|point| PathBuf::from(unescape(point)))
        .filter(|point| point.starts_with(folder))
        .collect()
}

/// The kernel writes blanks and backslashes in a mount point as three octal digits.
fn unescape(field: &str) -> String {
    let mut text = field.to_owned();
    for (code, plain) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        text = text.replace(code, plain);
    }
    text
}

fn same(a: &Metadata, b: &Metadata) -> bool {
    a.dev() == b.dev() && a.ino() == b.ino()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Make;

    fn pid(number: i32) -> Option<Pid> {
        Pid::from_raw(number)
    }

    #[test]
    fn a_copy_of_a_daemon_is_not_taken_for_it() {
        for order in [[10, 20], [20, 10]] {
            let mut processes = Processes::default();
            for number in order {
                processes.add(pid(number), "dockerd");
            }
            assert_eq!(processes.dockerd, pid(10));
            assert_eq!(processes.all().count(), 2);
        }
    }

    #[test]
    fn a_daemon_in_its_first_instant_is_known_to_be_starting() {
        let mut processes = Processes::default();
        processes.add(pid(10), STARTERS[0]);
        assert!(processes.starting && processes.dockerd.is_none());
    }

    #[test]
    fn only_mounts_below_the_folder_are_named() {
        let table = "20 1 8:1 / / rw - ext4 /dev/a rw\n\
                     21 20 0:5 / /c/engine/run rw - tmpfs tmpfs rw\n\
                     22 20 0:6 / /c/engine-other rw - tmpfs tmpfs rw\n\
                     23 20 0:7 / /c/engine/a\\040b rw - tmpfs tmpfs rw\n";
        assert_eq!(
            mounts_below(table, Path::new("/c/engine")),
            [
                PathBuf::from("/c/engine/run"),
                PathBuf::from("/c/engine/a b")
            ]
        );
    }

    #[test]
    fn an_engine_without_a_root_has_no_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path().to_owned(), Make::New).expect("a short path");
        assert_eq!(Processes::of(&home).expect("a look").all().count(), 0);
    }

    #[test]
    fn the_end_of_a_process_that_is_gone_needs_no_waiting() {
        assert!(wait(pid(i32::MAX).expect("a number"), Duration::from_secs(9)).expect("a look"));
    }
}
