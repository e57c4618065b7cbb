//! Taking back.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::Client;
use crate::argv::{ContainerName, ContainerRef, CreationMark, VolumeName};
use crate::bounds::Bounds;
use crate::error::{CallError, CallErrorKind, Called};
use crate::undo::{FailedUndo, Settled, Undo};
use crate::verb::Mutation;
use crate::verbs::{
    InspectVolume, ListContainers, Removal, RemoveContainer, RemoveVolume, UnpauseContainer,
};

/// When a client was ended, the engine may still be doing what it was asked:
/// a removal succeeds then, because there is nothing yet. So it is looked for
/// again after each of these.
const LATE: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Most failed undos that are kept until somebody asks.
const KEPT: usize = 256;

impl Client {
    /// Waits for all work without a caller, and hands over what failed.
    pub(crate) async fn settle(&self, deadline: Instant) -> Settled {
        let _ = timeout_at(deadline, self.0.tasks.wait()).await;
        let mut failed = self
            .0
            .failed_undos
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Settled {
            unfinished: self.0.tasks.len(),
            failed: std::mem::take(&mut failed),
        }
    }

    /// Takes back, and says whether there was anything. `late`: what is to be
    /// taken back may only be coming into being.
    pub(super) async fn undo(&self, undo: &Undo, late: bool) -> Result<bool, CallError> {
        let mut found = self.undo_once(undo).await?;
        for pause in LATE {
            if found || !late {
                break;
            }
            sleep(pause).await;
            found = self.undo_once(undo).await?;
        }
        Ok(found)
    }

    /// Takes back what nobody waits for any more.
    pub(super) async fn undo_unattended(&self, undo: Undo) {
        if let Err(error) = self.undo(&undo, false).await {
            self.record(FailedUndo {
                undo,
                why: error.to_string(),
            });
        }
    }

    /// Keeps what failed for [`settle`](Self::settle).
    pub(super) fn record(&self, failed: FailedUndo) {
        let mut all = self
            .0
            .failed_undos
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if all.len() < KEPT {
            all.push(failed);
        }
    }

    async fn undo_once(&self, undo: &Undo) -> Result<bool, CallError> {
        match undo {
            Undo::Nothing => Ok(false),
            Undo::RemoveContainer(id) => self.remove_container(id.into()).await,
            Undo::RemoveMarkedContainer(name, mark) => self.remove_marked(name, mark).await,
            Undo::RemoveMarkedVolume(name, mark) => self.remove_volume(name, mark).await,
            Undo::Unpause(container) => self.unpause(container.clone()).await,
        }
    }

    async fn remove_marked(
        &self,
        name: &ContainerName,
        mark: &CreationMark,
    ) -> Result<bool, CallError> {
        let list = ListContainers::labelled([mark.label().clone()]).only(name);
        let mut found = false;
        for row in self.query(&Bounds::patient(), &list).await? {
            found |= self.remove_container(row.id.into()).await?;
        }
        Ok(found)
    }

    async fn remove_container(&self, container: ContainerRef) -> Result<bool, CallError> {
        match self.once(RemoveContainer::new(container)).await {
            Ok(removal) => Ok(removal == Removal::Removed),
            // Somebody else is at it, such as the engine at its own end.
            Err(error) if error.kind() == CallErrorKind::BeingRemoved => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn remove_volume(
        &self,
        name: &VolumeName,
        mark: &CreationMark,
    ) -> Result<bool, CallError> {
        let volume = self
            .query(&Bounds::patient(), &InspectVolume::new(name.clone()))
            .await?;
        let ours = volume.is_some_and(|volume| {
            volume
                .labels
                .get(mark.label().key())
                .is_some_and(|value| value == mark.label().value())
        });
        let remove = || self.once(RemoveVolume::new(name.clone()));
        Ok(ours && remove().await? == Removal::Removed)
    }

    pub(super) async fn unpause(&self, container: ContainerRef) -> Result<bool, CallError> {
        match self.once(UnpauseContainer::new(container)).await {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                CallErrorKind::NotPaused
                | CallErrorKind::NotRunning
                | CallErrorKind::NoSuchContainer => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// A change that is itself an undo, and so is not undone.
    async fn once<V: Mutation>(&self, verb: V) -> Result<V::Answer, CallError> {
        let bounds = Bounds::patient();
        let call = Called::new(V::NAME, &verb.argv());
        let done = self.ask(&bounds, &verb, &call).await?;
        self.conclude(&bounds, &verb, done, &call).await
    }
}
