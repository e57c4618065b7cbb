//! The handle of one container: the contract's `Instance` over a channel.

mod convert;
mod launch;
mod process;
mod session;
mod watch;

use std::sync::Arc;

use stockade::files::{Download, FileStat, GuestPath, ListRequest, Listing, ReadFile, Upload};
use stockade::spec::AfterAbort;
use stockade::{
    BoxFuture, Call, ExecRequest, Instance, InstanceId, Operation, Process, Result, SandboxSpec,
};

use crate::files::Files;
use crate::plan::Environment;
pub(crate) use convert::status as outcome;
pub(crate) use launch::Launch;
pub(crate) use session::Session;

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

    /// The sandbox's files.
    fn files(&self) -> Files {
        Files::new(Arc::clone(&self.session), Arc::clone(&self.spec))
    }

    async fn spawn_process(&self, call: &Call, request: ExecRequest) -> Result<Process> {
        // A request is not kept across a wait: what it reads from need not be
        // shared between threads.
        let launch = Launch {
            operation: Operation::Spawn,
            start: convert::request(&request, &self.environment),
            timeout: request.timeout(),
            discard_after_abort: self.spec.after_abort() == AfterAbort::Discard,
        };
        drop(request);
        launch.process(call, &self.session).await
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

    fn write_files<'a>(&'a self, call: &'a Call, upload: Upload) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.files().write(call, upload))
    }

    fn read_files<'a>(
        &'a self,
        call: &'a Call,
        download: Download,
    ) -> BoxFuture<'a, Result<Vec<ReadFile>>> {
        Box::pin(self.files().read(call, download))
    }

    fn stat<'a>(
        &'a self,
        call: &'a Call,
        path: &'a GuestPath,
    ) -> BoxFuture<'a, Result<Option<FileStat>>> {
        Box::pin(self.files().stat(call, path))
    }

    fn list_dir<'a>(
        &'a self,
        call: &'a Call,
        request: &'a ListRequest,
    ) -> BoxFuture<'a, Result<Listing>> {
        Box::pin(self.files().list(call, request))
    }

    fn remove<'a>(
        &'a self,
        call: &'a Call,
        path: &'a GuestPath,
        recursive: bool,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.files().remove(call, path, recursive))
    }

    fn reclaim<'a>(&'a self, call: &'a Call, path: &'a GuestPath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.files().reclaim(call, path))
    }
}
