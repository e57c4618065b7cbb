//! What each engine is known to do: the one table of differences.
//!
//! A difference that is not here, or one that is here and has gone, fails the matrix by the names
//! of engine and check.

use super::Seat;

/// What a check finds when an earlier one left nothing to look at.
pub(super) const NOT_REACHED: &str = "not reached";

/// What is known of one check.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) check: &'static str,
    /// On every engine that is not named below.
    everywhere: &'static str,
    but: &'static [(Seat, &'static str)],
}

impl Known {
    /// What is found here when all is as it is known to be.
    pub(super) fn at(&self, seat: Seat) -> &'static str {
        let other = self.but.iter().find(|(named, _)| *named == seat);
        other.map_or(self.everywhere, |(_, found)| found)
    }
}

/// A remapping engine's copies would have the wrong owner, and its work directories have none.
const REMAPS: Seat = Seat::Userns;

/// Without control groups no limit holds, so no sandbox is made at all.
const NO_LIMITS: &str = "refused: limit_not_enforceable";

const fn same(check: &'static str, everywhere: &'static str) -> Known {
    Known {
        check,
        everywhere,
        but: &[],
    }
}

/// What needs a sandbox.
const fn inside(check: &'static str, everywhere: &'static str) -> Known {
    Known {
        check,
        everywhere,
        but: &[(Seat::RootlessBare, NOT_REACHED)],
    }
}

/// What makes a sandbox of its own.
const fn made(check: &'static str, everywhere: &'static str) -> Known {
    Known {
        check,
        everywhere,
        but: &[(Seat::RootlessBare, NO_LIMITS)],
    }
}

/// Every check, in the order of looking.
pub(super) const KNOWN: [Known; 26] = [
    same("bind", "bound"),
    Known {
        check: "doctor",
        everywhere: "healthy",
        but: &[(
            Seat::RootlessBare,
            "failed: memory limit, swap limit, process limit, CPU limit, sandbox",
        )],
    },
    made("storage on disk", "served"),
    made("storage in the root", "served"),
    same("allowlist", "refused: egress_not_enforced"),
    made("idle and drifted", "fresh"),
    made("list and activity", "Running, answered"),
    made("history", "it was killed from outside and removed"),
    made("reap", "1 reaped, 0 kept"),
    made("acquire", "fresh"),
    inside("command", "ran"),
    inside("identity", "65534:65534"),
    inside("privileges", "none, system calls filtered"),
    inside("limits read back", "as asked for"),
    inside("interfaces", "lo"),
    inside("root", "read-only"),
    Known {
        check: "work directory",
        everywhere: "65534:65534 700",
        but: &[
            (REMAPS, "65534:65534 1777"),
            (Seat::RootlessBare, NOT_REACHED),
        ],
    },
    inside("work directory limit", "enforced"),
    inside("process limit", "enforced"),
    inside("memory limit", "enforced"),
    Known {
        check: "files, tar",
        everywhere: "both ways",
        but: &[
            (REMAPS, "refused: file_plane"),
            (Seat::RootlessBare, NOT_REACHED),
        ],
    },
    inside("files, guest", "both ways"),
    inside("second host", "adopted"),
    inside("reuse by drift", "refused: drifted"),
    inside("dispose", "1 removed"),
    same("left at the end", "nothing"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_difference_is_of_its_engine_only() {
        let tar = KNOWN.iter().find(|known| known.check == "files, tar");
        let tar = tar.expect("it is known");
        assert_eq!(tar.at(Seat::Userns), "refused: file_plane");
        assert_eq!(tar.at(Seat::New), "both ways");
    }

    #[test]
    fn no_check_is_known_twice_and_no_difference_is_none() {
        let names: HashSet<_> = KNOWN.iter().map(|known| known.check).collect();
        assert_eq!(names.len(), KNOWN.len());
        for known in &KNOWN {
            assert!(
                known
                    .but
                    .iter()
                    .all(|(_, found)| *found != known.everywhere)
            );
        }
    }
}
