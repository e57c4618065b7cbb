//! What must hold at the end of a trial, and whether it does.

use std::fmt::{Display, Write as _};

use anyhow::{Result, bail};

use crate::progress::answer;

/// What was looked at, and what was found.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    rows: Vec<(String, String)>,
    broken: Vec<String>,
}

impl Verdict {
    /// A figure that only informs.
    pub(super) fn tell(&mut self, what: &str, found: impl Display) {
        self.rows.push((what.to_owned(), found.to_string()));
    }

    /// A figure that must be as it should.
    pub(super) fn require(&mut self, what: &str, found: impl Display, holds: bool) {
        let mark = if holds { "" } else { "  BROKEN" };
        self.rows.push((what.to_owned(), format!("{found}{mark}")));
        if !holds {
            self.broken.push(format!("{what}: {found}"));
        }
    }

    /// Things that there must be none of.
    pub(super) fn none(&mut self, what: &str, found: &[String]) {
        self.require(what, found.len(), found.is_empty());
        self.broken
            .extend(found.iter().map(|found| format!("  {found}")));
    }

    /// Prints the table, and fails unless everything holds.
    pub(super) fn conclude(self) -> Result<()> {
        let width = self.rows.iter().map(|(what, _)| what.len()).max();
        let width = width.unwrap_or(0);
        let mut table = String::new();
        for (what, found) in &self.rows {
            let _infallible = writeln!(table, "  {what:width$}  {found}");
        }
        answer(table);
        if !self.broken.is_empty() {
            bail!("what must hold does not:\n{}", self.broken.join("\n"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_fails_by_its_name() {
        let mut verdict = Verdict::default();
        verdict.tell("lives", 7);
        verdict.require("growth", 3, true);
        verdict.none("containers", &["a".to_owned()]);
        let why = verdict.conclude().expect_err("one is left").to_string();
        assert!(why.contains("containers: 1\n  a"), "{why}");
    }
}
