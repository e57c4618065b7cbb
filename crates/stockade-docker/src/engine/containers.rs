//! Containers: made, looked at, entered, signalled, removed.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use docker_driver::{
    CallError, CallErrorKind, ContainerFacts, ContainerId, ContainerName, ContainerRef, ExecStream,
    InspectContainer, InspectContainers, InspectVolume, KillContainer, Label, ListContainers,
    ListVolumes, Removal, RemoveContainer, RemoveVolume, RunDetached, RunOptions, Signal,
    StartContainer, StreamControl, StreamInput, StreamOutput, VolumeName,
};
use futures_util::future::join_all;
use stockade::{Call, Error, Operation, Phase, Result};
use tokio::time::Instant;

use super::{Asked, Engine, lift, unfit};
use crate::decide::{Observed, State};
use crate::names::label;
use crate::plan::GUEST;

/// Between two looks at a container that is being removed.
const SETTLE: Duration = Duration::from_millis(100);

/// How often a removal is tried of a container that does not run.
const TRIES: u32 = 3;

/// How long a PID 1 that has said that it ends may take: some milliseconds,
/// and on a loaded engine until its end is noticed.
const ENDING: Duration = Duration::from_secs(5);

/// What became of a create.
pub(crate) enum Created {
    /// The id of the container, which runs.
    Made(String),
    Failed(CreateFailed),
}

/// A create that failed for a reason that the name may explain.
pub(crate) struct CreateFailed {
    /// Whether another host's container has the name, or had ours removed.
    pub(crate) is_conflict: bool,
    /// Whether the engine has lost what this process knows it to have: the
    /// image, or the guest runtime in its volume.
    pub(crate) is_outdated: bool,
    pub(crate) error: Error,
}

impl CreateFailed {
    /// An error when the engine did not even try.
    pub(super) fn of(error: CallError) -> Result<Self> {
        let kind = error.kind();
        let is_conflict = matches!(
            kind,
            CallErrorKind::NameConflict
                | CallErrorKind::NoSuchContainer
                | CallErrorKind::BeingRemoved
        );
        let is_outdated = matches!(
            kind,
            CallErrorKind::NoSuchImage | CallErrorKind::ProgramNotFound
        );
        let fatal = matches!(
            kind,
            CallErrorKind::DaemonUnreachable
                | CallErrorKind::PermissionDenied
                | CallErrorKind::DeadlinePassed
                | CallErrorKind::Cancelled
                | CallErrorKind::NotStarted
                | CallErrorKind::Closed
        );
        let error = lift::call(Operation::Acquire, Phase::Create, error);
        if fatal {
            return Err(error);
        }
        Ok(Self {
            is_conflict,
            is_outdated,
            error,
        })
    }
}

/// A container that has labels of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A container or a volume with what the engine says of it.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) found: Found,
    pub(crate) labels: BTreeMap<String, String>,
    /// What it does; of a volume nothing.
    pub(crate) state: State,
    /// By the engine's clock; `None` of a volume whose driver does not tell.
    pub(crate) created: Option<SystemTime>,
}

/// An open stream to PID 1.
pub(crate) struct Relay {
    pub(crate) from: StreamOutput,
    pub(crate) to: StreamInput,
    /// Ends the relay's process when dropped.
    pub(crate) keep: StreamControl,
}

impl Engine {
    /// Makes a container and starts it. Dropped, it is removed again.
    pub(crate) async fn create(&self, call: &Call, options: RunOptions) -> Result<Created> {
        match self.mutate(call, RunDetached(options)).await {
            Asked::Answered(id) => Ok(Created::Made(id.to_string())),
            Asked::Interrupted(why) => Err(Error::interrupted(Operation::Acquire, why)
                .phase(Phase::Create)
                .build()),
            Asked::Failed(error) => CreateFailed::of(error).map(Created::Failed),
        }
    }

    /// What the engine says of a container; `None` when there is none, also
    /// when it went while it was looked at.
    pub(crate) async fn look(
        &self,
        call: &Call,
        operation: Operation,
        container: impl Into<ContainerRef>,
    ) -> Result<Option<ContainerFacts>> {
        match self.query(call, InspectContainer::new(container)).await {
            Asked::Failed(error) if error.kind() == CallErrorKind::NoSuchContainer => Ok(None),
            found => found.or_error(operation, Phase::Observe),
        }
    }

    /// What stands under a name.
    pub(crate) async fn observe(&self, call: &Call, name: &str) -> Result<Option<Observed>> {
        let name = ContainerName::new(name).map_err(unfit)?;
        let found = self.look(call, Operation::Acquire, name).await?;
        Ok(found.as_ref().map(observed))
    }

    /// Whether a container of this owner has a name. To look for what is not
    /// there costs one command, where [`Engine::observe`] takes two.
    pub(crate) async fn has(&self, call: &Call, name: &str) -> Result<bool> {
        let name = ContainerName::new(name).map_err(unfit)?;
        let list = ListContainers::labelled(self.labels(&[])?).only(name);
        let rows = self.query(call, list).await;
        let rows = rows.or_error(Operation::Acquire, Phase::Observe)?;
        Ok(!rows.is_empty())
    }

    /// Starts a container that has ended; `false` when it is gone. One that
    /// runs stays as it is, so that two may start it at once.
    pub(crate) async fn start(&self, call: &Call, id: &str) -> Result<bool> {
        let id = ContainerId::new(id).map_err(unfit)?;
        match self.mutate(call, StartContainer::new(id)).await {
            Asked::Failed(error)
                if matches!(
                    error.kind(),
                    CallErrorKind::NoSuchContainer | CallErrorKind::BeingRemoved
                ) =>
            {
                Ok(false)
            }
            started => started
                .or_error(Operation::Acquire, Phase::Create)
                .map(|()| true),
        }
    }

    /// Whether a container runs; one that is gone does not.
    pub(crate) async fn is_running(&self, call: &Call, id: &str) -> Result<bool> {
        let id = ContainerId::new(id).map_err(unfit)?;
        let found = self.look(call, Operation::Exec, id).await?;
        Ok(found.is_some_and(|facts| facts.state.running))
    }

    /// Every container of this owner with these labels.
    pub(crate) async fn find(&self, call: &Call, filters: &[(&str, String)]) -> Result<Vec<Found>> {
        let labels = self.labels(filters)?;
        let rows = self.query(call, ListContainers::labelled(labels)).await;
        let rows = rows.or_error(Operation::Dispose, Phase::Observe)?;
        Ok(rows
            .into_iter()
            .map(|row| Found {
                id: row.id.to_string(),
                name: row.name,
            })
            .collect())
    }

    /// The owner's label, and these.
    fn labels(&self, filters: &[(&str, String)]) -> Result<Vec<Label>> {
        let owner = Label::new(label::OWNER, self.owner());
        let others = filters.iter().map(|(key, value)| Label::new(*key, value));
        std::iter::once(owner)
            .chain(others)
            .map(|label| label.map_err(unfit))
            .collect()
    }

    /// The labels of containers that [`Engine::find`] found; one that is gone
    /// by now is left out.
    pub(crate) async fn describe(&self, call: &Call, found: Vec<Found>) -> Result<Vec<Described>> {
        let ids: Result<Vec<_>> = found
            .iter()
            .map(|found| ContainerId::new(&found.id).map_err(unfit))
            .collect();
        let looks = InspectContainers::of(ids?);
        let looks = looks.into_iter().map(async |look| {
            let facts = self.query(call, look).await;
            facts.or_error(Operation::Reap, Phase::Observe)
        });
        let facts: Result<Vec<_>> = join_all(looks).await.into_iter().collect();
        let described = facts?.into_iter().flatten().map(|facts| Described {
            found: Found {
                id: facts.id.to_string(),
                name: facts.name.clone(),
            },
            state: state(&facts),
            created: facts.created,
            labels: facts.labels,
        });
        Ok(described.collect())
    }

    /// Names of every volume of this owner with these labels. A sandbox takes
    /// its volume along when it ends; one that somebody removed by hand
    /// without `--volumes` does not.
    pub(crate) async fn volumes(
        &self,
        call: &Call,
        filters: &[(&str, String)],
    ) -> Result<Vec<String>> {
        let labels = self.labels(filters)?;
        let names = self.query(call, ListVolumes::labelled(labels)).await;
        names.or_error(Operation::Dispose, Phase::Observe)
    }

    /// The labels of volumes; one that is gone by now is left out.
    pub(crate) async fn describe_volumes(
        &self,
        call: &Call,
        names: Vec<String>,
    ) -> Result<Vec<Described>> {
        let looks = names.into_iter().map(async |name| {
            let look = InspectVolume::new(VolumeName::new(&name).map_err(unfit)?);
            let facts = self.query(call, look).await;
            let facts = facts.or_error(Operation::Reap, Phase::Observe)?;
            Ok(facts.map(|facts| Described {
                found: Found {
                    id: name.clone(),
                    name,
                },
                labels: facts.labels,
                state: State::Lost,
                created: facts.created,
            }))
        });
        let described: Result<Vec<_>> = join_all(looks).await.into_iter().collect();
        Ok(described?.into_iter().flatten().collect())
    }

    /// Removes a volume, unless a container uses it; whether it went now.
    pub(crate) async fn remove_volume(
        &self,
        call: &Call,
        operation: Operation,
        name: &str,
    ) -> Result<bool> {
        let name = VolumeName::new(name).map_err(unfit)?;
        match self.mutate(call, RemoveVolume::new(name)).await {
            Asked::Failed(error) if error.kind() == CallErrorKind::VolumeInUse => Ok(false),
            removed => {
                let removed = removed.or_error(operation, Phase::Dispose)?;
                Ok(removed == Removal::Removed)
            }
        }
    }

    /// Removes a container with its anonymous volumes. One that is gone is
    /// removed.
    pub(crate) async fn remove(&self, call: &Call, operation: Operation, id: &str) -> Result<()> {
        let id = ContainerId::new(id).map_err(unfit)?;
        loop {
            match self.mutate(call, RemoveContainer::new(id.clone())).await {
                // Somebody else removes it, or the engine does because it has
                // ended: it is removed when it is gone, and asked for until.
                Asked::Failed(error) if error.kind() == CallErrorKind::BeingRemoved => {
                    let waited = call.bound(tokio::time::sleep(SETTLE)).await;
                    waited.map_err(|why| Error::interrupted(operation, why).build())?;
                }
                removed => return removed.or_error(operation, Phase::Dispose).map(drop),
            }
        }
    }

    /// Removes a container that was seen to have ended. False when it runs,
    /// because somebody has started it since.
    pub(crate) async fn remove_ended(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
    ) -> Result<bool> {
        let container = ContainerId::new(id).map_err(unfit)?;
        let verb = RemoveContainer::new(container).unless_running();
        let mut removed = self.mutate(call, verb.clone()).await;
        // Docker's words for a container that runs are many; it tells itself,
        // and may have ended by then.
        for _ in 1..TRIES {
            match removed {
                Asked::Failed(error) if error.kind() == CallErrorKind::BeingRemoved => {
                    return self.remove(call, operation, id).await.map(|()| true);
                }
                Asked::Failed(_) if self.is_running(call, id).await? => return Ok(false),
                Asked::Failed(_) => removed = self.mutate(call, verb.clone()).await,
                _ => break,
            }
        }
        removed.or_error(operation, Phase::Dispose).map(|_| true)
    }

    /// Removes a container whose PID 1 has said that it ends, once it has.
    /// False when it runs all the same: somebody has started it since.
    pub(crate) async fn remove_retired(
        &self,
        call: &Call,
        operation: Operation,
        id: &str,
    ) -> Result<bool> {
        let asked = Instant::now();
        while !self.remove_ended(call, operation, id).await? {
            if asked.elapsed() > ENDING {
                return Ok(false);
            }
            let waited = call.bound(tokio::time::sleep(SETTLE)).await;
            waited.map_err(|why| Error::interrupted(operation, why).build())?;
        }
        Ok(true)
    }

    /// Has PID 1 of a container kill everything else in it; false when the
    /// container has ended.
    pub(crate) async fn kill_everything(&self, call: &Call, id: &str) -> Result<bool> {
        let id = ContainerId::new(id).map_err(unfit)?;
        let kill = KillContainer::new(id, Signal::Usr1);
        match self.mutate(call, kill).await {
            Asked::Failed(error)
                if matches!(
                    error.kind(),
                    CallErrorKind::NoSuchContainer | CallErrorKind::NotRunning
                ) =>
            {
                Ok(false)
            }
            killed => killed
                .or_error(Operation::Exec, Phase::Channel)
                .map(|()| true),
        }
    }

    /// Starts a relay to PID 1. That it runs says nothing yet: the hello does.
    pub(crate) async fn attach(&self, call: &Call, id: &str) -> Result<Relay> {
        let id = ContainerId::new(id).map_err(unfit)?;
        let verb = ExecStream::new(id, GUEST, ["attach"]);
        let bounds = self.bounds(call);
        let opened = call
            .bound(self.inner.docker.open_stream(&bounds, verb))
            .await;
        let opened = opened.map_or_else(Asked::Interrupted, Asked::from);
        let (to, from, keep) = opened.or_error(Operation::Exec, Phase::Channel)?.split();
        Ok(Relay { from, to, keep })
    }
}

fn state(facts: &ContainerFacts) -> State {
    match facts.state.status.as_str() {
        "running" | "paused" => State::Running,
        "removing" | "restarting" => State::Changing,
        "created" => State::Unstarted,
        // One that had nothing to keep was made to be removed at its end.
        "exited" if !facts.remove_at_end => State::Stopped,
        _ => State::Lost,
    }
}

fn observed(facts: &ContainerFacts) -> Observed {
    let label = |key: &str| facts.labels.get(key).cloned();
    Observed {
        state: state(facts),
        owner: label(label::OWNER),
        key: label(label::KEY),
        kind: label(label::KIND),
        nonce: label(label::NONCE),
        definition: label(label::DEFINITION),
        protocol: label(label::PROTOCOL),
        id: facts.id.to_string(),
    }
}
