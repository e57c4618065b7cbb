//! Everything of an owner that stands on the engine, looked at in few commands.

use std::time::{Duration, SystemTime};

use docker_driver::{
    CallErrorKind, ContainerFacts, ContainerId, ContainerName, ContainerRef, DiskUsage,
    EngineUsage, ImageFacts, ImageId, ImageRef, ImageRow, InspectContainer, InspectContainers,
    InspectImage, InspectVolume, Label, ListContainers, ListImages, ListVolumes, RemoveImage,
    VolumeFacts, VolumeName,
};
use futures_util::future::{join_all, try_join_all};
use stockade::{Call, Error, Operation, Phase, Result};

use super::{Asked, Engine, unfit};
use crate::names::{self, Role, label};

/// How long an engine may take to answer about containers of others, in whose
/// way it is nobody's to be: a look takes 20 ms, on a loaded engine some seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// What stands on an engine, of one owner and of the runtimes that all share.
#[derive(Debug)]
pub(crate) struct Inventory {
    /// The engine's clock, when it was asked.
    pub(crate) now: SystemTime,
    /// Containers whose name proves whose they are.
    pub(crate) containers: Vec<Owned>,
    /// Volumes of the owner's work directories.
    pub(crate) work_dirs: Vec<VolumeFacts>,
    /// Images that were built, whose name proves whose they are.
    pub(crate) images: Vec<ImageFacts>,
    /// Volumes with the guest runtime.
    pub(crate) runtimes: Vec<String>,
}

/// A container of the owner's.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) role: Role,
    pub(crate) facts: ContainerFacts,
}

impl Engine {
    /// The inventory, whole or not at all. What goes while it is looked at is
    /// left out.
    pub(crate) async fn inventory(&self, call: &Call, operation: Operation) -> Result<Inventory> {
        let _phase = call.enter(Phase::Observe);
        let owner = vec![self.owner_label()?];
        let (now, containers, work_dirs, images, runtimes) = tokio::try_join!(
            self.now(call, operation),
            self.containers(call, operation, Some(self.owner()), |_| true),
            self.volume_facts(call, operation, owner),
            self.built_images(call, operation),
            self.runtimes(call, operation),
        )?;
        let owned = |facts: ContainerFacts| {
            let role = names::role(self.owner(), &facts.name, &facts.labels)?;
            Some(Owned { role, facts })
        };
        let is_work_dir = |volume: &VolumeFacts| {
            names::is_work_volume(self.owner(), &volume.name, &volume.labels)
        };
        Ok(Inventory {
            now,
            containers: containers.into_iter().filter_map(owned).collect(),
            work_dirs: work_dirs.into_iter().filter(is_work_dir).collect(),
            images,
            runtimes,
        })
    }

    /// What the engine says of every container with an owner's label, or with
    /// any owner's, whose name is wanted. A label proves nothing yet.
    ///
    /// Those that are being removed are left out: they go by themselves, and
    /// an engine answers nothing about them until they have.
    pub(crate) async fn containers(
        &self,
        call: &Call,
        operation: Operation,
        owner: Option<&str>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<ContainerFacts>> {
        let list = match owner {
            Some(owner) => {
                ListContainers::labelled([Label::new(label::OWNER, owner).map_err(unfit)?])
            }
            None => ListContainers::default().having(&self.owner_label()?),
        };
        let rows = self.query(call, list).await;
        let rows = rows.or_error(operation, Phase::Observe)?;
        let rows = rows.into_iter();
        let rows = rows.filter(|row| row.state != "removing" && wanted(&row.name));
        let ids: Vec<_> = rows.map(|row| row.id).collect();
        let batches = ids.chunks(InspectContainers::MOST);
        let batches = batches.map(|ids| self.batch(call, operation, owner.is_some(), ids));
        Ok(try_join_all(batches).await?.into_iter().flatten().collect())
    }

    /// The facts of containers that fit into one command.
    async fn batch(
        &self,
        call: &Call,
        operation: Operation,
        are_ours: bool,
        ids: &[ContainerId],
    ) -> Result<Vec<ContainerFacts>> {
        let mut all = Vec::new();
        for look in InspectContainers::of(ids.iter().cloned()) {
            let found = if are_ours {
                self.query(call, look).await
            } else {
                match self.query_within(call, PATIENCE, look).await {
                    Asked::Answered(found) => Asked::Answered(found),
                    _ => Asked::Answered(self.answering(call, operation, ids).await?),
                }
            };
            all.extend(found.or_error(operation, Phase::Observe)?);
        }
        Ok(all)
    }

    /// The facts of those containers about which the engine answers: it does
    /// not about one that somebody copies from, or that it cannot end.
    async fn answering(
        &self,
        call: &Call,
        operation: Operation,
        ids: &[ContainerId],
    ) -> Result<Vec<ContainerFacts>> {
        let looks = ids.iter().map(async |id| {
            let look = InspectContainer::new(id.clone());
            match self.query_within(call, PATIENCE, look).await {
                Asked::Answered(facts) => Ok(facts),
                _ => match call.interruption() {
                    Some(why) => Err(Error::interrupted(operation, why)
                        .phase(Phase::Observe)
                        .build()),
                    None => Ok(None),
                },
            }
        });
        Ok(try_join_all(looks).await?.into_iter().flatten().collect())
    }

    /// What everything on the engine takes of its disk.
    pub(crate) async fn disk_usage(
        &self,
        call: &Call,
        operation: Operation,
    ) -> Result<EngineUsage> {
        let usage = self.query(call, DiskUsage).await;
        usage.or_error(operation, Phase::Observe)
    }

    /// Every image, with its names.
    pub(crate) async fn images(&self, call: &Call, operation: Operation) -> Result<Vec<ImageRow>> {
        let rows = self.query(call, ListImages::default()).await;
        rows.or_error(operation, Phase::Observe)
    }

    /// Images that this owner had built. Containers of such an image hand its
    /// labels on to what is made of them, so that its name is looked at too.
    async fn built_images(&self, call: &Call, operation: Operation) -> Result<Vec<ImageFacts>> {
        let role = Label::new(label::ROLE, names::IMAGE_ROLE).map_err(unfit)?;
        let list = ListImages::labelled([self.owner_label()?, role]);
        let rows = self.query(call, list).await;
        let rows = rows.or_error(operation, Phase::Observe)?;
        let looks = rows.into_iter().map(async |row| {
            let image = ImageRef::new(row.id.as_str()).map_err(unfit)?;
            let facts = self.query(call, InspectImage::new(image)).await;
            facts.or_error(operation, Phase::Observe)
        });
        let found = try_join_all(looks).await?.into_iter().flatten();
        Ok(found
            .filter(|facts| names::is_built(self.owner(), &facts.tags, &facts.labels))
            .collect())
    }

    /// Names of the volumes with a guest runtime. A volume inherits no label.
    async fn runtimes(&self, call: &Call, operation: Operation) -> Result<Vec<String>> {
        let role = Label::new(label::ROLE, "runtime").map_err(unfit)?;
        let names = self.query(call, ListVolumes::labelled([role])).await;
        let mut names = names.or_error(operation, Phase::Observe)?;
        names.retain(|name| names::is_runtime_volume(name));
        Ok(names)
    }

    async fn volume_facts(
        &self,
        call: &Call,
        operation: Operation,
        labels: Vec<Label>,
    ) -> Result<Vec<VolumeFacts>> {
        let names = self.query(call, ListVolumes::labelled(labels)).await;
        let names = names.or_error(operation, Phase::Observe)?;
        let looks = names.into_iter().map(async |name| {
            let look = InspectVolume::new(VolumeName::new(name).map_err(unfit)?);
            let facts = self.query(call, look).await;
            facts.or_error(operation, Phase::Observe)
        });
        let found: Result<Vec<_>> = join_all(looks).await.into_iter().collect();
        Ok(found?.into_iter().flatten().collect())
    }

    /// Removes an image with its one name. False when something uses it: a
    /// container, another image, or a second name.
    pub(crate) async fn remove_image(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
    ) -> Result<bool> {
        let verb = RemoveImage::new(ImageId::new(id).map_err(unfit)?);
        match self.mutate(call, verb).await {
            Asked::Failed(error) if error.kind() == CallErrorKind::ImageInUse => Ok(false),
            removed => removed.or_error(operation, Phase::Dispose).map(|_| true),
        }
    }

    fn owner_label(&self) -> Result<Label> {
        Label::new(label::OWNER, self.owner()).map_err(unfit)
    }
}

/// The reference of a container that a caller named; `None` when no container
/// of any engine can have that id.
pub(crate) fn by_id(id: &str) -> Option<ContainerRef> {
    ContainerId::new(id).ok().map(Into::into)
}

/// The reference of a container by its name.
pub(crate) fn by_name(name: &str) -> Result<ContainerRef> {
    Ok(ContainerName::new(name).map_err(unfit)?.into())
}
