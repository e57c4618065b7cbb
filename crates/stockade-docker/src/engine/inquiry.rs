//! What PID 1 of a sandbox is asked from outside, by a short program of its
//! own runtime: `guest status` and `guest retire`.

use docker_driver::{CallErrorKind, ContainerId, ExecStream};
use serde::de::DeserializeOwned;
use stockade::{Call, Error, Operation, Phase, Result};
use stockade_wire::inquiry::ANSWER;
use tokio::io::AsyncReadExt as _;

use super::{Asked, Engine, unfit};
use crate::plan::GUEST;

/// One byte more than the longest answer, so that a longer one is cut and not
/// understood.
const LONGEST: u64 = ANSWER as u64 + 1;

/// What came of a question.
#[derive(Debug)]
pub(crate) enum Inquired<T> {
    Answered(T),
    /// Nobody runs code in a paused container.
    Paused,
    /// It has ended.
    Gone,
    /// It runs, and its runtime said nothing that we understand: it is of
    /// another version, or the guest keeps it from answering.
    Silent(String),
}

impl Engine {
    /// Runs a subcommand of the guest runtime beside PID 1, which answers with
    /// one JSON object. The call bounds it: a guest may keep it waiting.
    ///
    /// Cancel safe.
    pub(crate) async fn inquire<T: DeserializeOwned>(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
        words: &[String],
    ) -> Result<Inquired<T>> {
        let container = ContainerId::new(id).map_err(unfit)?;
        let verb = ExecStream::new(container, GUEST, words.iter().cloned());
        let bounds = self.bounds(call);
        let opened = call
            .bound(self.inner.docker.open_stream(&bounds, verb))
            .await;
        let opened = opened.map_or_else(Asked::Interrupted, Asked::from);
        let (input, output, mut control) = opened.or_error(operation, Phase::Observe)?.split();
        drop(input);
        let mut said = Vec::new();
        let ended = async {
            // A stream that breaks is told by how its process ended.
            let _ = output.take(LONGEST).read_to_end(&mut said).await;
            control.wait().await
        };
        let end = call.bound(ended).await.map_err(|why| {
            Error::interrupted(operation, why)
                .phase(Phase::Observe)
                .build()
        })?;
        if end.exit.is_success() {
            return Ok(match serde_json::from_slice(&said) {
                Ok(answer) => Inquired::Answered(answer),
                Err(error) => Inquired::Silent(format!("its answer is not understood: {error}")),
            });
        }
        Ok(match end.complaint() {
            Some(CallErrorKind::Paused) => Inquired::Paused,
            Some(CallErrorKind::NoSuchContainer | CallErrorKind::NotRunning) => Inquired::Gone,
            _ => {
                let said = String::from_utf8_lossy(&end.stderr);
                let said: String = said.trim().chars().take(300).collect();
                Inquired::Silent(format!("{}: {said}", end.exit))
            }
        })
    }
}
