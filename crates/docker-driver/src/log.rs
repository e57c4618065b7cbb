//! Every process that was started, counted exactly.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::process::Ended;
use crate::verb::Exit;

/// Most records that are kept; counts are kept for ever.
const RECORDS: usize = 1024;

/// Counts and records of the docker processes of one bound client.
#[derive(Debug, Default)]
pub struct InvocationLog(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    counts: Counts,
    records: VecDeque<Invocation>,
}

/// How many processes were started, by the verb's name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

/// One process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation {
    /// The verb's name.
    pub verb: &'static str,
    /// How long it waited for its place among the processes in flight.
    pub queued: Duration,
    /// How long it ran.
    pub ran: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// By itself, or by a signal that is not ours.
    Ended(Exit),
    /// It ran longer than its verb may, and was ended.
    TimedOut,
    /// Nobody wanted its answer any more, and it was ended.
    Stopped,
    /// It said more than its verb may, and was ended.
    OutputTooLarge,
    /// It asked a person for something, and was ended.
    Prompted,
}

impl InvocationLog {
    /// The counts so far. A process counts when it is started.
    pub fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }

    /// The last processes that have ended, oldest first, 1024 at most.
    pub fn recent(&self) -> Vec<Invocation> {
        self.lock().records.iter().cloned().collect()
    }

    pub(crate) fn started(&self, verb: &'static str) {
        *self.lock().counts.0.entry(verb).or_default() += 1;
    }

    pub(crate) fn ended(&self, invocation: Invocation) {
        let records = &mut self.lock().records;
        if records.len() == RECORDS {
            records.pop_front();
        }
        records.push_back(invocation);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outcome {
    pub(crate) fn of(exit: Exit, ended: Option<Ended>) -> Self {
        match ended {
            None => Self::Ended(exit),
            Some(Ended::TimedOut) => Self::TimedOut,
            Some(Ended::Stopped) => Self::Stopped,
            Some(Ended::OutputTooLarge) => Self::OutputTooLarge,
            Some(Ended::Prompted) => Self::Prompted,
        }
    }
}

impl Counts {
    /// The count of one verb.
    pub fn of(&self, verb: &str) -> u64 {
        self.0.get(verb).copied().unwrap_or(0)
    }

    /// All processes.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// What was started since an earlier snapshot of the same log.
    pub fn since(&self, earlier: &Self) -> Self {
        let newer = self
            .0
            .iter()
            .map(|(verb, count)| (*verb, count.saturating_sub(earlier.of(verb))));
        Self(newer.filter(|(_, count)| *count > 0).collect())
    }

    /// Each verb that was called, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(verb, count)| (*verb, *count))
    }
}
