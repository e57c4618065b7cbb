//! What hosts say: one line of JSON for each thing that happens to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// What was read from some hosts.
#[derive(Debug, Default)]
pub(super) struct Events {
    counts: BTreeMap<String, u64>,
    /// What the design does not name: how often, and the first time in full.
    unnamed: BTreeMap<String, (u64, String)>,
    /// Numbers of the lives that are over.
    pub(super) lives: BTreeSet<u64>,
    /// What hosts held of the machine's, in the order of telling.
    pub(super) holds: Vec<Holds>,
}

/// What a host held at one time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Holds {
    pub(super) descriptors: u64,
    pub(super) resident_kib: u64,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Event {
        event: String,
        named: bool,
        detail: String,
    },
    Life {
        life: u64,
    },
    Holds(Holds),
}

impl Events {
    /// Adds what a host has said so far. Of a host that was killed the last line may be a part.
    pub(super) fn read(&mut self, path: &Path) -> Result<()> {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let line = serde_json::from_str(line).with_context(|| format!("`{line}`"))?;
            self.add(line);
        }
        Ok(())
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Event {
                event,
                named,
                detail,
            } => {
                *self.counts.entry(event.clone()).or_default() += 1;
                if !named {
                    self.unnamed.entry(event).or_insert((0, detail)).0 += 1;
                }
            }
            Line::Life { life } => {
                self.lives.insert(life);
            }
            Line::Holds(holds) => self.holds.push(holds),
        }
    }

    /// How often each thing happened.
    pub(super) fn table(&self) -> String {
        let mut table = String::new();
        for (event, count) in &self.counts {
            let mark = if self.unnamed.contains_key(event) {
                "  NOT NAMED"
            } else {
                ""
            };
            let _infallible = writeln!(table, "  {count:>7}  {event}{mark}");
        }
        table
    }

    /// What happened that the design does not name, each with its first words.
    pub(super) fn unnamed(&self) -> Vec<String> {
        let line = |(event, (count, detail)): (&String, &(u64, String))| {
            format!("{count} x {event}: {detail}")
        };
        self.unnamed.iter().map(line).collect()
    }

    /// How many things happened.
    pub(super) fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_line_that_a_killed_host_wrote_is_left_out() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let said = "{\"event\":\"exec: ok\",\"named\":true,\"detail\":\"\"}\n\
                    {\"event\":\"exec: internal\",\"named\":false,\"detail\":\"why\"}\n\
                    {\"life\":7}\n\
                    {\"holds\":\"end\",\"descriptors\":9,\"resident_kib\":10}\n\
                    {\"event\":\"exec: o";
        fs::write(file.path(), said).expect("it is written");
        let mut events = Events::default();
        events.read(file.path()).expect("it is read");
        assert_eq!(events.total(), 2);
        assert_eq!(events.unnamed(), ["1 x exec: internal: why"]);
        assert!(events.lives.contains(&7));
        assert_eq!(events.holds[0].descriptors, 9);
        assert!(events.table().contains("exec: internal  NOT NAMED"));
    }
}
