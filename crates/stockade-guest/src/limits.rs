//! Resource limits of the runtime itself, which guest code can lower.
//!
//! `prlimit` lets a process of the same user change the limits of PID 1, and
//! every command inherits them. A soft limit is simply put back. A lowered
//! hard limit stays lowered without privileges; what it hits is then refused,
//! command by command, and the host decides what the sandbox is still worth.
//! (Descriptors kept in reserve would not help: the kernel compares the number
//! of a new descriptor with the limit, whatever is free below.)
//!
//! One of them cannot be survived: with a lowered hard `RLIMIT_CPU` the kernel
//! kills PID 1 when it has used that much. It ends the sandbox and nothing
//! else, and the host sees it end.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const ALL: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// The limits as they were when the process started.
pub(crate) struct Limits {
    soft: [Option<u64>; ALL.len()],
}

/// Whose limit of open files is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFiles {
    /// The runtime's own, which is as high as it goes.
    Runtime,
    /// A program's, as the sandbox was started with.
    Program,
}

impl Limits {
    /// Reads what is in force, before any guest code runs.
    pub(crate) fn in_force() -> Self {
        Self {
            soft: ALL.map(|resource| getrlimit(resource).current),
        }
    }

    /// Puts the soft limits back, as far as the hard ones still allow.
    pub(crate) fn restore(&self, open_files: OpenFiles) {
        for (resource, soft) in ALL.into_iter().zip(self.soft) {
            let found = getrlimit(resource);
            let wanted = match (resource, open_files) {
                (Resource::Nofile, OpenFiles::Runtime) => found.maximum,
                _ => lower(soft, found.maximum),
            };
            if found.current != wanted {
                // Refused only when the hard limit was lowered in between.
                let _ = setrlimit(
                    resource,
                    Rlimit {
                        current: wanted,
                        maximum: found.maximum,
                    },
                );
            }
        }
    }
}

/// How many descriptors this process may have.
pub(crate) fn open_files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20)
}

/// The lower of two limits, `None` being no limit.
fn lower(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (limit, None) | (None, limit) => limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_higher_than_any() {
        assert_eq!(lower(Some(3), None), Some(3));
        assert_eq!(lower(None, Some(4)), Some(4));
        assert_eq!(lower(Some(3), Some(4)), Some(3));
        assert_eq!(lower(None, None), None);
    }
}
