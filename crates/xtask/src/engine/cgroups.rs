//! The control groups of the engine's containers, in every hierarchy that the host has mounted.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal};

use super::leftovers;
use crate::progress::say;

/// Makes sure that groups below the top can have limits, where version 2 is the only one.
///
/// On a host itself this needs nothing. In a container with a view of its own the top holds
/// processes, and then the kernel lets no group below it have limits: they move into a group.
pub(super) fn delegate() -> Result<()> {
    let top = Path::new("/sys/fs/cgroup");
    let Ok(available) = fs::read_to_string(top.join("cgroup.controllers")) else {
        return Ok(());
    };
    let switch = top.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&switch).with_context(|| switch.display().to_string())?;
    let missing = missing(&available, &enabled);
    if missing.is_empty() {
        return Ok(());
    }
    let enable = || fs::write(&switch, &missing);
    if enable().is_err_and(|why| why.kind() == ErrorKind::ResourceBusy) {
        let aside = top.join("stockade-host");
        say(format_args!(
            "moving the processes of this container into {}",
            aside.display()
        ));
        fs::create_dir_all(&aside).with_context(|| format!("making {}", aside.display()))?;
        for pid in fs::read_to_string(top.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            // One that has ended meanwhile cannot be moved, and need not be.
            let _gone = fs::write(aside.join("cgroup.procs"), pid);
        }
        enable().with_context(|| format!("enabling {missing} below {}", top.display()))?;
    }
    Ok(())
}

/// Thaws every process in the groups below `parent`, so that a kill reaches it.
pub(super) fn thaw(parent: &str) -> Result<()> {
    for group in groups(parent)? {
        // Version 1 has the first file, version 2 the second. A group that vanishes needs nothing.
        for (file, thawed) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
            let path = group.join(file);
            if path.exists() {
                ignoring_absence(fs::write(&path, thawed))
                    .with_context(|| format!("writing {}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// Kills every process in the groups below `parent`.
pub(super) fn kill(parent: &str) -> Result<()> {
    for group in groups(parent)? {
        // A group that vanishes has no process left.
        for line in fs::read_to_string(group.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            if let Some(pid) = line.parse().ok().and_then(Pid::from_raw) {
                leftovers::send(pid, Signal::KILL)?;
            }
        }
    }
    thaw(parent)
}

/// Removes the groups below `parent` and itself. They must be empty of processes.
pub(super) fn remove(parent: &str) -> Result<()> {
    for group in groups(parent)?.iter().rev() {
        ignoring_absence(fs::remove_dir(group))
            .with_context(|| format!("removing the control group {}", group.display()))?;
    }
    Ok(())
}

/// All groups from `parent` down, each before those in it.
fn groups(parent: &str) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    let mut found: Vec<PathBuf> = hierarchies(&table)
        .map(|hierarchy| hierarchy.join(parent))
        .filter(|group| group.is_dir())
        .collect();
    let mut next = 0;
    while let Some(group) = found.get(next) {
        found.extend(subgroups(group)?);
        next += 1;
    }
    Ok(found)
}

fn subgroups(group: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(group) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("reading {}", group.display()))?,
    };
    Ok(entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect())
}

/// Where the hierarchies are mounted. The separator before the type varies in place.
fn hierarchies(table: &str) -> impl Iterator<Item = PathBuf> {
    table.lines().filter_map(|line| {
        let (fields, rest) = line.split_once(" - ")?;
        let kind = rest.split(' ').next()?;
        let point = fields.split(' ').nth(4)?;
        matches!(kind, "cgroup" | "cgroup2").then(|| PathBuf::from(point))
    })
}

/// What is to be written for those controllers that limits need and that are not enabled yet.
fn missing(available: &str, enabled: &str) -> String {
    const LIMITS: [&str; 5] = ["cpu", "cpuset", "io", "memory", "pids"];
    let has = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
    let missing = LIMITS
        .iter()
        .filter(|name| has(available, name) && !has(enabled, name));
    missing
        .map(|name| format!("+{name}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn ignoring_absence(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_limits_need_is_enabled() {
        assert_eq!(
            missing("cpu io hugetlb memory pids rdma", "memory pids"),
            "+cpu +io"
        );
        assert_eq!(missing("memory pids", "pids memory"), "");
    }

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let table = "30 20 0:5 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                     31 30 0:6 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
                     32 30 0:7 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found: Vec<_> = hierarchies(table).collect();
        assert_eq!(
            found,
            [
                Path::new("/sys/fs/cgroup/memory"),
                Path::new("/sys/fs/cgroup/unified")
            ]
        );
    }
}
