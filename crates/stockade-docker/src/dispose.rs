//! Removing sandboxes: found by their labels, known by their names, removed by
//! id.

use std::sync::Arc;

use futures_util::future::join_all;
use stockade::disposal::RemovalFailure;
use stockade::vocabulary::DisposalCode;
use stockade::{Call, Error, Kind, Operation, Phase, Removed, Result, SandboxKey, Which};

use crate::backend::Inner;
use crate::engine::{self, Described, Found};
use crate::ledger::{Labels, Target};
use crate::names::{self, Role, label};

/// What is to go.
struct Sought<'a> {
    /// What the engine is asked for.
    filters: Vec<(&'static str, String)>,
    /// Whose sandboxes, if they are of one key only.
    key: Option<&'a SandboxKey>,
    which: Which,
}

/// Every sandbox of a key, of one kind of it, or one instance. Two docker
/// commands for one sandbox of a kind that this process knows, whatever its
/// storage: the engine removes the work directory's volume with the last
/// container that has it.
pub(crate) async fn dispose(
    inner: &Arc<Inner>,
    call: &Call,
    key: &SandboxKey,
    which: Which,
) -> Result<Removed> {
    let with_calls = which == Which::AllWithCalls && !key.is_per_call();
    let mut filters = if with_calls {
        vec![(label::AGENT, names::agent_label(key))]
    } else {
        vec![(label::KEY, names::key_label(key))]
    };
    if let Which::Kind(kind) = &which {
        filters.push((label::KIND, kind.as_str().to_owned()));
    }
    let key = (!with_calls).then_some(key);
    sought(
        inner,
        call,
        Sought {
            filters,
            key,
            which,
        },
    )
    .await
}

/// Every sandbox of a conversation, those of its calls included.
pub(crate) async fn dispose_scope(
    inner: &Arc<Inner>,
    call: &Call,
    scope: &str,
    thread: &str,
) -> Result<Removed> {
    let conversation = names::conversation_label(scope, thread);
    let filters = vec![(label::CONVERSATION, conversation)];
    let which = Which::All;
    let key = None;
    sought(
        inner,
        call,
        Sought {
            filters,
            key,
            which,
        },
    )
    .await
}

/// Waits for what is being undone, and tries once more what could not be
/// removed; sandboxes that callers acquired stay.
pub(crate) async fn close(inner: &Arc<Inner>, call: &Call) -> Result<Removed> {
    let mut removed = {
        let _phase = call.enter(Phase::Undo);
        inner.engine.settle(call).await
    };
    let owed = inner.ledger.owed(|_| true);
    removed.merge(remove(inner, call, owed).await);
    Ok(removed)
}

/// A list that cannot be had is a failure beside what was removed all the
/// same; an error only when the call is over.
async fn sought(inner: &Arc<Inner>, call: &Call, sought: Sought<'_>) -> Result<Removed> {
    let mut removed = Removed::default();
    let mut targets = match sought.find(inner, call).await {
        Ok(targets) => targets,
        Err(error) if call.interruption().is_some() => return Err(error),
        Err(error) => {
            let what = "the list of sandboxes";
            let failure = RemovalFailure::new(DisposalCode::Unlisted, what, error.to_string());
            removed.failures.push(failure);
            sought.known(inner, call, &mut removed.failures).await
        }
    };
    for owed in inner.ledger.owed(|labels| sought.picks(labels)) {
        if !targets.iter().any(|target| target.id == owed.id) {
            targets.push(owed);
        }
    }
    if let Which::Instance(id) = &sought.which {
        targets.retain(|target| target.id == id.as_str());
    }
    let spared = targets.is_empty() || sought.key.is_none();
    removed.merge(remove(inner, call, targets).await);
    if spared && !matches!(sought.which, Which::Instance(_)) {
        leftovers(inner, call, &sought.filters, &mut removed).await;
    }
    Ok(removed)
}

impl Sought<'_> {
    /// What the engine has.
    async fn find(&self, inner: &Arc<Inner>, call: &Call) -> Result<Vec<Target>> {
        let _phase = call.enter(Phase::Observe);
        let engine = &inner.engine;
        let found = engine.find(call, &self.filters).await?;
        let (mut targets, mut unknown) = (Vec::new(), Vec::new());
        for found in found {
            match self.recognise(inner, &found) {
                Some(target) => targets.push(target),
                None => unknown.push(found),
            }
        }
        // Of a kind that this process has not seen, or a stranger with labels
        // that its image has, or labels that lie: all of them tell.
        for described in engine.describe(call, unknown).await? {
            let target = target(engine.owner(), described);
            targets.extend(target.filter(|target| self.picks(&target.labels)));
        }
        Ok(targets)
    }

    /// What it is, if its name says so: the filters hold for it, and no other
    /// container can have that name.
    fn recognise(&self, inner: &Arc<Inner>, found: &Found) -> Option<Target> {
        let key = self.key?;
        self.kinds(inner).into_iter().find_map(|kind| {
            let sandbox = names::container(inner.engine.owner(), key, &kind);
            let role = names::role_beside(&sandbox, &found.name)?;
            Some(Target {
                id: found.id.clone(),
                role,
                labels: labels_of(key, &kind),
            })
        })
    }

    /// What stands under the names that this process knows, when the engine
    /// gives no list.
    async fn known(
        &self,
        inner: &Arc<Inner>,
        call: &Call,
        failures: &mut Vec<RemovalFailure>,
    ) -> Vec<Target> {
        let Some(key) = self.key else {
            return Vec::new();
        };
        let _phase = call.enter(Phase::Observe);
        let mut targets = Vec::new();
        for kind in self.kinds(inner) {
            let labels = labels_of(key, &kind);
            let name = names::container(inner.engine.owner(), key, &kind);
            match inner.engine.observe(call, &name).await {
                Ok(Some(seen)) => {
                    let ours = seen.owner.as_deref() == Some(inner.engine.owner())
                        && seen.key.as_deref() == Some(&labels.key)
                        && seen.kind.as_deref() == Some(&labels.kind);
                    let role = Role::Guest;
                    let id = seen.id;
                    targets.extend(ours.then_some(Target { id, role, labels }));
                }
                Ok(None) => {}
                Err(error) => {
                    let code = engine::disposal_code(&error);
                    failures.push(RemovalFailure::new(code, name, error.to_string()));
                }
            }
        }
        targets
    }

    fn kinds(&self, inner: &Arc<Inner>) -> Vec<Kind> {
        match &self.which {
            Which::Kind(kind) => vec![kind.clone()],
            _ => inner.kinds.seen(),
        }
    }

    /// The same question as the filters', asked of what failed to go.
    fn picks(&self, labels: &Labels) -> bool {
        self.filters.iter().all(|(key, value)| {
            let own = match *key {
                label::KEY => &labels.key,
                label::AGENT => &labels.agent,
                label::CONVERSATION => &labels.conversation,
                _ => &labels.kind,
            };
            own == value
        })
    }
}

fn labels_of(key: &SandboxKey, kind: &Kind) -> Labels {
    Labels {
        key: names::key_label(key),
        agent: names::agent_label(key),
        conversation: names::conversation_label(&key.scope, &key.thread_id),
        kind: kind.as_str().to_owned(),
    }
}

/// A container as something to remove; `None` when it is not the owner's.
/// Whose it is follows from its key alone, whatever its other labels say.
pub(crate) fn target(owner: &str, described: Described) -> Option<Target> {
    let Described { found, labels, .. } = described;
    let role = names::role(owner, &found.name, &labels)?;
    let label = |key: &str| labels.get(key).map(String::as_str);
    // A probe has no key, and may inherit one from the image that it looks into.
    let key = label(label::KEY).filter(|_| role != Role::Probe);
    let key = key.and_then(names::key_of);
    let kind = label(label::KIND).and_then(|kind| kind.parse().ok());
    let labels = key.zip(kind).map(|(key, kind)| labels_of(&key, &kind));
    Some(Target {
        id: found.id,
        role,
        labels: labels.unwrap_or_default(),
    })
}

/// Removes each, in use or not, and counts the sandboxes; one failure never
/// keeps the others, and is tried again by whoever removes next.
pub(crate) async fn remove(inner: &Arc<Inner>, call: &Call, targets: Vec<Target>) -> Removed {
    let _phase = call.enter(Phase::Dispose);
    let mut removed = Removed::default();
    for target in &targets {
        inner.bury(&target.id, "it was disposed of");
    }
    let removals = targets.into_iter().map(async |target| {
        let result = inner
            .engine
            .remove(call, Operation::Dispose, &target.id)
            .await;
        (target, result)
    });
    for (target, result) in join_all(removals).await {
        match result {
            Ok(()) => {
                inner.ledger.forget(&target.id);
                removed.count += u64::from(target.role == Role::Guest);
            }
            Err(error) => {
                inner.ledger.note(&target);
                removed.failures.push(failure(&target.id, &error));
            }
        }
    }
    removed
}

/// A sandbox that ended without us takes its volume along, unless somebody
/// removed it by hand or the daemon ended under it: then its volume is found
/// by the same labels.
async fn leftovers(
    inner: &Arc<Inner>,
    call: &Call,
    filters: &[(&str, String)],
    removed: &mut Removed,
) {
    let engine = &inner.engine;
    let found = async {
        let names = engine.volumes(call, filters).await?;
        engine.describe_volumes(call, names).await
    };
    match found.await {
        Ok(volumes) => {
            let ours = volumes
                .iter()
                .filter(|volume| is_work_volume(engine.owner(), volume));
            for volume in ours {
                let (name, failures) = (&volume.found.name, &mut removed.failures);
                remove_volume(inner, call, Operation::Dispose, name, failures).await;
            }
        }
        Err(error) => removed.failures.push(RemovalFailure::new(
            DisposalCode::Unlisted,
            "the list of volumes",
            error.to_string(),
        )),
    }
}

/// Whether a volume is a sandbox's work directory. The engine has named it:
/// what somebody has named is somebody's, whatever its labels say.
pub(crate) fn is_work_volume(owner: &str, volume: &Described) -> bool {
    names::is_work_volume(owner, &volume.found.name, &volume.labels)
}

/// Removes a volume that no container uses; whether it did.
pub(crate) async fn remove_volume(
    inner: &Arc<Inner>,
    call: &Call,
    operation: Operation,
    name: &str,
    failures: &mut Vec<RemovalFailure>,
) -> bool {
    match inner.engine.remove_volume(call, operation, name).await {
        Ok(gone) => gone,
        Err(error) => {
            failures.push(failure(name, &error));
            false
        }
    }
}

pub(crate) fn failure(what: &str, error: &Error) -> RemovalFailure {
    let said = match error.detail().trim() {
        "" => error.to_string(),
        detail => format!("{error}: {detail}"),
    };
    RemovalFailure::new(engine::disposal_code(error), what, said)
}
