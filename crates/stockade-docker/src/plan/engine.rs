//! What the engine can enforce, before any limit is promised.

use docker_driver::EngineFacts;
use stockade::{Refusal, SandboxSpec};

/// The least memory with which a sandbox starts: the guest runtime, a relay
/// and a program need some megabytes, and docker itself refuses less than 6.
const LEAST_MEMORY: u64 = 16 * 1024 * 1024;

/// PID 1, a relay, a supervisor and a program, and room for one child each.
const LEAST_PIDS: u64 = 8;

/// The highest number of processes that Linux knows (`PID_MAX_LIMIT`).
const MOST_PIDS: u64 = 4_194_304;

/// The least share with which PID 1 answers in time: a hundredth of a CPU is
/// docker's own lower bound.
const LEAST_MILLI_CPUS: u64 = 10;

/// PID 1 and its relay need some open files of their own.
const LEAST_OPEN_FILES: u64 = 64;

/// What an engine and its host have, as far as a plan depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host {
    /// Whether each limit can be enforced at all.
    pub(crate) memory_limit: bool,
    pub(crate) swap_limit: bool,
    pub(crate) pids_limit: bool,
    pub(crate) cpu_quota: bool,
    /// Whether ids inside containers are others than the daemon's.
    pub(crate) user_namespaces: bool,
    pub(crate) cpus: u64,
    pub(crate) memory_total: u64,
}

impl From<&EngineFacts> for Host {
    fn from(facts: &EngineFacts) -> Self {
        Self {
            memory_limit: facts.memory_limit,
            swap_limit: facts.swap_limit,
            pids_limit: facts.pids_limit,
            cpu_quota: facts.cpu_quota,
            user_namespaces: facts.user_namespaces,
            cpus: facts.cpus,
            memory_total: facts.memory_total,
        }
    }
}

/// Refuses what the engine cannot enforce, does not have, or cannot run with.
pub(super) fn check(spec: &SandboxSpec, engine: &Host) -> Result<(), Refusal> {
    let limits = spec.limits();
    let enforceable = [
        ("memory", engine.memory_limit, "memory"),
        (
            "swap",
            engine.swap_limit,
            "swap, so that a memory limit could be passed by swapping",
        ),
        ("pids", engine.pids_limit, "processes"),
        ("milli_cpus", engine.cpu_quota, "CPU time"),
    ];
    for (limit, can, what) in enforceable {
        if !can {
            let why = format!(
                "the engine's host has no control group that limits {what}; enable it there (`docker info` names what is missing)"
            );
            return Err(Refusal::LimitNotEnforceable { limit, why });
        }
    }
    let most = [
        ("memory", limits.memory, engine.memory_total),
        (
            "milli_cpus",
            limits.milli_cpus,
            engine.cpus.saturating_mul(1000),
        ),
        ("pids", limits.pids, MOST_PIDS),
    ];
    for (limit, asked, most) in most {
        if asked > most {
            return Err(Refusal::LimitAboveEngine { limit, asked, most });
        }
    }
    let least = [
        ("memory", limits.memory, LEAST_MEMORY),
        ("pids", limits.pids, LEAST_PIDS),
        ("milli_cpus", limits.milli_cpus, LEAST_MILLI_CPUS),
        ("open_files_soft", limits.open_files_soft, LEAST_OPEN_FILES),
    ];
    for (limit, asked, least) in least {
        if asked < least {
            return Err(Refusal::LimitBelowFloor {
                limit,
                asked,
                least,
            });
        }
    }
    Ok(())
}
