//! Removing sandboxes: found by their labels, removed by id.

use std::sync::Arc;

use futures_util::future::join_all;
use stockade::disposal::RemovalFailure;
use stockade::{
    Call, Error, ErrorKind, Operation, Phase, ReapFilter, Reaped, Removed, Result, SandboxKey,
    Which,
};

use crate::backend::Inner;
use crate::engine::{self, Described, Found};
use crate::names::{self, label};

/// Every sandbox of a key, of one kind of it, or one instance. Two docker
/// commands for one sandbox, whatever its storage: the engine removes the
/// work directory's volume with the last container that has it.
pub(crate) async fn dispose(
    inner: &Arc<Inner>,
    call: &Call,
    key: &SandboxKey,
    which: Which,
) -> Result<Removed> {
    let mut filters = vec![(label::KEY, names::key_label(key))];
    if let Which::Kind(kind) = &which {
        filters.push((label::KIND, kind.as_str().to_owned()));
    }
    let mut found = find(inner, call, &filters).await?;
    if let Which::Instance(id) = &which {
        found.retain(|found| found.id == id.as_str());
    } else if found.is_empty() {
        let mut removed = Removed::default();
        leftovers(inner, call, &filters, &mut removed).await?;
        return Ok(removed);
    }
    Ok(remove(inner, call, &found).await)
}

/// A sandbox that ended without us takes its volume along, unless somebody
/// removed it by hand or the daemon ended under it: then its volume is found
/// by the same labels.
async fn leftovers(
    inner: &Arc<Inner>,
    call: &Call,
    filters: &[(&str, String)],
    removed: &mut Removed,
) -> Result<()> {
    for volume in inner.engine.volumes(call, filters).await? {
        remove_volume(inner, call, &volume, &mut removed.failures).await;
    }
    Ok(())
}

/// Removes a volume that no container uses; whether it did.
async fn remove_volume(
    inner: &Arc<Inner>,
    call: &Call,
    name: &str,
    failures: &mut Vec<RemovalFailure>,
) -> bool {
    match inner.engine.remove_volume(call, name).await {
        Ok(gone) => gone,
        Err(error) => {
            let code = engine::disposal_code(&error);
            failures.push(RemovalFailure::new(code, name, error.to_string()));
            false
        }
    }
}

/// Every sandbox of a conversation, those of its calls included.
pub(crate) async fn dispose_scope(
    inner: &Arc<Inner>,
    call: &Call,
    scope: &str,
    thread: &str,
) -> Result<Removed> {
    let filters = [(
        label::CONVERSATION,
        names::conversation_label(scope, thread),
    )];
    let found = find(inner, call, &filters).await?;
    let mut removed = remove(inner, call, &found).await;
    if let Err(error) = leftovers(inner, call, &filters, &mut removed).await {
        let code = engine::disposal_code(&error);
        let failure = RemovalFailure::new(code, "volumes", error.to_string());
        removed.failures.push(failure);
    }
    Ok(removed)
}

/// What was made longer ago than the filter says, or all; probes whose host
/// died are among it, and volumes that were left alone. An inventory that cannot be read removes nothing.
///
/// Idleness is known inside a sandbox only, and ends it there; a filter that
/// asks for it is refused until it can be read from outside.
pub(crate) async fn reap(inner: &Arc<Inner>, call: &Call, filter: &ReapFilter) -> Result<Reaped> {
    if filter.idle_for.is_some() {
        return Err(Error::new(ErrorKind::InvalidRequest, Operation::Reap)
            .message("reaping by idleness is not served yet; leave it out: an idle sandbox ends by itself")
            .build());
    }
    let found = find(inner, call, &[]).await?;
    let described = inner.engine.describe(call, found).await?;
    let (guests, others): (Vec<_>, Vec<_>) = described
        .into_iter()
        .filter(|one| matches(one, filter))
        .partition(|one| {
            one.labels
                .get(label::ROLE)
                .is_some_and(|role| role == "guest")
        });
    let mut reaped = Reaped::default();
    let removed = remove(inner, call, &ids(&guests)).await;
    reaped.sandboxes = removed.count;
    reaped.failures = removed.failures;
    let removed = remove(inner, call, &ids(&others)).await;
    let failed = u64::try_from(removed.failures.len()).unwrap_or(u64::MAX);
    let all = u64::try_from(others.len()).unwrap_or(u64::MAX);
    reaped.others = all.saturating_sub(failed);
    reaped.failures.extend(removed.failures);
    reap_volumes(inner, call, filter, &mut reaped).await?;
    Ok(reaped)
}

/// Volumes whose sandbox is gone. One that is in use is its sandbox's, and
/// goes with it.
async fn reap_volumes(
    inner: &Arc<Inner>,
    call: &Call,
    filter: &ReapFilter,
    reaped: &mut Reaped,
) -> Result<()> {
    let names = inner.engine.volumes(call, &[]).await?;
    let volumes = inner.engine.describe_volumes(call, names).await?;
    for volume in volumes.iter().filter(|volume| matches(volume, filter)) {
        let gone = remove_volume(inner, call, &volume.found.id, &mut reaped.failures).await;
        reaped.others += u64::from(gone);
    }
    Ok(())
}

fn matches(one: &Described, filter: &ReapFilter) -> bool {
    let created = one
        .labels
        .get(label::CREATED)
        .and_then(|text| text.parse::<u128>().ok());
    let old = filter.older_than.is_none_or(|age| {
        // A label that lies about its age is nobody's sandbox to keep.
        created.is_none_or(|created| names::now_millis().saturating_sub(created) >= age.as_millis())
    });
    let scope = one
        .labels
        .get(label::KEY)
        .and_then(|key| names::scope_of(key));
    old && (filter.scope.is_none() || filter.scope == scope)
}

fn ids(described: &[Described]) -> Vec<Found> {
    described.iter().map(|one| one.found.clone()).collect()
}

/// Waits for what is being undone; nothing is removed that is not.
pub(crate) async fn close(inner: &Arc<Inner>, call: &Call) -> Result<Removed> {
    let _phase = call.enter(Phase::Undo);
    Ok(inner.engine.settle(call).await)
}

async fn find(inner: &Arc<Inner>, call: &Call, filters: &[(&str, String)]) -> Result<Vec<Found>> {
    let _phase = call.enter(Phase::Observe);
    inner.engine.find(call, filters).await
}

/// Removes each, and counts the sandboxes; one failure never keeps the others.
async fn remove(inner: &Arc<Inner>, call: &Call, found: &[Found]) -> Removed {
    let _phase = call.enter(Phase::Dispose);
    let mut removed = Removed::default();
    for one in found {
        inner.bury(&one.id, "it was disposed of");
    }
    let removals = found
        .iter()
        .map(async |one| (one, inner.engine.remove(call, &one.id).await));
    for (one, result) in join_all(removals).await {
        match result {
            Ok(()) => removed.count += u64::from(one.is_sandbox),
            Err(error) => {
                let code = engine::disposal_code(&error);
                let failure = RemovalFailure::new(code, one.id.as_str(), error.to_string());
                removed.failures.push(failure);
            }
        }
    }
    removed
}
