//! What the commands of a sandbox use, out of one look at all processes.

use std::collections::HashMap;

use rustix::process::Pid;

use crate::proc::Process;

/// What is below each of some roots, and beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Census {
    /// Living processes, wherever they belong.
    pub(crate) living: u32,
    /// One per root, in their order.
    pub(crate) trees: Vec<Tree>,
    /// Living processes that belong to no root, and did not come from outside.
    pub(crate) strays: u32,
}

/// Everything below a root, the root itself left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Living processes.
    pub(crate) processes: u32,
    /// CPU time in ticks, of those that are gone as well.
    pub(crate) ticks: u64,
    /// Resident memory of the living, in pages.
    pub(crate) pages: u64,
}

/// Where a process belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// To the root of that number.
    Below(usize),
    /// It was started from outside, or its ancestor was; PID 1 as well.
    Outside,
    /// To none of them, although it came from inside.
    Stray,
}

impl Census {
    /// Counts `processes`; `roots` are reapers, each of all orphans below it.
    pub(crate) fn of(processes: &[Process], roots: &[Pid]) -> Self {
        let parents: HashMap<Pid, Option<Pid>> = processes
            .iter()
            .map(|process| (process.pid, process.parent))
            .collect();
        let numbers: HashMap<Pid, usize> = roots
            .iter()
            .enumerate()
            .map(|(number, root)| (*root, number))
            .collect();
        let mut places = HashMap::new();
        let mut census = Self {
            living: 0,
            trees: vec![Tree::default(); roots.len()],
            strays: 0,
        };
        for process in processes {
            let living = u32::from(!process.zombie);
            census.living += living;
            // A root waits for its orphans: theirs is the time that it reaped.
            if let Some(number) = numbers.get(&process.pid) {
                if let Some(tree) = census.trees.get_mut(*number) {
                    tree.ticks += process.usage.reaped_ticks;
                }
                continue;
            }
            match place(process.pid, &parents, &numbers, &mut places) {
                Place::Outside => {}
                Place::Stray => census.strays += living,
                Place::Below(number) => {
                    if let Some(tree) = census.trees.get_mut(number) {
                        tree.processes += living;
                        tree.ticks += process.usage.ticks + process.usage.reaped_ticks;
                        tree.pages += process.usage.pages;
                    }
                }
            }
        }
        census
    }
}

/// Goes up from a process to what is known already. Every process is passed
/// once over all calls, however deep the trees are.
fn place(
    pid: Pid,
    parents: &HashMap<Pid, Option<Pid>>,
    roots: &HashMap<Pid, usize>,
    known: &mut HashMap<Pid, Place>,
) -> Place {
    let mut path = Vec::new();
    let mut at = pid;
    let found = loop {
        if let Some(place) = known.get(&at) {
            break *place;
        }
        if let Some(number) = roots.get(&at) {
            break Place::Below(*number);
        }
        // Until it is settled, also what a circle ends in: processes are
        // looked at one after the other, while numbers are used again.
        known.insert(at, Place::Stray);
        path.push(at);
        match parents.get(&at) {
            // A child of PID 1 that is no root was orphaned.
            Some(Some(Pid::INIT)) => break Place::Stray,
            Some(Some(parent)) => at = *parent,
            Some(None) => break Place::Outside,
            // Born and gone while we looked.
            None => break Place::Stray,
        }
    };
    for passed in path {
        known.insert(passed, found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::Usage;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    fn process(raw: i32, parent: i32) -> Process {
        Process {
            pid: pid(raw),
            parent: Pid::from_raw(parent),
            zombie: false,
            usage: Usage {
                ticks: 1,
                reaped_ticks: 10,
                pages: 100,
            },
        }
    }

    #[test]
    fn each_tree_has_what_is_below_its_root_in_whatever_order_it_is_seen() {
        let mut processes = vec![
            process(1, 0),
            process(2, 1),
            // Its parent has a higher number: the numbers wrapped.
            process(3, 9),
            process(9, 2),
            process(4, 1),
            process(5, 4),
            process(6, 5),
        ];
        for _ in 0..processes.len() {
            processes.rotate_left(1);
            let census = Census::of(&processes, &[pid(4), pid(2)]);
            let tree = |count: u32| Tree {
                processes: count,
                ticks: u64::from(count) * 11 + 10,
                pages: u64::from(count) * 100,
            };
            assert_eq!(census.trees, [tree(2), tree(2)]);
            assert_eq!((census.living, census.strays), (7, 0));
        }
    }

    #[test]
    fn what_belongs_to_nobody_is_told_apart_from_what_came_from_outside() {
        let processes = [
            process(1, 0),
            process(7, 0),
            process(8, 7),
            process(20, 1),
            process(21, 20),
            process(30, 29),
        ];
        let census = Census::of(&processes, &[]);
        assert_eq!((census.living, census.strays), (6, 3));
    }

    #[test]
    fn the_dead_used_time_and_are_not_counted() {
        let dead = Process {
            zombie: true,
            ..process(3, 2)
        };
        let dead = Process {
            usage: Usage {
                pages: 0,
                ..dead.usage
            },
            ..dead
        };
        let census = Census::of(&[process(1, 0), process(2, 1), dead], &[pid(2)]);
        let expected = Tree {
            processes: 0,
            ticks: 21,
            pages: 0,
        };
        assert_eq!(census.trees, [expected]);
        assert_eq!(census.living, 2);
    }

    #[test]
    fn a_circle_of_parents_has_an_end() {
        let processes = [process(1, 0), process(5, 6), process(6, 5), process(7, 6)];
        let census = Census::of(&processes, &[pid(2)]);
        assert_eq!(census.strays, 3);
        assert_eq!(census.trees, [Tree::default()]);
    }
}
