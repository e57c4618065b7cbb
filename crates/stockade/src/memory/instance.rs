//! One sandbox of the table, and the handles to it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fs::{GuestFiles, Tree};
use super::run;
use super::{Flaw, Programs};
use crate::backend::BoxFuture;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::exec::{ExecRequest, Process};
use crate::files::{Download, FileStat, GuestPath, ListRequest, Listing, ReadFile, Upload};
use crate::files::{UploadEntry, UploadKind};
use crate::instance::{Instance, Sandbox};
use crate::key::InstanceId;
use crate::spec::SandboxSpec;

/// One sandbox.
pub(super) struct State {
    number: u64,
    id: InstanceId,
    spec: Arc<SandboxSpec>,
    made: Instant,
    removed: CancellationToken,
    files: Arc<Mutex<Tree>>,
    flaw: Option<Flaw>,
    presence: Mutex<Presence>,
}

/// Who is there.
struct Presence {
    /// Handles and commands.
    users: usize,
    /// Since when there is nobody.
    idle_since: Instant,
}

/// Counts as somebody while it lives.
pub(super) struct User(Arc<State>);

/// One handle: an acquire's answer.
pub(super) struct MemoryInstance {
    state: User,
    programs: Programs,
    freshly_created: bool,
}

impl State {
    pub(super) fn new(number: u64, spec: Arc<SandboxSpec>, flaw: Option<Flaw>) -> Self {
        let now = Instant::now();
        let id = InstanceId::new(format!("memory-{number}"));
        Self {
            number,
            id: id.unwrap_or_else(|error| unreachable!("a valid id: {error}")),
            made: now,
            removed: CancellationToken::new(),
            files: Arc::new(Mutex::new(Tree::new(&spec, flaw))),
            spec,
            flaw,
            presence: Mutex::new(Presence {
                users: 0,
                idle_since: now,
            }),
        }
    }

    /// The number of its name.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn id(&self) -> &InstanceId {
        &self.id
    }

    pub(super) fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    pub(super) fn flaw(&self) -> Option<Flaw> {
        self.flaw
    }

    /// The files, as the guest has them.
    pub(super) fn guest_files(&self) -> GuestFiles {
        GuestFiles::new(&self.files)
    }

    /// The files, for an operation of the host.
    pub(super) fn files(&self, operation: Operation) -> Result<MutexGuard<'_, Tree>> {
        if self.has_ended() {
            return Err(gone(operation));
        }
        Ok(self.tree())
    }

    pub(super) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.made)
    }

    /// For how long nobody was there; nothing while somebody is.
    pub(super) fn idle(&self, now: Instant) -> Option<Duration> {
        let presence = self.presence();
        let idle = now.saturating_duration_since(presence.idle_since);
        (presence.users == 0).then_some(idle)
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.presence().users > 0
    }

    /// Whether it was removed, or ended by itself: at its maximum age, or at
    /// its idle limit with nobody there.
    pub(super) fn has_ended(&self) -> bool {
        let now = Instant::now();
        let idle = self.idle(now);
        let over = self.age(now) >= self.spec.max_age()
            || idle.is_some_and(|idle| idle >= self.spec.idle_limit());
        if over {
            self.remove();
        }
        self.removed.is_cancelled()
    }

    /// Ends it with everything that runs in it.
    pub(super) fn remove(&self) {
        self.removed.cancel();
    }

    /// Waits until it has been removed or reaches its maximum age.
    pub(super) async fn ended(&self) {
        tokio::select! {
            () = self.removed.cancelled() => {}
            () = tokio::time::sleep_until(self.made + self.spec.max_age()) => {}
        }
    }

    fn presence(&self) -> MutexGuard<'_, Presence> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl User {
    pub(super) fn of(state: &Arc<State>) -> Self {
        state.presence().users += 1;
        Self(Arc::clone(state))
    }

    pub(super) fn state(&self) -> &Arc<State> {
        &self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut presence = self.0.presence();
        presence.users -= 1;
        presence.idle_since = Instant::now();
    }
}

impl MemoryInstance {
    /// Opens a handle.
    pub(super) fn open(state: &Arc<State>, programs: &Programs, freshly_created: bool) -> Sandbox {
        Sandbox::new(Arc::new(Self {
            state: User::of(state),
            programs: Arc::clone(programs),
            freshly_created,
        }))
    }
}

impl Instance for MemoryInstance {
    fn id(&self) -> &InstanceId {
        self.state.state().id()
    }

    fn freshly_created(&self) -> bool {
        self.freshly_created
    }

    fn spec(&self) -> &SandboxSpec {
        self.state.state().spec()
    }

    fn spawn<'a>(
        &'a self,
        _call: &'a Call,
        request: ExecRequest,
    ) -> BoxFuture<'a, Result<Process>> {
        Box::pin(async move {
            let state = self.state.state();
            if state.has_ended() {
                return Err(gone(Operation::Spawn));
            }
            Ok(run::start(state, &self.programs, request))
        })
    }

    fn write_files<'a>(&'a self, _call: &'a Call, upload: Upload) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let entries = contents(&upload).await?;
            let mut tree = self.state.state().files(Operation::WriteFiles)?;
            tree.write(&entries)
        })
    }

    fn read_files<'a>(
        &'a self,
        _call: &'a Call,
        download: Download,
    ) -> BoxFuture<'a, Result<Vec<ReadFile>>> {
        Box::pin(async move {
            let operation = Operation::ReadFiles;
            let tree = self.state.state().files(operation)?;
            let read = tree.read(&download);
            read.map_err(|refusal| Error::refused(operation, refusal))
        })
    }

    fn stat<'a>(
        &'a self,
        _call: &'a Call,
        path: &'a GuestPath,
    ) -> BoxFuture<'a, Result<Option<FileStat>>> {
        Box::pin(async move {
            let tree = self.state.state().files(Operation::Stat)?;
            let stat = tree.stat(path);
            stat.map_err(|refusal| Error::refused(Operation::Stat, refusal))
        })
    }

    fn list_dir<'a>(
        &'a self,
        _call: &'a Call,
        request: &'a ListRequest,
    ) -> BoxFuture<'a, Result<Listing>> {
        Box::pin(async move {
            let tree = self.state.state().files(Operation::ListDir)?;
            let listing = tree.list(request);
            listing.map_err(|refusal| Error::refused(Operation::ListDir, refusal))
        })
    }

    fn remove<'a>(
        &'a self,
        _call: &'a Call,
        path: &'a GuestPath,
        recursive: bool,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut tree = self.state.state().files(Operation::Remove)?;
            let removed = tree.remove(path, recursive);
            removed.map_err(|refusal| Error::refused(Operation::Remove, refusal))
        })
    }

    fn reclaim<'a>(&'a self, _call: &'a Call, path: &'a GuestPath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut tree = self.state.state().files(Operation::Reclaim)?;
            let reclaimed = tree.reclaim(path);
            reclaimed.map_err(|refusal| Error::refused(Operation::Reclaim, refusal))
        })
    }
}

/// Each entry of a batch with its content in memory.
async fn contents(upload: &Upload) -> Result<Vec<(UploadEntry, Bytes)>> {
    let mut entries = Vec::with_capacity(upload.entries().len());
    for entry in upload.entries() {
        let content = match &entry.kind {
            UploadKind::Directory => Bytes::new(),
            UploadKind::File(content) => content.to_bytes().await.map_err(|error| {
                Error::new(ErrorKind::Unavailable, Operation::WriteFiles)
                    .message(format!(
                        "content that was set aside cannot be read: {error}"
                    ))
                    .source(error)
                    .build()
            })?,
        };
        entries.push((entry.clone(), content));
    }
    Ok(entries)
}

/// The error of a sandbox that is no more.
pub(super) fn gone(operation: Operation) -> Error {
    Error::new(ErrorKind::Lost, operation)
        .message("the sandbox was removed or has ended; acquire it again")
        .build()
}

impl fmt::Debug for MemoryInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryInstance").field(self.id()).finish()
    }
}
