//! What goes on in the sandbox, as far as PID 1 and the kernel know it.
//!
//! One look, within one turn of the loop: at most [`PROCESSES`] entries of
//! `/proc`, and a few files and file systems that were opened at the start.
//! Nothing of it can wait for guest code.

use std::time::Instant;

use rustix::process::Pid;
use stockade_wire::inquiry::{Activity, RunActivity};

use super::run::{Live, Run};
use super::{RunId, Server, millis};
use crate::space::Space;
use crate::sys;
use crate::usage::{Census, Tree};

/// How many processes are looked at; some 30 milliseconds of work.
const PROCESSES: usize = 4096;

/// The file systems that guest code fills.
#[derive(Debug)]
pub(super) struct Spaces {
    work: Option<Space>,
    tmp: Option<Space>,
}

impl Spaces {
    /// Opens them, before any guest code runs.
    pub(super) fn open(work: &std::ffi::CStr) -> Self {
        Self {
            work: Space::of(work),
            tmp: Space::of("/tmp"),
        }
    }
}

impl Server {
    pub(super) fn activity(&self, journal: bool, now: Instant) -> Activity {
        let alive: Vec<(RunId, &Run, &Live, Pid)> = self.runs_with_processes().collect();
        let roots: Vec<Pid> = alive.iter().map(|(.., supervisor)| *supervisor).collect();
        let processes = self.sandbox.processes.first(PROCESSES);
        let census = Census::of(&processes, &roots);
        let runs: Vec<RunActivity> = alive
            .iter()
            .zip(&census.trees)
            .map(|((id, run, live, _), tree)| of_run(*id, run, live, *tree, now))
            .collect();
        let left = runs.iter().filter(|run| run.ended);
        let left: u32 = left.map(|run| run.processes).sum();
        let busy = self.busy(now);
        Activity {
            protocol: stockade_wire::PROTOCOL,
            version: crate::VERSION.into(),
            digest: self.greeting.digest().into(),
            age_ms: millis(now.duration_since(self.started)),
            idle_ms: busy.idle_ms,
            unheard_ms: millis(now.duration_since(self.host_heard)),
            idle_limit_ms: millis(self.idle_limit),
            maximum_age_ms: millis(self.maximum_age),
            channels: busy.channels,
            waiting: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
            processes: census.living,
            leftovers: left + census.strays,
            memory: self.cgroup.memory_use(),
            tasks: self.cgroup.task_use(),
            oom_kills: self.cgroup.kills(),
            work: self.spaces.work.as_ref().and_then(Space::usage),
            tmp: self.spaces.tmp.as_ref().and_then(Space::usage),
            kill_generation: self.kill_generation,
            journal: journal.then(|| self.journal.entries()),
            journal_lost: self.journal.lost(),
            runs,
        }
    }

    fn runs_with_processes(&self) -> impl Iterator<Item = (RunId, &Run, &Live, Pid)> {
        self.runs.iter().filter_map(|(id, run)| {
            let live = run.live()?;
            let supervisor = live.supervisor.as_ref()?;
            Some((*id, run, live, supervisor.pid))
        })
    }
}

fn of_run(id: RunId, run: &Run, live: &Live, tree: Tree, now: Instant) -> RunActivity {
    RunActivity {
        id: id.0,
        program: run.name().into(),
        background: run.settings.background,
        ended: live.program.is_some(),
        running_ms: millis(now.duration_since(live.started)),
        pid: live.pid,
        cpu_ms: tree.ticks.saturating_mul(1000) / sys::ticks_per_second(),
        memory: tree.pages.saturating_mul(sys::page_size()),
        processes: tree.processes,
    }
}
