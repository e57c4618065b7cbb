//! Files of a sandbox, in two planes with the same answers.
//!
//! What looks and removes goes through the guest runtime in either plane; what
//! is written and read goes the way that the host chose. `docs/files.md` says
//! why.

mod guest;
mod look;
mod tar;
mod words;
mod worker;

use std::sync::Arc;

use stockade::files::{Download, FileStat, GuestPath, ListRequest, Listing, ReadFile, Upload};
use stockade::{Call, Error, Operation, Refusal, Result, SandboxSpec};
use stockade_wire::files::Item;

use crate::config::FilePlane;
use crate::instance::Session;
use worker::{Asked, Worker};

/// The files of one sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    session: Arc<Session>,
    spec: Arc<SandboxSpec>,
}

impl Files {
    pub(crate) fn new(session: Arc<Session>, spec: Arc<SandboxSpec>) -> Self {
        Self { session, spec }
    }

    pub(crate) async fn write(self, call: &Call, upload: Upload) -> Result<()> {
        match self.plane(Operation::WriteFiles)? {
            FilePlane::Guest => guest::write(&self, call, &upload).await,
            FilePlane::Tar => tar::write(&self, call, upload).await,
        }
    }

    pub(crate) async fn read(self, call: &Call, download: Download) -> Result<Vec<ReadFile>> {
        match self.plane(Operation::ReadFiles)? {
            FilePlane::Guest => guest::read(&self, call, &download).await,
            FilePlane::Tar => tar::read(&self, call, download).await,
        }
    }

    pub(crate) async fn stat(self, call: &Call, path: &GuestPath) -> Result<Option<FileStat>> {
        look::stat(&self, call, path).await
    }

    pub(crate) async fn list(self, call: &Call, request: &ListRequest) -> Result<Listing> {
        look::list(&self, call, request).await
    }

    pub(crate) async fn remove(self, call: &Call, path: &GuestPath, recursive: bool) -> Result<()> {
        let item = Item::Remove {
            path: words::text(path),
            recursive,
        };
        look::change(&self, call, Operation::Remove, path, item).await
    }

    pub(crate) async fn reclaim(self, call: &Call, path: &GuestPath) -> Result<()> {
        let item = Item::Reclaim {
            path: words::text(path),
        };
        look::change(&self, call, Operation::Reclaim, path, item).await
    }

    /// The plane that the host chose, unless the engine cannot serve it.
    fn plane(&self, operation: Operation) -> Result<FilePlane> {
        let engine = self.session.engine();
        let plane = engine.config().file_plane;
        let why = match plane {
            FilePlane::Tar if engine.facts().user_namespaces => {
                // The owners in a copy are the sandbox's, and the engine's are others.
                "the engine remaps users, so that a copy would have the wrong owner"
            }
            FilePlane::Tar if self.session.work_dir_can_move() => {
                "the sandbox's user can move a directory above the work directory, so that a \
                 copy could end up anywhere; a work directory directly below `/`, or a strict \
                 root, prevents that"
            }
            _ => return Ok(plane),
        };
        let why = why.to_owned();
        Err(Error::refused(operation, Refusal::FilePlane { why }))
    }

    /// Where something is mounted in the sandbox.
    async fn mounts(&self, call: &Call) -> Result<Vec<String>> {
        let channel = self.session.channel(call).await?;
        let mounts = channel.hello().mounts.iter();
        Ok(mounts
            .map(|mount| String::from_utf8_lossy(mount.path.as_bytes()).into_owned())
            .collect())
    }

    /// A worker that has been asked all of this.
    async fn worker(&self, call: &Call, operation: Operation, asked: Vec<Asked>) -> Result<Worker> {
        let work_dir = self.spec.work_dir();
        let items = asked.len();
        let mut worker = Worker::start(call, &self.session, operation, work_dir, items).await?;
        worker.ask(0, asked)?;
        Ok(worker)
    }
}
