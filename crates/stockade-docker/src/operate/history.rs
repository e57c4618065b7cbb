//! What has happened to a sandbox, and why it ended.

use std::fmt;
use std::time::{Duration, SystemTime};

use docker_driver::ContainerFacts;
use stockade::exec::ExecStatus;
use stockade::{Call, InstanceId, Kind, Operation, Phase, Result, SandboxKey};
use stockade_wire::inquiry::{self, Detachment, Entry};

use super::{activity, death};
use crate::backend::DockerBackend;
use crate::engine::{Engine, Inquired, Remembered, by_id, by_name};
use crate::instance::outcome;
use crate::names::{self, Role};

/// Whose history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryOf {
    /// One physical sandbox.
    #[non_exhaustive]
    Instance(InstanceId),
    /// Every sandbox that had this key and kind, one after the other.
    #[non_exhaustive]
    Sandbox {
        /// The key.
        key: SandboxKey,
        /// The kind.
        kind: Kind,
    },
}

/// What is known of a sandbox's past, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct History {
    /// What happened, oldest first.
    pub events: Vec<Event>,
    /// Why the last of them ended; `None` while it exists, and when nothing is
    /// known of its end.
    pub death: Option<Death>,
    /// Whether it exists now, running or not.
    pub exists: bool,
    /// Whether the engine may have forgotten what came first: it keeps its
    /// last 256 events of all containers, and none of before its own start.
    pub engine_forgot: bool,
    /// How many entries the guest runtime has let go of: it keeps its last 256.
    pub guest_forgot: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// When, by the engine's clock.
    pub at: SystemTime,
    /// To which container.
    pub instance: InstanceId,
    /// What.
    pub what: Happening,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// It was made.
    Created,
    /// It was started.
    Started,
    /// It was frozen.
    Paused,
    /// It was thawed.
    Thawed,
    /// It was sent a signal from outside.
    #[non_exhaustive]
    Signalled {
        /// The number.
        signal: u8,
    },
    /// The kernel ended a process of it, since the memory limit was reached.
    OutOfMemory,
    /// It ended.
    #[non_exhaustive]
    Ended {
        /// Why.
        death: Death,
    },
    /// It was removed.
    Removed,
    /// A host attached to it.
    #[non_exhaustive]
    Attached {
        /// The channel's number in the sandbox.
        channel: u64,
    },
    /// A host's channel ended.
    #[non_exhaustive]
    Detached {
        /// The channel's number in the sandbox.
        channel: u64,
        /// Why, in a word: `closed`, `silent`, `protocol`, `other`.
        why: &'static str,
    },
    /// A command's program runs.
    #[non_exhaustive]
    CommandStarted {
        /// Its number in the sandbox.
        number: u64,
        /// The first word of what runs; see
        /// [`CommandActivity::program`](super::CommandActivity::program).
        program: String,
        /// Whether it outlives its host.
        background: bool,
    },
    /// A command's outcome is known. One that never ran has no start.
    CommandEnded(CommandEnd),
    /// Everything in it was killed, on a host's demand.
    #[non_exhaustive]
    EverythingKilled {
        /// How many times that makes.
        times: u64,
        /// Processes that were still there when the bound ran out.
        left: u32,
    },
    /// Something that this version has no word for, in the words of who
    /// reported it.
    #[non_exhaustive]
    Other {
        /// The report, shortened.
        what: String,
    },
}

/// How a command ended, with its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandEnd {
    /// Its number in the sandbox.
    pub number: u64,
    /// The first word of what ran.
    pub program: String,
    /// How it ended; `None` when this version does not know the way.
    pub status: Option<ExecStatus>,
    /// From leaving the queue to the end.
    pub wall: Duration,
    /// CPU time of everything that it started and reaped.
    pub cpu: Duration,
    /// Largest resident set of one reaped process, in bytes.
    pub peak_memory: u64,
    /// Whether the kernel killed a process of it for want of memory.
    pub out_of_memory: bool,
    /// Processes that it left running.
    pub left_running: u32,
}

/// Why a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Death {
    /// No host was heard for the idle limit.
    IdleLimit,
    /// It reached its maximum age.
    MaximumAge,
    /// It was not in use, and was asked to make room: by a reap, or by an
    /// acquire with another definition.
    Retired,
    /// The engine was asked to stop it, or was itself stopped.
    Stopped,
    /// It was killed from outside, and is gone: disposed of, reaped, removed by
    /// hand, or killed where the engine removes what ends.
    Removed,
    /// It was killed from outside.
    #[non_exhaustive]
    Killed {
        /// The signal's number.
        signal: u8,
    },
    /// The kernel killed its PID 1 for want of memory.
    OutOfMemory,
    /// Its guest runtime gave up, or was never started.
    #[non_exhaustive]
    RuntimeFailed {
        /// The exit code.
        code: i64,
    },
    /// It ended, and nothing says why.
    Unknown,
}

impl HistoryOf {
    /// That of one physical sandbox.
    #[must_use]
    pub fn instance(id: InstanceId) -> Self {
        Self::Instance(id)
    }

    /// That of every sandbox that had this key and kind.
    #[must_use]
    pub fn sandbox(key: SandboxKey, kind: Kind) -> Self {
        Self::Sandbox { key, kind }
    }
}

impl Death {
    /// A stable word for programs and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdleLimit => "idle_limit",
            Self::MaximumAge => "maximum_age",
            Self::Retired => "retired",
            Self::Stopped => "stopped",
            Self::Removed => "removed",
            Self::Killed { .. } => "killed",
            Self::OutOfMemory => "out_of_memory",
            Self::RuntimeFailed { .. } => "runtime_failed",
            Self::Unknown => "unknown",
        }
    }
}

/// As the end of a sentence about the sandbox: "it is gone: …".
impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdleLimit => f.write_str("no host was heard for the idle limit"),
            Self::MaximumAge => f.write_str("the maximum age was reached"),
            Self::Retired => f.write_str("it was not in use, and was retired"),
            Self::Stopped => f.write_str("the engine stopped it"),
            Self::Removed => f.write_str("it was killed from outside and removed"),
            Self::Killed { signal } => write!(f, "it was killed from outside by signal {signal}"),
            Self::OutOfMemory => f.write_str("it ran out of memory"),
            Self::RuntimeFailed { code } => {
                write!(f, "its guest runtime failed with exit code {code}")
            }
            Self::Unknown => f.write_str("nothing is known of its end"),
        }
    }
}

impl DockerBackend {
    /// What is known of a sandbox's past: what its own runtime keeps while it
    /// lives, and what the engine remembers, also of one that is gone: three
    /// docker commands, and one more when it runs.
    ///
    /// Nobody keeps it on purpose: the engine remembers its last 256 events of
    /// all containers, and the runtime its own last 256. An empty history of
    /// what does not exist is no error.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or the call is over.
    ///
    /// Cancel safe: nothing is changed.
    pub async fn history(&self, call: &Call, of: &HistoryOf) -> Result<History> {
        let _phase = call.enter(Phase::Observe);
        let engine = self.engine();
        let container = match of {
            HistoryOf::Instance(id) => match by_id(id.as_str()) {
                Some(container) => container,
                // No engine has such a container, or had one.
                None => return Ok(History::default()),
            },
            HistoryOf::Sandbox { key, kind } => {
                by_name(&names::container(engine.owner(), key, kind))?
            }
        };
        let operation = Operation::Inspect;
        let (now, found) = tokio::try_join!(
            engine.now(call, operation),
            engine.look(call, operation, container.clone()),
        )?;
        let is_ours = |facts: &ContainerFacts| {
            names::role(engine.owner(), &facts.name, &facts.labels) == Some(Role::Guest)
        };
        let found = found.filter(is_ours);
        let (remembered, journal) = tokio::try_join!(
            engine.remembered(call, operation, container, now),
            journal(engine, call, found.as_ref()),
        )?;
        Ok(History::of(&remembered, found.as_ref(), journal))
    }
}

/// Why a container of this owner ended, as far as the engine remembers: two
/// docker commands.
pub(crate) async fn death_of(
    engine: &Engine,
    call: &Call,
    operation: Operation,
    id: &str,
) -> Result<Option<Death>> {
    let Some(container) = by_id(id) else {
        return Ok(None);
    };
    let now = engine.now(call, operation).await?;
    let remembered = engine.remembered(call, operation, container, now).await?;
    Ok(History::of(&remembered, None, Journal::default()).death)
}

/// What a guest runtime has kept.
#[derive(Debug, Default)]
struct Journal {
    entries: Vec<Entry>,
    lost: u64,
}

/// The journal of a sandbox that runs and answers.
async fn journal(engine: &Engine, call: &Call, found: Option<&ContainerFacts>) -> Result<Journal> {
    let Some(facts) = found.filter(|facts| facts.state.running && !facts.state.paused) else {
        return Ok(Journal::default());
    };
    let asked = activity::ask(engine, call, facts.id.as_str(), true).await?;
    Ok(match asked {
        Inquired::Answered(activity) => Journal {
            entries: activity.journal.unwrap_or_default(),
            lost: activity.journal_lost,
        },
        _ => Journal::default(),
    })
}

impl History {
    fn of(remembered: &[Remembered], found: Option<&ContainerFacts>, journal: Journal) -> Self {
        let mut events = of_engine(remembered);
        let forgot = forgot(remembered, found);
        if let Some((id, started)) = found.and_then(running) {
            // The engine takes its time of a start before the start, which
            // takes some tens of milliseconds, and tells of it after that.
            let told = events.iter().rev();
            let mut told = told.filter(|event| event.what == Happening::Started);
            let told = told
                .find(|event| event.instance == id)
                .map(|event| event.at);
            events.extend(journal.entries.into_iter().map(|entry| Event {
                at: (started + Duration::from_millis(entry.at_ms)).max(told.unwrap_or(started)),
                instance: id.clone(),
                what: entry.what.into(),
            }));
        }
        // What came first stays first where two have the same time.
        events.sort_by_key(|event| event.at);
        Self {
            death: death(&events, found),
            events,
            exists: found.is_some(),
            engine_forgot: forgot,
            guest_forgot: journal.lost,
        }
    }
}

/// The id of a container that runs, and when it was started.
fn running(facts: &ContainerFacts) -> Option<(InstanceId, SystemTime)> {
    let id = InstanceId::new(facts.id.as_str()).ok()?;
    let started = facts.state.started_at.filter(|_| facts.state.running)?;
    Some((id, started))
}

/// Whether the engine does not remember how everything here began.
fn forgot(remembered: &[Remembered], found: Option<&ContainerFacts>) -> bool {
    let is_made = |id: &str| {
        remembered
            .iter()
            .any(|event| event.id == id && event.action == "create")
    };
    let ids = remembered.iter().map(|event| event.id.as_str());
    let found = found.map(|facts| facts.id.as_str());
    let mut all = ids.chain(found).peekable();
    all.peek().is_none() || !all.all(is_made)
}

/// Why the last sandbox ended, unless it has not.
fn death(events: &[Event], found: Option<&ContainerFacts>) -> Option<Death> {
    let told = events.iter().rev().find_map(|event| match &event.what {
        Happening::Ended { death } => Some((event, *death)),
        _ => None,
    });
    let Some(facts) = found else {
        return told.map(|(_, death)| death);
    };
    if !matches!(facts.state.status.as_str(), "exited" | "dead") {
        return None;
    }
    let told = told.filter(|(event, _)| event.instance.as_str() == facts.id.as_str());
    Some(told.map_or_else(
        || death::of_state(facts.state.exit_code, facts.state.oom_killed),
        |(_, death)| death,
    ))
}

fn of_engine(remembered: &[Remembered]) -> Vec<Event> {
    let told = remembered.iter().filter_map(|event| {
        let what = match event.action.as_str() {
            "create" => Happening::Created,
            "start" => Happening::Started,
            "pause" => Happening::Paused,
            "unpause" => Happening::Thawed,
            "oom" => Happening::OutOfMemory,
            "destroy" => Happening::Removed,
            "kill" => Happening::Signalled {
                signal: event.signal()?,
            },
            "die" => {
                let own: Vec<_> = remembered.iter().filter(|one| one.id == event.id).collect();
                let at = own.iter().position(|one| std::ptr::eq(*one, event))?;
                Happening::Ended {
                    death: death::of_event(&own, at),
                }
            }
            // Channels, files and questions of ours, of which the sandbox's
            // own journal tells more.
            action if is_our_own(action) => return None,
            action => Happening::Other {
                what: action.chars().take(64).collect(),
            },
        };
        Some(Event {
            at: event.at,
            instance: InstanceId::new(event.id.as_str()).ok()?,
            what,
        })
    });
    told.collect()
}

fn is_our_own(action: &str) -> bool {
    action.starts_with("exec_")
        || matches!(
            action,
            "attach" | "detach" | "resize" | "archive-path" | "extract-to-dir"
        )
}

impl From<inquiry::Happening> for Happening {
    fn from(happening: inquiry::Happening) -> Self {
        use inquiry::Happening as Wire;
        match happening {
            Wire::Attached { channel } => Self::Attached { channel },
            Wire::Detached { channel, why } => Self::Detached {
                channel,
                why: match why {
                    Detachment::Closed => "closed",
                    Detachment::Silent => "silent",
                    Detachment::Protocol => "protocol",
                    _ => "other",
                },
            },
            Wire::Started {
                run,
                program,
                background,
            } => Self::CommandStarted {
                number: run,
                program,
                background,
            },
            Wire::Ended {
                run,
                program,
                status,
                wall_ms,
                cpu_ms,
                peak_memory,
                out_of_memory,
                left_running,
            } => Self::CommandEnded(CommandEnd {
                number: run,
                program,
                status: status.map(outcome),
                wall: Duration::from_millis(wall_ms),
                cpu: Duration::from_millis(cpu_ms),
                peak_memory,
                out_of_memory,
                left_running,
            }),
            Wire::KilledAll { generation, left } => Self::EverythingKilled {
                times: generation,
                left,
            },
            _ => Self::Other {
                what: "something that only a newer version can tell".to_owned(),
            },
        }
    }
}
