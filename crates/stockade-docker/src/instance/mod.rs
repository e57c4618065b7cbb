//! The handle of one container: the contract's `Instance` over a channel.

mod convert;
mod process;
mod session;
mod watch;

use std::sync::Arc;

use stockade::exec::{Background, ProcessParts};
use stockade::spec::AfterAbort;
use stockade::{
    BoxFuture, Call, Error, ErrorKind, ExecRequest, Instance, InstanceId, Operation, Phase,
    Process, Result, SandboxSpec, Stdin,
};
use stockade_wire::message::Start;
use tokio::sync::{mpsc, oneshot};

use crate::channel::{Ended, Run};
use crate::plan::Environment;
pub(crate) use session::Session;
use watch::Watch;

/// One sandbox, as one acquire returned it.
#[derive(Debug)]
pub(crate) struct DockerInstance {
    id: InstanceId,
    session: Arc<Session>,
    spec: Arc<SandboxSpec>,
    environment: Environment,
    freshly_created: bool,
}

impl DockerInstance {
    pub(crate) fn new(
        id: InstanceId,
        session: Arc<Session>,
        spec: Arc<SandboxSpec>,
        environment: Environment,
        freshly_created: bool,
    ) -> Self {
        Self {
            id,
            session,
            spec,
            environment,
            freshly_created,
        }
    }

    /// Starts the command on the channel, or on a new one when the open one
    /// turns out to have ended: nothing was asked for yet.
    async fn start(&self, call: &Call, start: &Start) -> Result<Run> {
        let mut ended = Ended::Closed;
        for _ in 0..2 {
            let channel = self.session.channel(call).await?;
            match channel.start(start) {
                Ok(run) => return Ok(run),
                Err(why) => ended = why,
            }
        }
        Err(Error::new(ErrorKind::Unavailable, Operation::Exec)
            .message(format!(
                "the channel to sandbox {} ended: {ended}",
                self.session.name()
            ))
            .phase(Phase::Start)
            .build())
    }

    async fn spawn_process(&self, call: &Call, request: ExecRequest) -> Result<Process> {
        // A request is not kept across a wait: what it reads from need not be
        // shared between threads.
        let start = convert::request(&request, &self.environment);
        let timeout = request.timeout();
        let background = request.background() == Background::Keep;
        let piped = !matches!(request.stdin(), Stdin::Closed);
        drop(request);
        let run = self.start(call, &start).await?;
        let (orders, queue) = mpsc::unbounded_channel();
        let control = Arc::new(process::Control::new(run.control.clone(), orders));
        let (announce, started) = oneshot::channel();
        let watch = Watch {
            session: Arc::clone(&self.session),
            started: run.started,
            exit: run.exit,
            orders: queue,
            control: run.control,
            timeout,
            background,
            discard_after_abort: self.spec.after_abort() == AfterAbort::Discard,
        };
        let exit = tokio::spawn(watch.run(announce));
        // Whoever drops this future from here on ends the command.
        let guard = process::EndOnDrop::new(Arc::clone(&control));
        let begun = {
            let _phase = call.enter(Phase::Start);
            call.bound(started).await.map_err(|why| {
                Error::interrupted(Operation::Spawn, why)
                    .phase(Phase::Queue)
                    .build()
            })?
        };
        guard.disarm();
        Ok(Process::new(ProcessParts {
            // A command that never started is told by its exit.
            pid: begun.map_or(0, |begun| begun.pid),
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

    fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    fn spawn<'a>(&'a self, call: &'a Call, request: ExecRequest) -> BoxFuture<'a, Result<Process>> {
        Box::pin(self.spawn_process(call, request))
    }
}
