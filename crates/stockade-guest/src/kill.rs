//! Ending whole trees of processes.

use std::collections::HashSet;
use std::io;

use rustix::process::Pid;

use crate::proc::{Process, Processes};
use crate::sys;

/// What one pass over all processes found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Processes that were alive and to be killed.
    pub(crate) found: u32,
}

/// Decides, process by process in the order of [`Processes::each`], which
/// ones belong to the trees below some roots.
///
/// A child mostly has a higher pid than its parent, so one pass finds the
/// tree; one that has not (the numbers wrapped) is found by a later pass,
/// when its parent is dead and it was handed to the reaper above.
pub(crate) struct Trees<F> {
    is_root: F,
    members: HashSet<Pid>,
}

impl<F: FnMut(&Process) -> bool> Trees<F> {
    /// The trees of every process for which `is_root` holds, roots included.
    pub(crate) fn of(is_root: F) -> Self {
        Self {
            is_root,
            members: HashSet::new(),
        }
    }

    fn holds(&mut self, process: &Process) -> bool {
        let below = process
            .parent
            .is_some_and(|parent| self.members.contains(&parent));
        if below || (self.is_root)(process) {
            self.members.insert(process.pid);
            return true;
        }
        false
    }
}

/// Kills all living members of the trees that it meets, once.
///
/// The pid of a process that was just seen is not reused within a pass:
/// numbers are handed out in turn, and a whole round of them takes far longer.
///
/// # Errors
///
/// When processes could not be looked at; those that could were killed.
pub(crate) fn kill_once<F: FnMut(&Process) -> bool>(
    processes: &Processes,
    mut trees: Trees<F>,
) -> (Pass, io::Result<()>) {
    let mut pass = Pass::default();
    let result = processes.each(|process| {
        if trees.holds(&process) && !process.zombie {
            pass.found += 1;
            let _ = sys::signal(process.pid, libc::SIGKILL);
        }
    });
    (pass, result)
}

/// Counts the living members of the trees.
pub(crate) fn count<F: FnMut(&Process) -> bool>(processes: &Processes, mut trees: Trees<F>) -> u32 {
    let mut living = 0;
    // What cannot be looked at cannot be counted either; the count is for
    // people, no decision rests on it.
    let _ = processes.each(|process| {
        living += u32::from(trees.holds(&process) && !process.zombie);
    });
    living
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid: Pid::from_raw(pid).unwrap(),
            parent: Pid::from_raw(parent),
            zombie: false,
            usage: crate::proc::Usage::default(),
        }
    }

    #[test]
    fn a_tree_is_its_roots_and_everything_below_and_nothing_else() {
        let children_of_2 = |process: &Process| process.parent == Pid::from_raw(2);
        let mut trees = Trees::of(children_of_2);
        let seen = [
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 3),
            (5, 1),
            (6, 5),
            (7, 4),
            (8, 0),
        ];
        let members: Vec<i32> = seen
            .into_iter()
            .filter(|(pid, parent)| trees.holds(&process(*pid, *parent)))
            .map(|(pid, _)| pid)
            .collect();
        assert_eq!(members, [3, 4, 7]);
    }
}
