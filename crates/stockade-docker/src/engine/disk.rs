//! Sandboxes whose work directory is on disk.
//!
//! The engine makes a volume as root's, and can be told otherwise only by a
//! copy into the root of a container that mounts it; a sandbox's root is
//! read-only. So a container that never runs holds the volume first, and the
//! sandbox shares it from there. The volume is anonymous, which makes the
//! engine count who has it: whatever is removed last takes it along, so that
//! no step of this has more to undo than a container.

use bytes::Bytes;
use docker_driver::{ContainerId, ContainerPath, CopyIn, CreateContainer, RunOptions};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Result};

use super::{Asked, Created, Engine, Unclaimed, unfit};
use crate::names;
use crate::plan::Holder;

/// Permissions of the work directory.
const MODE: u32 = 0o700;

impl Engine {
    /// Makes a container with a work directory on disk and starts it: four
    /// docker commands. They run to their end whoever waits, each within its
    /// own bound, and are undone when nobody does.
    pub(crate) async fn create_on_disk(
        &self,
        call: &Call,
        holder: Holder,
        options: RunOptions,
    ) -> Result<Created> {
        let engine = self.clone();
        let making = async move { engine.make_on_disk(holder, options).await };
        // What it makes is dropped with this handle, whenever that happens.
        let making = self.inner.tasks.spawn_on(making, &self.inner.runtime);
        let made = call.bound(making).await.map_err(|why| {
            Error::interrupted(Operation::Acquire, why)
                .phase(Phase::Create)
                .build()
        })?;
        match made {
            Ok(Ok(Ok(unclaimed))) => Ok(Created::Made(unclaimed.claim())),
            Ok(Ok(Err(failed))) => Ok(Created::Failed(failed)),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(Error::new(ErrorKind::Internal, Operation::Acquire)
                .message("the task that made the sandbox ended")
                .phase(Phase::Create)
                .source(error)
                .build()),
        }
    }

    async fn make_on_disk(
        &self,
        holder: Holder,
        options: RunOptions,
    ) -> Result<std::result::Result<Unclaimed, super::CreateFailed>> {
        // The caller's own deadline is not this one's.
        let call = Call::with_timeout(self.inner.config.command_timeout.saturating_mul(4));
        let tar = directory(&holder)?;
        let made = self.mutate(&call, CreateContainer(holder.options)).await;
        let holder = match made {
            Asked::Failed(error) => return super::CreateFailed::of(error).map(Err),
            made => made.or_error(Operation::Acquire, Phase::Create)?,
        };
        let made = self.make_with(&call, &holder, tar, options).await;
        // Within this task, which is behind its caller already.
        self.try_to_discard(holder.as_str()).await;
        made
    }

    async fn make_with(
        &self,
        call: &Call,
        holder: &ContainerId,
        tar: Bytes,
        options: RunOptions,
    ) -> Result<std::result::Result<Unclaimed, super::CreateFailed>> {
        let root = ContainerPath::new("/").map_err(unfit)?;
        let copied = self.mutate(call, CopyIn::new(holder, root, tar)).await;
        copied.or_error(Operation::Acquire, Phase::Create)?;
        let options = options.volumes_from(holder.clone());
        Ok(match self.create(call, options).await? {
            Created::Made(id) => Ok(Unclaimed::new(self, id)),
            Created::Failed(failed) => Err(failed),
        })
    }
}

/// The one entry that a work directory consists of. Its ids are those inside
/// the container: an engine that remaps them does so here as well.
fn directory(holder: &Holder) -> Result<Bytes> {
    let packing = |error| {
        Error::new(ErrorKind::Internal, Operation::Acquire)
            .message("the work directory cannot be packed")
            .source(error)
            .build()
    };
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    header.set_mode(MODE);
    header.set_uid(u64::from(holder.uid));
    header.set_gid(u64::from(holder.gid));
    let now = names::now_millis() / 1000;
    header.set_mtime(u64::try_from(now).unwrap_or_default());
    let mut tar = tar::Builder::new(Vec::new());
    let path = holder.path.trim_start_matches('/');
    tar.append_data(&mut header, format!("{path}/"), std::io::empty())
        .map_err(packing)?;
    tar.into_inner().map(Bytes::from).map_err(packing)
}
