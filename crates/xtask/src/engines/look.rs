//! How an engine is looked at: with the command line program, and through the library by a host
//! process of its own.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::expected::{KNOWN, NOT_REACHED};
use super::{Seat, Seen};
use crate::engine::Engine;
use crate::environment;
use crate::process::{Program, tail};
use crate::workspace::build;

/// How long one look may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The programs that look.
#[derive(Debug)]
pub(super) struct Lookers {
    host: PathBuf,
    command_line: PathBuf,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Found {
    pub(super) check: String,
    pub(super) found: String,
    /// For people.
    pub(super) detail: String,
}

impl Lookers {
    /// Builds them.
    pub(super) fn build() -> Result<Self> {
        Ok(Self {
            host: build("stockade-tests", "stockade-test-host")?,
            command_line: build("stockade-cli", "stockade")?,
        })
    }

    /// Looks at everything that is known, and at whatever else the programs look at.
    pub(super) fn look(&self, seat: Seat, engine: &Engine, image: &str) -> Result<Seen> {
        let owner = format!("engines-{}-{}", seat.name(), std::process::id());
        let reaching = environment::reaching(engine)?;
        let host = Program::new(&self.host)
            .args(["look", &owner, image])
            .envs(reaching.clone())
            .env("RUST_BACKTRACE", "0") // the end of what it says is the reason
            .deadline(PATIENCE)
            .finish()?;
        if !host.status.success() {
            bail!("the host that looks ended early: {}", tail(&host.stderr));
        }
        let said = String::from_utf8(host.stdout).context("what the host says")?;
        let mut found = said
            .lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("`{line}`")))
            .collect::<Result<Vec<Found>>>()?;
        let doctor = Program::new(&self.command_line)
            .args(["doctor", "--json", "--owner", &owner, "--image", image])
            .envs(reaching)
            .deadline(PATIENCE)
            .finish()?;
        found.push(diagnosis(&doctor.stdout)?);
        Ok(Seen {
            seat,
            version: engine.version.clone(),
            found: in_order(found),
            unchecked: unchecked(seat, engine)?,
        })
    }
}

/// Every check that is known, in that order, and then the others.
fn in_order(mut found: Vec<Found>) -> Vec<Found> {
    let mut ordered = Vec::new();
    for known in &KNOWN {
        let at = found.iter().position(|found| found.check == known.check);
        ordered.push(match at {
            Some(at) => found.remove(at),
            None => Found {
                check: known.check.to_owned(),
                found: NOT_REACHED.to_owned(),
                detail: String::new(),
            },
        });
    }
    ordered.extend(found);
    ordered
}

/// The doctor's verdict: which of its checks failed, and which only warn.
fn diagnosis(report: &[u8]) -> Result<Found> {
    let report: Value = serde_json::from_slice(report).context("what the doctor says")?;
    let checks = report["checks"].as_array().context("the doctor's checks")?;
    let of = |verdict: &str| {
        let named = checks.iter().filter(|check| check["verdict"] == verdict);
        let names: Vec<_> = named.filter_map(|check| check["name"].as_str()).collect();
        names.join(", ")
    };
    let (failed, warned) = (of("failed"), of("warning"));
    let found = match (failed.as_str(), warned.as_str()) {
        ("", "") => "healthy".to_owned(),
        ("", warned) => format!("warned: {warned}"),
        (failed, _) => format!("failed: {failed}"),
    };
    let lines = checks.iter().filter(|check| check["verdict"] != "fine");
    let lines: Vec<_> = lines.map(|check| check["found"].to_string()).collect();
    Ok(Found {
        check: "doctor".to_owned(),
        found,
        detail: lines.join("\n"),
    })
}

/// What this machine does not allow to be checked on an engine, in the engine's own words.
fn unchecked(seat: Seat, engine: &Engine) -> Result<Option<String>> {
    if seat != Seat::RootlessBare {
        return Ok(None);
    }
    let asked = engine
        .docker()
        .args(["info", "--format", "{{json .Warnings}}"]);
    Ok(Some(format!(
        "every sandbox, since no limit holds there; `{asked}`: {}",
        asked.read()?.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: &str) -> Found {
        Found {
            check: check.to_owned(),
            found: "x".to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn what_was_not_looked_at_is_said_and_what_is_unknown_is_kept() {
        let ordered = in_order(vec![found("news"), found("acquire"), found("bind")]);
        assert_eq!(ordered.len(), KNOWN.len() + 1);
        assert_eq!(ordered[0], found("bind"));
        assert_eq!(ordered[1].found, NOT_REACHED);
        assert_eq!(ordered.last(), Some(&found("news")));
    }

    #[test]
    fn a_diagnosis_names_what_failed() {
        let report = r#"{"checks":[
            {"name":"engine","verdict":"fine","found":"28"},
            {"name":"seccomp","verdict":"warning","found":"none"},
            {"name":"memory limit","verdict":"failed","found":"none"}]}"#;
        let diagnosis = diagnosis(report.as_bytes()).expect("a report");
        assert_eq!(diagnosis.found, "failed: memory limit");
    }
}
