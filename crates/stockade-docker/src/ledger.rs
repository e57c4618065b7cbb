//! What this process must not forget while the engine cannot be asked: what it
//! could not remove, and which kinds of sandbox it has dealt with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stockade::Kind;

use crate::names::Role;

/// Most containers that are remembered. A host that leaves more behind has an
/// engine that removes nothing, and finds them by their labels later.
const ENTRIES: usize = 4096;

/// Most kinds that are remembered; a host has a handful.
const KINDS: usize = 64;

/// Whose a container is, as the labels say by which it is found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Labels {
    pub(crate) key: String,
    pub(crate) agent: String,
    pub(crate) conversation: String,
    pub(crate) kind: String,
}

/// A container that is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) id: String,
    pub(crate) role: Role,
    pub(crate) labels: Labels,
}

/// Containers whose removal failed, until it is seen that they are gone.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    failed: Mutex<BTreeMap<String, Target>>,
}

/// Kinds of which this process has acquired sandboxes.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    seen: Mutex<BTreeSet<Kind>>,
}

impl Ledger {
    pub(crate) fn note(&self, target: &Target) {
        let mut failed = self.lock();
        if failed.len() < ENTRIES {
            failed.insert(target.id.clone(), target.clone());
        }
    }

    pub(crate) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    /// What is still to be removed, of those that are picked.
    pub(crate) fn owed(&self, picks: impl Fn(&Labels) -> bool) -> Vec<Target> {
        let failed = self.lock();
        let owed = failed.values().filter(|target| picks(&target.labels));
        owed.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Target>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kinds {
    pub(crate) fn note(&self, kind: &Kind) {
        let mut seen = self.lock();
        if seen.len() < KINDS && !seen.contains(kind) {
            seen.insert(kind.clone());
        }
    }

    pub(crate) fn seen(&self) -> Vec<Kind> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Kind>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(id: usize, key: &str) -> Target {
        Target {
            id: id.to_string(),
            role: Role::Guest,
            labels: Labels {
                key: key.to_owned(),
                ..Labels::default()
            },
        }
    }

    #[test]
    fn what_failed_is_owed_until_it_is_forgotten() {
        let ledger = Ledger::default();
        ledger.note(&target(1, "a"));
        ledger.note(&target(1, "a"));
        ledger.note(&target(2, "b"));
        assert_eq!(ledger.owed(|labels| labels.key == "a"), [target(1, "a")]);
        ledger.forget("1");
        assert_eq!(ledger.owed(|_| true), [target(2, "b")]);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let ledger = Ledger::default();
        for id in 0..ENTRIES + 1 {
            ledger.note(&target(id, "a"));
        }
        assert_eq!(ledger.owed(|_| true).len(), ENTRIES);
    }
}
