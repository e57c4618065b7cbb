//! What `--json` prints: one object, whose fields only ever grow.

use std::os::unix::ffi::OsStrExt as _;

use base64::Engine as _;
use serde_json::{Value, json};
use stockade::disposal::RemovalFailure;
use stockade::files::Arrived;
use stockade::{Call, Error, ExecOutcome, ExecRequest, ExecStatus, GuestPath, Reaped};
use stockade_docker::operate::{Pruned, PrunedItem};

use crate::transfer::{Brought, Wanted};
use crate::unmet::Unmet;

/// Rises when a field changes meaning or goes away.
const VERSION: u32 = 1;

/// The object for a command that was run.
pub(crate) fn outcome(outcome: &ExecOutcome, request: &Echo, call: &Call, sandbox: &str) -> Value {
    json!({
        "version": VERSION,
        "sandbox": sandbox,
        "status": status(&outcome.status),
        "out_of_memory": outcome.out_of_memory,
        "truncated": outcome.truncated,
        "stdout": text(&outcome.stdout),
        "stderr": text(&outcome.stderr),
        "seconds": {
            "queued": outcome.times.queued.as_secs_f64(),
            "wall": outcome.times.wall.as_secs_f64(),
            "cpu_user": outcome.times.cpu_user.as_secs_f64(),
            "cpu_system": outcome.times.cpu_system.as_secs_f64(),
        },
        "peak_memory": outcome.peak_memory,
        "left_running": outcome.left_running,
        "tree_ended": outcome.tree_ended,
        "timeout_seconds": request.timeout,
        "output_limit": request.output_limit,
        "phases": phases(call),
    })
}

/// The limits that were in force, for the report.
pub(crate) struct Echo {
    timeout: f64,
    output_limit: u64,
}

impl Echo {
    pub(crate) fn of(request: &ExecRequest) -> Self {
        Self {
            timeout: request.timeout().as_secs_f64(),
            output_limit: request.output_limit(),
        }
    }

    /// The program's own timeout.
    pub(crate) fn timeout_seconds(&self) -> f64 {
        self.timeout
    }
}

/// The object for an error.
pub(crate) fn error(error: &Error, call: Option<&Call>, advice: Option<String>) -> Value {
    json!({
        "version": VERSION,
        "error": {
            "kind": error.kind().as_str(),
            "refusal": error.refusal().map(|refusal| refusal.code()),
            "operation": error.operation().as_str(),
            "phase": error.phase().map(|phase| phase.as_str()),
            "retry": error.retry().as_str(),
            "message": error.to_string(),
            "advice": advice,
            "arrived": error.arrived().map(arrived),
            "detail": error.detail(),
            "left_behind": error.left_behind().iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
        "phases": call.map(phases),
    })
}

/// The object for what is wrong, each for a reason of its own.
pub(crate) fn faults(kind: &str, faults: &[String]) -> Value {
    json!({
        "version": VERSION,
        "error": { "kind": kind, "message": faults.join("; "), "faults": faults },
    })
}

/// An object of this version with these fields.
pub(crate) fn versioned(mut fields: Value) -> Value {
    fields["version"] = json!(VERSION);
    fields
}

/// Text as it is; anything else as `{"base64": …}`, so that nothing is lost.
pub(crate) fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": base64::engine::general_purpose::STANDARD.encode(bytes) }),
    }
}

/// What came out of a sandbox.
pub(crate) fn brought(brought: &Brought) -> Value {
    let file = |file: &Wanted| {
        json!({
            "path": text(file.guest.as_bytes()),
            "to": text(file.place.path().as_os_str().as_bytes()),
            "size": file.size,
        })
    };
    json!({
        "files": brought.files.iter().map(file).collect::<Vec<_>>(),
        "bytes": brought.bytes,
        "missing": brought.missing.iter().map(Unmet::object).collect::<Vec<_>>(),
        "in_the_way": brought.in_the_way.iter().map(Unmet::object).collect::<Vec<_>>(),
        "whole": brought.is_whole(),
    })
}

/// What reaping did.
pub(crate) fn reaped(reaped: &Reaped) -> Value {
    json!({
        "sandboxes": reaped.sandboxes,
        "others": reaped.others,
        "kept": reaped.kept,
        "failures": failures(&reaped.failures),
    })
}

/// What pruning did.
pub(crate) fn pruned(pruned: &Pruned) -> Value {
    json!({
        "dry_run": pruned.dry_run,
        "items": pruned.items.iter().map(pruned_item).collect::<Value>(),
        "bytes": pruned.bytes(),
        "failures": failures(&pruned.failures),
    })
}

/// One thing that was pruned.
pub(crate) fn pruned_item(item: &PrunedItem) -> Value {
    json!({ "what": item.what.as_str(), "name": item.name, "bytes": item.bytes })
}

/// What could not be removed.
pub(crate) fn failures(failures: &[RemovalFailure]) -> Value {
    let object = |failure: &RemovalFailure| {
        json!({
            "code": failure.code.as_str(),
            "what": failure.what,
            "detail": failure.detail,
        })
    };
    failures.iter().map(object).collect()
}

fn arrived(arrived: &Arrived) -> Value {
    let names = |paths: &[GuestPath]| {
        let names = paths.iter().map(|path| text(path.as_bytes()));
        names.collect::<Vec<_>>()
    };
    json!({
        "whole": names(&arrived.whole),
        "partial": names(&arrived.partial),
        "lost": names(&arrived.lost),
        "unknown": names(&arrived.unknown),
    })
}

/// How a program ended.
pub(crate) fn status(status: &ExecStatus) -> Value {
    match status {
        ExecStatus::Exited(code) => json!({ "kind": "exited", "code": code }),
        ExecStatus::Signaled(signal) => json!({ "kind": "signaled", "signal": signal }),
        ExecStatus::NotStarted(not_started) => json!({
            "kind": "not_started",
            "why": not_started.why.as_str(),
            "errno": not_started.errno,
        }),
        ExecStatus::TimedOut => json!({ "kind": "timed_out" }),
        ExecStatus::OutputLimit => json!({ "kind": "output_limit" }),
        ExecStatus::Cancelled => json!({ "kind": "cancelled" }),
        _ => json!({ "kind": "lost" }),
    }
}

fn phases(call: &Call) -> Value {
    let times = call.phases();
    times
        .iter()
        .map(|time| json!({ "phase": time.phase.as_str(), "seconds": time.took.as_secs_f64() }))
        .collect()
}
