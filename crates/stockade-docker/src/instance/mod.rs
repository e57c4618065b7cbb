//! The handle of one container: the contract's `Instance` over a channel.

mod convert;
mod process;
mod session;
mod watch;

use std::sync::Arc;

use stockade::{
    AfterAbort, BoxFuture, Call, Error, ErrorKind, ExecRequest, Instance, InstanceId, Operation,
    Phase, Process, ProcessParts, Result, SandboxSpec, Stdin,
};
use tokio::sync::{mpsc, oneshot};

use crate::channel::{Channel, Ended, Run};
pub(crate) use session::Session;
use watch::{Order, Watch};

/// One sandbox, as one acquire returned it.
#[derive(Debug)]
pub(crate) struct DockerInstance {
    id: InstanceId,
    session: Arc<Session>,
    spec: Arc<SandboxSpec>,
    freshly_created: bool,
}

impl DockerInstance {
    pub(crate) fn new(
        id: InstanceId,
        session: Arc<Session>,
        spec: Arc<SandboxSpec>,
        freshly_created: bool,
    ) -> Self {
        Self { id, session, spec, freshly_created }
    }

    /// Starts the command on the channel, or on a new one when the open one
    /// turns out to have ended: nothing was asked for yet.
    async fn start(&self, call: &Call, request: &ExecRequest) -> Result<(Channel, Run)> {
        let start = convert::request(request);
        let mut ended = Ended::Closed;
        for _ in 0..2 {
            let channel = self.session.channel(call).await?;
            match channel.start(&start) {
                Ok(run) => return Ok((channel, run)),
                Err(why) => ended = why,
            }
        }
        Err(Error::new(ErrorKind::Unavailable, Operation::Exec)
            .message(format!("the channel to sandbox {} ended: {ended}", self.session.name()))
            .phase(Phase::Start)
            .build())
    }

    async fn spawn_process(&self, call: &Call, request: ExecRequest) -> Result<Process> {
        let (channel, run) = self.start(call, &request).await?;
        let (orders, queue) = mpsc::unbounded_channel();
        let control = Arc::new(process::Control::new(run.control.clone(), orders));
        let (announce, started) = oneshot::channel();
        let watch = Watch {
            session: Arc::clone(&self.session),
            started: run.started,
            exit: run.exit,
            orders: queue,
            control: run.control,
            timeout: request.timeout(),
            background: request.is_background(),
            discard_after_abort: self.spec.after_abort() == AfterAbort::Discard,
        };
        let exit = tokio::spawn(watch.run(announce));
        // Whoever drops this future from here on ends the command.
        let guard = process::EndOnDrop::new(Arc::clone(&control));
        let begun = tokio::select! {
            begun = started => begun.ok(),
            interruption = call.interrupted() => {
                return Err(Error::interrupted(interruption, Operation::Exec).phase(Phase::Queue).build());
            }
        };
        guard.disarm();
        // The channel lives as long as anything of the run does.
        drop(channel);
        let piped = !matches!(request.stdin(), Stdin::Closed);
        Ok(Process::from_parts(ProcessParts {
            pid: begun.map(|begun| begun.pid),
            stdin: piped.then(|| Box::new(run.stdin) as _),
            output: Box::pin(process::Output(run.output)),
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
}

impl Instance for DockerInstance {
    fn id(&self) -> &InstanceId {
        &self.id
    }

    fn freshly_created(&self) -> bool {
        self.freshly_created
    }

    fn spawn<'a>(&'a self, call: &'a Call, request: ExecRequest) -> BoxFuture<'a, Result<Process>> {
        Box::pin(self.spawn_process(call, request))
    }
}
