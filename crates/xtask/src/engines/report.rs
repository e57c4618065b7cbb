//! What was found on the engines, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::expected::KNOWN;
use super::look::Found;
use super::{Outcome, Seat, Seen};

/// A check that did not find what is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    pub(super) seat: Seat,
    pub(super) check: String,
    pub(super) expected: String,
    pub(super) found: String,
    pub(super) detail: String,
}

/// Everything that is not as it is known to be.
pub(super) fn deviations(outcomes: &[Outcome]) -> Vec<Deviation> {
    outcomes.iter().flat_map(of_one).collect()
}

fn of_one(outcome: &Outcome) -> Vec<Deviation> {
    match outcome {
        Outcome::Seen(seen) => seen
            .found
            .iter()
            .filter_map(|found| deviation(seen.seat, found))
            .collect(),
        Outcome::Broken { seat, why } => vec![Deviation {
            seat: *seat,
            check: "engine".to_owned(),
            expected: "up".to_owned(),
            found: "not up".to_owned(),
            detail: why.clone(),
        }],
        Outcome::Missing { .. } => Vec::new(),
    }
}

fn deviation(seat: Seat, found: &Found) -> Option<Deviation> {
    let expected = expected(seat, &found.check);
    (expected != Some(&found.found)).then(|| Deviation {
        seat,
        check: found.check.clone(),
        expected: expected.unwrap_or("no such check").to_owned(),
        found: found.found.clone(),
        detail: found.detail.clone(),
    })
}

fn expected(seat: Seat, check: &str) -> Option<&'static str> {
    let known = KNOWN.iter().find(|known| known.check == check)?;
    Some(known.at(seat))
}

/// One row per check and one column per engine; what is not as it is known is marked.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let seen: Vec<&Seen> = outcomes.iter().filter_map(Outcome::seen).collect();
    let mut rows = vec![row(
        "check",
        seen.iter().map(|seen| seen.seat.name().to_owned()),
    )];
    rows.push(row("engine", seen.iter().map(|seen| seen.version.clone())));
    let mut checks: Vec<&str> = Vec::new();
    for found in seen.iter().flat_map(|seen| &seen.found) {
        if !checks.contains(&found.check.as_str()) {
            checks.push(&found.check);
        }
    }
    for check in checks {
        let cell = |seen: &&Seen| {
            let found = seen.found.iter().find(|found| found.check == check);
            match found.map(|found| (found, deviation(seen.seat, found))) {
                None => String::new(),
                Some((found, None)) => short(&found.found),
                Some((found, Some(_))) => format!("!! {}", short(&found.found)),
            }
        };
        rows.push(row(check, seen.iter().map(cell)));
    }
    aligned(&rows)
}

/// What the table leaves out: deviations in full, and what could not be looked at.
pub(super) fn remarks(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for deviation in deviations(outcomes) {
        let Deviation {
            seat,
            check,
            expected,
            found,
            detail,
        } = deviation;
        let name = seat.name();
        let _infallible = writeln!(
            text,
            "DEVIATES  {name}, {check}: expected `{expected}`, found `{found}`"
        );
        for line in detail.lines().filter(|line| !line.is_empty()) {
            let _infallible = writeln!(text, "          {line}");
        }
    }
    for (seat, why) in outcomes.iter().filter_map(Outcome::unchecked) {
        let _infallible = writeln!(text, "NOT CHECKED on {}: {why}", seat.name());
    }
    text
}

/// The same for programs.
pub(super) fn object(outcomes: &[Outcome]) -> Value {
    let engine = |outcome: &Outcome| {
        let found = outcome.seen().map_or(&[][..], |seen| &seen.found);
        let checks: Vec<_> = found
            .iter()
            .map(|found| {
                json!({
                    "check": found.check,
                    "expected": expected(outcome.seat(), &found.check),
                    "found": found.found,
                    "as_known": deviation(outcome.seat(), found).is_none(),
                    "detail": found.detail,
                })
            })
            .collect();
        let broken = match outcome {
            Outcome::Broken { why, .. } => Some(why),
            _ => None,
        };
        json!({
            "name": outcome.seat().name(),
            "engine": outcome.seen().map(|seen| &seen.version),
            "checks": checks,
            "broken": broken,
            "not_checked": outcome.unchecked().map(|(_, why)| why),
        })
    };
    let engines: Vec<_> = outcomes.iter().map(engine).collect();
    json!({
        "version": 1,
        "deviations": deviations(outcomes).len(),
        "engines": engines,
    })
}

fn row(first: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(cells).collect()
}

/// Long findings are told in full below the table.
fn short(found: &str) -> String {
    const LONGEST: usize = 30;
    if found.chars().count() <= LONGEST {
        return found.to_owned();
    }
    let kept: String = found.chars().take(LONGEST - 1).collect();
    format!("{kept}…")
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(check: &str, found: &str) -> Outcome {
        Outcome::Seen(Seen {
            seat: Seat::Userns,
            version: "28".to_owned(),
            found: vec![Found {
                check: check.to_owned(),
                found: found.to_owned(),
                detail: "why".to_owned(),
            }],
            unchecked: None,
        })
    }

    #[test]
    fn a_known_difference_is_none_and_its_absence_is_one() {
        let known = seen("files, tar", "refused: file_plane");
        assert_eq!(deviations(&[known]), []);
        let gone = [seen("files, tar", "both ways")];
        assert_eq!(deviations(&gone)[0].expected, "refused: file_plane");
        assert!(table(&gone).contains("!! both ways"));
        assert!(remarks(&gone).contains("userns, files, tar"));
        assert_eq!(object(&gone)["deviations"], 1);
    }

    #[test]
    fn a_check_that_nobody_knows_is_a_deviation() {
        let news = deviations(&[seen("news", "x")]);
        assert_eq!(news[0].expected, "no such check");
    }

    #[test]
    fn what_is_missing_is_no_deviation_and_is_said() {
        let missing = [Outcome::Missing {
            seat: Seat::Rootless,
            why: "no ids".to_owned(),
        }];
        assert_eq!(deviations(&missing), []);
        assert!(remarks(&missing).contains("NOT CHECKED on rootless: no ids"));
    }
}
