//! `stockade doctor`: every requirement, and how to mend what is missing.

use std::io::Write as _;

use serde_json::json;
use stockade::Call;
use stockade_docker::doctor::{Check, Verdict, examine};

use crate::{args, exit, interrupt, progress, say};

/// Prints every check; the answer is our own exit code.
pub(crate) async fn doctor(args: &args::Doctor) -> u8 {
    let call = Call::with_timeout(args.deadline);
    // The first Ctrl-C cancels what is under way, and the sandbox is removed.
    if let Err(error) = interrupt::watch(&call, "removing what was made") {
        say::line(&format!("signals cannot be watched: {error}"));
        return exit::FAILED;
    }
    let config = progress::config(&args.engine, args.json);
    let checks = examine(&call, config, args.image.as_deref()).await;
    let failed = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Failed)
        .count();
    if args.json {
        let checks: Vec<_> = checks.iter().map(object).collect();
        let report = json!({ "version": 1, "healthy": failed == 0, "checks": checks });
        if say::object(&report).is_err() {
            return exit::FAILED;
        }
    } else {
        print(&checks, failed);
    }
    if failed == 0 { 0 } else { exit::FAILED }
}

fn object(check: &Check) -> serde_json::Value {
    json!({
        "name": check.name,
        "verdict": check.verdict.as_str(),
        "found": check.found,
        "fix": check.fix,
    })
}

fn print(checks: &[Check], failed: usize) {
    let mut out = std::io::stdout().lock();
    for check in checks {
        let verdict = check.verdict.as_str();
        // Nobody is left to tell when standard output is closed.
        let _ = writeln!(out, "{verdict:>8}  {}: {}", check.name, check.found);
        if let Some(fix) = &check.fix {
            let _ = writeln!(out, "{:>8}  -> {fix}", "");
        }
    }
    let _ = match failed {
        0 if checks.iter().any(|check| check.verdict == Verdict::Skipped) => {
            writeln!(out, "\nNothing that was checked is missing.")
        }
        0 => writeln!(out, "\nEverything that a sandbox needs is there."),
        1 => writeln!(out, "\nOne requirement is missing."),
        _ => writeln!(out, "\n{failed} requirements are missing."),
    };
}
