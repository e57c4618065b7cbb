//! One run from its request to the handle of its process.

use std::sync::Arc;
use std::time::Duration;

use stockade::exec::ProcessParts;
use stockade::{Call, Error, ErrorKind, Operation, Phase, Process, Result};
use stockade_wire::message::{Start, Started};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::process::{Control, EndOnDrop, Output};
use super::session::Session;
use super::watch::Watch;
use crate::channel::{Ended, Run};

/// How long a guest may say nothing to a start until it is looked whether it
/// is paused; longer each time.
const STALLED: Duration = Duration::from_secs(3);

/// What is to run, and what becomes of it.
#[derive(Debug)]
pub(crate) struct Launch {
    /// For whom, as errors name it.
    pub(crate) operation: Operation,
    pub(crate) start: Start,
    /// The program's own timeout.
    pub(crate) timeout: Duration,
    /// Whether the sandbox ends with a program that was ended early.
    pub(crate) discard_after_abort: bool,
}

impl Launch {
    /// Starts it, and watches over it until it is over, whoever waits.
    ///
    /// Dropped, it ends the program.
    pub(crate) async fn process(self, call: &Call, session: &Arc<Session>) -> Result<Process> {
        let run = self.run(call, session).await?;
        let (orders, queue) = mpsc::unbounded_channel();
        let control = Arc::new(Control::new(run.control.clone(), orders));
        let (announce, started) = oneshot::channel();
        let watch = Watch {
            session: Arc::clone(session),
            started: run.started,
            exit: run.exit,
            orders: queue,
            control: run.control,
            timeout: self.timeout,
            background: self.start.background,
            discard_after_abort: self.discard_after_abort,
        };
        let exit = tokio::spawn(watch.run(announce));
        // Whoever drops this future from here on ends the command.
        let guard = EndOnDrop::new(Arc::clone(&control));
        let begun = self.begun(call, session, started).await?;
        guard.disarm();
        Ok(Process::new(ProcessParts {
            // A command that never started is told by its exit.
            pid: begun.map_or(0, |begun| begun.pid),
            stdin: self.start.stdin.then(|| Box::new(run.stdin) as _),
            output: Box::pin(Output(run.output)),
            exit: Box::pin(async move {
                exit.await.unwrap_or_else(|error| {
                    Err(Error::new(ErrorKind::Internal, Operation::Exec)
                        .message("the task that watched the command ended")
                        .source(error)
                        .build())
                })
            }),
            control,
        }))
    }

    /// Waits until it runs, or is known not to. A guest that says nothing for
    /// long may wait for a place, or be paused by somebody who will not thaw it.
    async fn begun(
        &self,
        call: &Call,
        session: &Session,
        mut started: oneshot::Receiver<Started>,
    ) -> Result<Option<Started>> {
        let _phase = call.enter(Phase::Start);
        let mut patience = STALLED;
        loop {
            let begun = call.bound(timeout(patience, &mut started)).await;
            let begun = begun.map_err(|why| {
                Error::interrupted(self.operation, why)
                    .phase(Phase::Queue)
                    .build()
            })?;
            match begun {
                Ok(begun) => return Ok(begun.ok()),
                // An engine that cannot be asked says nothing either.
                Err(_) => drop(session.thawed(call).await),
            }
            patience *= 2;
        }
    }

    /// Asks for it on the channel, or on a new one when the open one turns
    /// out to have ended: nothing was asked for yet.
    async fn run(&self, call: &Call, session: &Session) -> Result<Run> {
        let mut ended = Ended::Closed;
        for _ in 0..2 {
            let channel = session.channel(call).await?;
            match channel.start(&self.start) {
                Ok(run) => return Ok(run),
                Err(why) => ended = why,
            }
        }
        Err(Error::new(ErrorKind::Unavailable, self.operation)
            .message(format!(
                "the channel to sandbox {} ended: {ended}",
                session.name()
            ))
            .phase(Phase::Start)
            .build())
    }
}
