//! The test command: everything that must hold before a change lands.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::cache::Cache;
use crate::engine::{self, Engine};
use crate::process::{Program, on_path};
use crate::progress::{Steps, say};
use crate::workspace::cargo;
use crate::{dataset, environment, images};

/// What to test.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Run these stages only
    #[arg(long = "stage", value_name = "NAME")]
    stages: Vec<Stage>,
    /// Run only the tests whose names hold one of these, and no other stage
    filters: Vec<String>,
}

/// A stage of the test command, in the order of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// Formatting
    Fmt,
    /// Lints, each an error
    Clippy,
    /// Documentation, each warning an error
    Doc,
    /// Examples in the documentation
    Doctest,
    /// All tests, on an engine
    Tests,
}

/// Runs all stages, whichever of them fail, and fails if any did.
pub(crate) fn run(args: &TestArgs) -> Result<()> {
    let mut steps = Steps::default();
    // Failures are printed where they happen; the sum is made at the end.
    let report = |result: Result<()>| {
        if let Err(failure) = result {
            say(format_args!("error: {failure:#}"));
        }
    };
    for stage in args.stages() {
        match stage {
            Stage::Tests => report(tests(&mut steps, &args.filters)),
            quick => report(steps.run(quick.name(), || pass(&quick.program()))),
        }
    }
    say(format_args!("\n{}", steps.table()));
    let failed = steps.failed();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

impl TestArgs {
    fn stages(&self) -> Vec<Stage> {
        match (self.stages.is_empty(), self.filters.is_empty()) {
            (false, _) => self.stages.clone(),
            (true, false) => vec![Stage::Tests],
            (true, true) => Stage::value_variants().to_vec(),
        }
    }
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Doc => "doc",
            Self::Doctest => "doctest",
            Self::Tests => "tests",
        }
    }

    fn program(self) -> Program {
        match self {
            Self::Fmt => cargo().args(["fmt", "--all", "--check"]),
            Self::Clippy => cargo()
                .args([
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--locked",
                    "--keep-going",
                ])
                .args(["--", "--deny", "warnings"]),
            Self::Doc => cargo()
                .args([
                    "doc",
                    "--workspace",
                    "--no-deps",
                    "--locked",
                    "--keep-going",
                ])
                .env("RUSTDOCFLAGS", "--deny warnings"),
            Self::Doctest => cargo().args(["test", "--doc", "--workspace", "--locked"]),
            Self::Tests => cargo().args([
                "nextest",
                "run",
                "--workspace",
                "--locked",
                "--no-fail-fast",
            ]),
        }
    }
}

/// Prepares an engine, images and data, and runs the tests on them.
fn tests(steps: &mut Steps, filters: &[String]) -> Result<()> {
    let cache = Cache::open()?;
    let engine = steps.run("engine", || engine::up(&cache))?;
    steps.run("images", || prepare(&cache, &engine))?;
    steps.run("nextest", install_nextest)?;
    say(format_args!("\n{}", steps.table()));
    let mut program = Stage::Tests.program().args(filters);
    for (name, value) in environment::variables(&cache, &engine)? {
        program = program.env(name, value);
    }
    steps.run(Stage::Tests.name(), || pass(&program))
}

/// Everything that tests, demo and benches find through their environment.
pub(crate) fn prepare(cache: &Cache, engine: &Engine) -> Result<()> {
    images::ensure(cache, engine)?;
    dataset::ensure(cache, engine).map(drop)
}

fn install_nextest() -> Result<()> {
    // As an installed extension of cargo it may also lie beside cargo, outside PATH.
    if on_path("cargo-nextest").is_some() || cargo().args(["nextest", "--version"]).read().is_ok() {
        return Ok(());
    }
    pass(&cargo().args(["install", "cargo-nextest", "--locked"]))
}

/// Runs with our own output, and fails when it does.
pub(crate) fn pass(program: &Program) -> Result<()> {
    if program.show()? {
        Ok(())
    } else {
        bail!("`{program}` failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(stages: &[Stage], filters: &[&str]) -> Vec<Stage> {
        let filters = filters.iter().map(|&filter| filter.to_owned()).collect();
        TestArgs {
            stages: stages.to_vec(),
            filters,
        }
        .stages()
    }

    #[test]
    fn a_filter_alone_runs_the_tests_and_nothing_else() {
        assert_eq!(stages(&[], &["exec"]), [Stage::Tests]);
        assert_eq!(stages(&[], &[]), Stage::value_variants());
        assert_eq!(stages(&[Stage::Fmt], &[]), [Stage::Fmt]);
    }
}
