//! What happens to a host, told at once as one line of JSON each, so that
//! whoever reads it knows all of it also after the host was killed.
//!
//! | field | meaning |
//! |---|---|
//! | `event` | the operation, and how it ended: a refusal's code, an error's kind, a status |
//! | `named` | whether the design names that end for that operation |
//! | `detail` | the error in full, unless the end is an ordinary one |

use std::time::Duration;

use serde_json::json;
use stockade::{Call, Error, ErrorKind, ExecStatus, Operation, Reaped, Refusal, Removed};

use crate::look::word;

/// How long an operation may go on beyond its own deadline before it counts as locked up.
const GRACE: Duration = Duration::from_secs(10);

/// How long each operation is given.
const DEADLINE: Duration = Duration::from_secs(60);

/// What is done to the host's sandboxes while it works, which decides what its errors may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Others acquire, replace and remove the same sandbox.
    Rivals,
    /// Relays, guests and the daemon are killed.
    Kills,
}

impl Trouble {
    /// Runs an operation within its deadline, and tells how it ended. Gives
    /// what it gave, or the error's kind; `None` when there is none, since it
    /// did not end.
    pub(crate) async fn run<T>(
        self,
        operation: &str,
        work: impl AsyncFnOnce(&Call) -> Result<T, Error>,
    ) -> Result<T, Option<ErrorKind>> {
        let call = Call::with_timeout(DEADLINE);
        match tokio::time::timeout(DEADLINE + GRACE, work(&call)).await {
            Ok(Ok(value)) => {
                tell(&format!("{operation}: ok"), true, "");
                Ok(value)
            }
            Ok(Err(error)) => {
                let event = match error.refusal() {
                    Some(_) => format!("{operation}: {}", word(&error)),
                    None => format!("{operation}: {}", error.kind()),
                };
                let detail = format!("{error}\n{}", error.detail());
                tell(&event, self.names(&error), detail.trim_end());
                Err(Some(error.kind()))
            }
            Err(_) => {
                let detail = format!("still at it {GRACE:?} after its deadline");
                tell(&format!("{operation}: locked up"), false, &detail);
                Err(None)
            }
        }
    }

    /// Tells how a command ended, which had to end as expected or be cut short.
    pub(crate) fn status(self, operation: &str, status: &ExecStatus, expected: &ExecStatus) {
        let event = format!("{operation}: {status}");
        // What ends a sandbox ends its commands, and what the sandbox's end
        // leaves of them is told as one of the first two. The last is a
        // machine so loaded that the command took longer than it was given.
        let cut_short = matches!(
            status,
            ExecStatus::SupervisorLost | ExecStatus::Signaled(9) | ExecStatus::TimedOut
        );
        tell(&event, status == expected || cut_short, "");
    }

    /// Tells what a removal could not do.
    pub(crate) fn removed(self, operation: &str, removed: &Removed) {
        self.failures(operation, &removed.failures);
    }

    /// Tells what a reap could not do.
    pub(crate) fn reaped(self, operation: &str, reaped: &Reaped) {
        self.failures(operation, &reaped.failures);
    }

    fn failures(self, operation: &str, failures: &[stockade::disposal::RemovalFailure]) {
        for failure in failures {
            let event = format!("{operation}: left, {}", failure.code);
            // The daemon may be away; nobody may refuse.
            let named = self == Self::Kills;
            tell(&event, named, &failure.to_string());
        }
    }

    /// Whether the design names this error for what is done to the host.
    fn names(self, error: &Error) -> bool {
        let of_rivals = match (error.operation(), error.kind()) {
            (Operation::Acquire, ErrorKind::Refused) => {
                matches!(error.refusal(), Some(Refusal::Drifted { .. }))
            }
            (_, ErrorKind::Conflict | ErrorKind::Lost) => true,
            _ => false,
        };
        match self {
            Self::Rivals => of_rivals,
            // Nobody else uses these keys, so nothing drifts.
            Self::Kills => matches!(
                error.kind(),
                ErrorKind::Conflict | ErrorKind::Lost | ErrorKind::Unavailable
            ),
        }
    }
}

/// Tells one event.
pub(crate) fn tell(event: &str, named: bool, detail: &str) {
    println!(
        "{}",
        json!({ "event": event, "named": named, "detail": detail })
    );
}
