//! What happened lately, for whoever asks why a sandbox is as it is.

use std::collections::VecDeque;
use std::time::Instant;

use stockade_wire::inquiry::{Entry, Happening, JOURNAL};

use super::millis;

/// The last [`JOURNAL`] happenings; about 50 KiB when it is full.
#[derive(Debug)]
pub(super) struct Journal {
    started: Instant,
    entries: VecDeque<Entry>,
    lost: u64,
}

impl Journal {
    /// Ages are counted from `started`.
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            entries: VecDeque::new(),
            lost: 0,
        }
    }

    pub(super) fn note(&mut self, what: Happening, now: Instant) {
        if self.entries.len() >= JOURNAL {
            self.entries.pop_front();
            self.lost += 1;
        }
        let at_ms = millis(now.duration_since(self.started));
        self.entries.push_back(Entry { at_ms, what });
    }

    /// What is remembered, oldest first.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.iter().cloned().collect()
    }

    /// How many happenings are not remembered any more.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::now;

    #[test]
    fn the_last_ones_are_kept_and_the_lost_ones_counted() {
        let start = now();
        let mut journal = Journal::new(start);
        let count = JOURNAL as u64 + 10;
        for channel in 0..count {
            let at = start + Duration::from_millis(channel);
            journal.note(Happening::Attached { channel }, at);
        }
        let entries = journal.entries();
        assert_eq!((entries.len(), journal.lost()), (JOURNAL, 10));
        for (entry, channel) in entries.iter().zip(10..) {
            assert_eq!(entry.at_ms, channel);
            assert_eq!(entry.what, Happening::Attached { channel });
        }
    }
}
