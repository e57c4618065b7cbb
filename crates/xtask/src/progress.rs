//! What a person sees while xtask works: what it does now, and how long each step took.
//!
//! Progress goes to standard error, so that standard output holds answers only.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Measures wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "xtask has no async clock that tests could pause"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The steps of one run, in order, each with the time it took and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    took: Duration,
    failed: bool,
}

impl Steps {
    /// Runs one step and hands on its failure.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        say(format_args!("== {name}"));
        let running = Stopwatch::start();
        let result = step();
        let took = running.elapsed();
        let failed = result.is_err();
        say(format_args!(
            "== {name}: {} after {}",
            if failed { "failed" } else { "done" },
            seconds(took)
        ));
        self.done.push(Step { name, took, failed });
        result
    }

    /// Names of the steps that failed.
    pub(crate) fn failed(&self) -> Vec<&'static str> {
        self.done
            .iter()
            .filter(|step| step.failed)
            .map(|step| step.name)
            .collect()
    }

    /// One line per step, and their sum.
    pub(crate) fn table(&self) -> String {
        let row = |name: &str, took, note| format!("  {name:<12}{:>10}{note}\n", seconds(took));
        let mut table: String = self
            .done
            .iter()
            .map(|step| {
                row(
                    step.name,
                    step.took,
                    if step.failed { "  failed" } else { "" },
                )
            })
            .collect();
        table.push_str(&row(
            "total",
            self.done.iter().map(|step| step.took).sum(),
            "",
        ));
        table
    }
}

/// Says one line to the person who waits.
#[expect(
    clippy::print_stderr,
    reason = "progress is what a developer's tool prints"
)]
pub(crate) fn say(line: impl Display) {
    eprintln!("{line}");
}

/// Prints an answer, for people or for programs, on standard output.
#[expect(
    clippy::print_stdout,
    reason = "the answer of a command goes to standard output"
)]
pub(crate) fn answer(text: impl Display) {
    println!("{text}");
}

/// A duration as people read it.
pub(crate) fn seconds(took: Duration) -> String {
    format!("{:.2} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn every_failing_step_is_remembered_and_later_ones_still_run() {
        let mut steps = Steps::default();
        assert!(
            steps
                .run("first", || -> Result<()> { bail!("broken") })
                .is_err()
        );
        assert_eq!(steps.run("second", || Ok(7)).expect("a step that works"), 7);
        assert!(
            steps
                .run("third", || -> Result<()> { bail!("broken too") })
                .is_err()
        );
        assert_eq!(steps.failed(), ["first", "third"]);
        assert_eq!(steps.table().matches("failed").count(), 2);
        assert!(steps.table().contains("total"));
    }
}
