//! What a sandbox is doing right now, as its own PID 1 says.

use std::time::Duration;

use stockade::{Call, ErrorKind, InstanceId, Operation, Result};
use stockade_wire::inquiry;

use crate::backend::DockerBackend;
use crate::engine::{Engine, Inquired, by_id};

/// How long PID 1 may take to answer: a `docker exec` takes 60 ms, on a loaded
/// engine some seconds.
const ANSWER: Duration = Duration::from_secs(15);

/// What came of asking a sandbox what it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// It answered.
    Answered(Box<Doing>),
    /// It is paused, so that nothing in it can answer.
    Paused,
    /// It runs and did not answer in a way that is understood: its guest
    /// runtime is of a version that cannot be asked, or its guest keeps it
    /// from answering.
    Silent {
        /// What was seen instead, in a few words.
        why: String,
    },
}

/// What a sandbox is doing. It is the guest runtime's own account: a guest can
/// make it look busy, and not idle.
///
/// Memory is in bytes. What is `None` is not limited, or cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Doing {
    /// Version of the guest runtime, for people.
    pub version: String,
    /// Time since it was started.
    pub age: Duration,
    /// How old it may become.
    pub max_age: Duration,
    /// Time since it was last used; zero while it is in use.
    pub idle: Duration,
    /// Time since a host was last heard, which is what the idle limit counts.
    pub unheard: Duration,
    /// How long it lasts without hearing of a host.
    pub idle_limit: Duration,
    /// Hosts that are attached.
    pub channels: u32,
    /// Commands with processes, file operations among them, in the order in
    /// which they were asked for.
    pub commands: Vec<CommandActivity>,
    /// Commands that wait for their turn.
    pub waiting: u32,
    /// Living processes, the guest runtime's own among them.
    pub processes: u32,
    /// Those of them that outlived their program.
    pub leftovers: u32,
    /// Memory that the whole sandbox uses now; files in memory are part of it.
    pub memory: Option<u64>,
    /// The most that it has used.
    pub memory_peak: Option<u64>,
    /// The most that it may use.
    pub memory_limit: Option<u64>,
    /// Processes and threads that its control group counts.
    pub tasks: Option<u64>,
    /// The most that it may have.
    pub tasks_limit: Option<u64>,
    /// Processes that the kernel killed for want of memory.
    pub out_of_memory_kills: Option<u64>,
    /// How full its work directory is.
    pub work_dir: Option<DiskUse>,
    /// How full its `/tmp` is.
    pub tmp: Option<DiskUse>,
    /// How often everything in it was killed, on a host's demand.
    pub kills: u64,
}

/// A command that has processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CommandActivity {
    /// Its number in the sandbox, the same in its [history](super::History).
    pub number: u64,
    /// The first word of what runs, `sh -c` for a shell line, `files` for a
    /// file operation; never anything of its other arguments.
    pub program: String,
    /// Whether it outlives its host.
    pub background: bool,
    /// Whether its program has ended and left the processes that are counted.
    pub ended: bool,
    /// Time since it left the queue.
    pub running_for: Duration,
    /// The program's process id in the sandbox; `None` while it is not known.
    pub pid: Option<u32>,
    /// CPU time of its processes, those that are gone included.
    pub cpu: Duration,
    /// Resident memory of its living processes, shared pages counted for each.
    pub memory: u64,
    /// Its living processes.
    pub processes: u32,
}

/// How full a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DiskUse {
    /// Whether it is a part of a larger one (the engine's disk), whose figures
    /// these then are.
    pub shared: bool,
    /// Bytes in use.
    pub used: u64,
    /// Bytes in all.
    pub size: u64,
    /// Inodes in use.
    pub inodes_used: u64,
    /// Inodes in all; 0 where there is no such bound.
    pub inodes: u64,
}

impl DockerBackend {
    /// What a sandbox is doing, and what it uses: one docker command when it
    /// runs. `None` when it does not run, or does not exist.
    ///
    /// Asking does not count as use: it keeps no sandbox alive.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or the call is over. What the sandbox does
    /// or fails to do is never an error.
    ///
    /// Cancel safe: nothing is changed.
    pub async fn activity(&self, call: &Call, id: &InstanceId) -> Result<Option<Activity>> {
        if by_id(id.as_str()).is_none() {
            return Ok(None);
        }
        let asked = ask(self.engine(), call, id.as_str(), false).await?;
        Ok(match asked {
            Inquired::Answered(activity) => Some(Activity::Answered(Box::new(activity.into()))),
            Inquired::Paused => Some(Activity::Paused),
            Inquired::Silent(why) => Some(Activity::Silent { why }),
            Inquired::Gone => None,
        })
    }
}

/// Asks a sandbox what it is doing, with its journal if wanted. A guest that
/// keeps us waiting is silent.
pub(super) async fn ask(
    engine: &Engine,
    call: &Call,
    id: &str,
    journal: bool,
) -> Result<Inquired<inquiry::Activity>> {
    let mut words = vec!["status".to_owned()];
    words.extend(journal.then(|| "--journal".to_owned()));
    let asking = call.child(ANSWER);
    match engine
        .inquire(&asking, Operation::Inspect, id, &words)
        .await
    {
        Err(error) if error.kind() == ErrorKind::TimedOut && call.interruption().is_none() => {
            let seconds = ANSWER.as_secs();
            Ok(Inquired::Silent(format!(
                "it did not answer in {seconds} s"
            )))
        }
        asked => asked,
    }
}

impl From<inquiry::Activity> for Doing {
    fn from(said: inquiry::Activity) -> Self {
        let millis = Duration::from_millis;
        Self {
            version: said.version,
            age: millis(said.age_ms),
            max_age: millis(said.maximum_age_ms),
            idle: millis(said.idle_ms),
            unheard: millis(said.unheard_ms),
            idle_limit: millis(said.idle_limit_ms),
            channels: said.channels,
            commands: said.runs.into_iter().map(CommandActivity::from).collect(),
            waiting: said.waiting,
            processes: said.processes,
            leftovers: said.leftovers,
            memory: said.memory.current,
            memory_peak: said.memory.peak,
            memory_limit: said.memory.limit,
            tasks: said.tasks.current,
            tasks_limit: said.tasks.limit,
            out_of_memory_kills: said.oom_kills,
            work_dir: said.work.map(DiskUse::from),
            tmp: said.tmp.map(DiskUse::from),
            kills: said.kill_generation,
        }
    }
}

impl From<inquiry::RunActivity> for CommandActivity {
    fn from(run: inquiry::RunActivity) -> Self {
        Self {
            number: run.id,
            program: run.program,
            background: run.background,
            ended: run.ended,
            running_for: Duration::from_millis(run.running_ms),
            pid: (run.pid != 0).then_some(run.pid),
            cpu: Duration::from_millis(run.cpu_ms),
            memory: run.memory,
            processes: run.processes,
        }
    }
}

impl From<inquiry::FileSystemUse> for DiskUse {
    fn from(file_system: inquiry::FileSystemUse) -> Self {
        let inquiry::FileSystemUse {
            shared,
            used,
            size,
            inodes_used,
            inodes,
        } = file_system;
        Self {
            shared,
            used,
            size,
            inodes_used,
            inodes,
        }
    }
}
