//! Having a sandbox end unless somebody uses it: one question, which its own
//! PID 1 answers by doing (docs/lifecycle.md).

use std::time::Duration;

use stockade::{Call, ErrorKind, Operation, Result};
use stockade_wire::inquiry::Retired;

use crate::engine::{Engine, Inquired};
use crate::hold::{self, Running};

/// How long PID 1 may take to answer, once nobody holds the sandbox: a `docker
/// exec` takes 60 ms, on a loaded engine some seconds.
const ANSWER: Duration = Duration::from_secs(15);

/// What became of it.
#[derive(Debug)]
pub(crate) enum Retirement {
    /// It ends, and nobody can enter it any more; or it has ended before.
    Ended,
    /// Somebody uses it, or did so too recently. It goes on as before.
    Busy,
    /// It cannot be told.
    Silent(String),
}

/// Asks a sandbox to end, if it was not used for so long.
///
/// Cancel safe, but for a sandbox that has agreed already.
pub(crate) async fn retire(
    engine: &Engine,
    call: &Call,
    operation: Operation,
    id: &str,
    idle_for: Duration,
) -> Result<Retirement> {
    // A hold is a use as well, and who is held does not answer.
    let asking = call.child(hold::LONGEST + ANSWER);
    match ask(engine, &asking, operation, id, idle_for).await {
        Err(error) if error.kind() == ErrorKind::TimedOut && call.interruption().is_none() => {
            Ok(Retirement::Silent("it does not answer".to_owned()))
        }
        asked => asked,
    }
}

async fn ask(
    engine: &Engine,
    call: &Call,
    operation: Operation,
    id: &str,
    idle_for: Duration,
) -> Result<Retirement> {
    let words = [
        "retire".to_owned(),
        format!(
            "--idle-for-ms={}",
            u64::try_from(idle_for.as_millis()).unwrap_or(u64::MAX)
        ),
    ];
    let mut running = Running::claim(engine, call, operation, id).await?;
    loop {
        let asking = call.child(ANSWER);
        match engine.inquire(&asking, operation, id, &words).await? {
            Inquired::Answered(Retired { retired: true, .. }) | Inquired::Gone => {
                return Ok(Retirement::Ended);
            }
            Inquired::Answered(_) => return Ok(Retirement::Busy),
            // What ended while it was asked had no time to answer.
            Inquired::Silent(why) => {
                return Ok(match engine.is_running(call, id).await? {
                    true => Retirement::Silent(why),
                    false => Retirement::Ended,
                });
            }
            Inquired::Paused => {
                running.settle(engine, call, operation, id).await?;
            }
        }
    }
}
