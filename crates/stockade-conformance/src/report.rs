//! What a run found.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::suite::Suite;

/// What a run found, suite by suite.
///
/// `Display` is a table for people, with each failure under it together with
/// the reason why its probe exists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The name of the backend.
    pub backend: String,
    /// The suites, in the order in which they were asked for.
    pub suites: Vec<SuiteReport>,
    /// What the run made and could not dispose of; each fails the run.
    pub left_behind: Vec<String>,
}

/// What one suite found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuiteReport {
    /// Which.
    pub suite: Suite,
    /// Why it did not run at all; nothing when it ran.
    pub refused: Option<String>,
    /// Its probes, in the order in which they ran.
    pub probes: Vec<ProbeReport>,
}

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Its name, unique in its suite.
    pub name: &'static str,
    /// What would be wrong with a backend that fails it.
    pub why: &'static str,
    /// What it found.
    pub outcome: Outcome,
    /// How long it took.
    pub elapsed: Duration,
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "who reads a report must tell these three apart"
)]
pub enum Outcome {
    /// What it demands holds.
    Passed,
    /// It does not hold, or could not be found out.
    Failed(String),
    /// It was not run, for this reason. Says nothing of the backend.
    Skipped(String),
}

impl Report {
    /// Whether suites ran, none was refused, none is without a probe that
    /// passed, no probe failed, and nothing was left behind.
    ///
    /// Skipped probes do not hinder it; see [`Report::is_complete`].
    #[must_use]
    pub fn is_green(&self) -> bool {
        !self.suites.is_empty()
            && self.left_behind.is_empty()
            && self.suites.iter().all(SuiteReport::is_green)
    }

    /// Whether it is green and no probe was skipped.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_green() && self.skipped().next().is_none()
    }

    /// The probes that failed, with their suites.
    pub fn failed(&self) -> impl Iterator<Item = (Suite, &ProbeReport)> {
        self.probes()
            .filter(|(_, probe)| matches!(probe.outcome, Outcome::Failed(_)))
    }

    /// The probes that were skipped, with their suites.
    pub fn skipped(&self) -> impl Iterator<Item = (Suite, &ProbeReport)> {
        self.probes()
            .filter(|(_, probe)| matches!(probe.outcome, Outcome::Skipped(_)))
    }

    /// Every probe, with its suite.
    pub fn probes(&self) -> impl Iterator<Item = (Suite, &ProbeReport)> {
        self.suites.iter().flat_map(|suite| {
            let probes = suite.probes.iter();
            probes.map(|probe| (suite.suite, probe))
        })
    }

    /// The report as JSON: `backend`, `green`, `complete`, `left_behind`, and
    /// `suites` with their `probes`; times in milliseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let suites: Vec<Value> = self.suites.iter().map(SuiteReport::to_value).collect();
        let report = json!({
            "backend": self.backend,
            "green": self.is_green(),
            "complete": self.is_complete(),
            "left_behind": self.left_behind,
            "suites": suites,
        });
        format!("{report:#}")
    }

    /// For tests.
    ///
    /// # Panics
    ///
    /// When it is not green, with the report.
    #[track_caller]
    pub fn assert_green(&self) {
        assert!(self.is_green(), "not green:\n{self}");
    }
}

impl SuiteReport {
    /// Whether it ran, something passed and nothing failed.
    #[must_use]
    pub fn is_green(&self) -> bool {
        let is = |wanted: fn(&Outcome) -> bool| self.probes.iter().any(|p| wanted(&p.outcome));
        self.refused.is_none()
            && is(|outcome| *outcome == Outcome::Passed)
            && !is(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    fn to_value(&self) -> Value {
        let probes = self.probes.iter().map(|probe| {
            json!({
                "name": probe.name,
                "why": probe.why,
                "outcome": probe.outcome.word(),
                "detail": probe.outcome.detail(),
                "elapsed_ms": u64::try_from(probe.elapsed.as_millis()).unwrap_or(u64::MAX),
            })
        });
        json!({
            "suite": self.suite.as_str(),
            "green": self.is_green(),
            "refused": self.refused,
            "probes": probes.collect::<Vec<_>>(),
        })
    }
}

impl Outcome {
    /// `passed`, `failed` or `skipped`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// What is wrong, or why it was skipped.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(detail) | Self::Skipped(detail) => Some(detail),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conformance of {}", self.backend)?;
        let count = |suite: &SuiteReport, word: &str| {
            let probes = suite.probes.iter();
            probes.filter(|probe| probe.outcome.word() == word).count()
        };
        writeln!(
            f,
            "{:<20} {:>7} {:>7} {:>8} {:>9}",
            "suite", "passed", "failed", "skipped", "seconds"
        )?;
        for suite in &self.suites {
            let took: Duration = suite.probes.iter().map(|probe| probe.elapsed).sum();
            writeln!(
                f,
                "{:<20} {:>7} {:>7} {:>8} {:>9.2}",
                suite.suite,
                count(suite, "passed"),
                count(suite, "failed"),
                count(suite, "skipped"),
                took.as_secs_f64()
            )?;
        }
        if self.suites.is_empty() {
            writeln!(f, "no suite was run, which proves nothing")?;
        }
        for suite in &self.suites {
            if let Some(why) = &suite.refused {
                writeln!(f, "\nREFUSED {}: {why}", suite.suite)?;
            }
        }
        for (suite, probe) in self.failed().chain(self.skipped()) {
            let word = probe.outcome.word().to_uppercase();
            let detail = probe.outcome.detail().unwrap_or_default();
            writeln!(f, "\n{word} {suite}/{}: {detail}", probe.name)?;
            writeln!(f, "  why it exists: {}", probe.why)?;
        }
        for left in &self.left_behind {
            writeln!(f, "\nLEFT BEHIND {left}")?;
        }
        Ok(())
    }
}
