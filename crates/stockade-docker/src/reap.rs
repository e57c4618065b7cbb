//! Reaping: an inventory first, whole or not at all, and then only what it
//! shows and nobody uses (docs/lifecycle.md).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use stockade::disposal::RemovalFailure;
use stockade::vocabulary::DisposalCode;
use stockade::{Call, Operation, Phase, ReapFilter, Reaped, Result};

use crate::backend::Inner;
use crate::decide::{State, UNSTARTED};
use crate::dispose::{failure, is_work_volume, remove, remove_volume, target};
use crate::engine::Described;
use crate::ledger::Target;
use crate::names::{self, Role, label};
use crate::retire::{Retirement, retire};

/// Longer than any part of a sandbox is there before the sandbox itself: the
/// filling of a runtime volume takes two docker commands at most.
pub(crate) const MAKING: Duration = Duration::from_secs(150);

/// A container with its age.
struct Member {
    target: Target,
    state: State,
    /// Zero for what claims to be made in the future, or does not tell.
    age: Duration,
}

/// A sandbox and its parts, or what is left of one.
type Group = Vec<Member>;

/// What became of a group.
#[derive(Default)]
struct Outcome {
    sandboxes: u64,
    others: u64,
    kept: u64,
    failures: Vec<RemovalFailure>,
}

/// Removes what the filter picks. An inventory that cannot be read whole is
/// an error, and nothing is removed then.
pub(crate) async fn reap(inner: &Arc<Inner>, call: &Call, filter: &ReapFilter) -> Result<Reaped> {
    let now = inner.engine.now(call, Operation::Reap).await?;
    let groups = groups(inner, call, now).await?;
    let volumes = volumes(inner, call, now).await?;
    let picked = groups.into_values().filter(|group| picks(filter, group));
    let outcomes = picked.map(|group| reap_group(inner, call, filter, group));
    let mut reaped = Reaped::default();
    for outcome in join_all(outcomes).await {
        reaped.sandboxes += outcome.sandboxes;
        reaped.others += outcome.others;
        reaped.kept += outcome.kept;
        reaped.failures.extend(outcome.failures);
    }
    for (volume, age) in volumes {
        let making = !filter.in_use && age < MAKING;
        if picks_part(filter, &volume.labels, age) && !making {
            let name = &volume.found.name;
            let failures = &mut reaped.failures;
            let gone = remove_volume(inner, call, Operation::Reap, name, failures).await;
            reaped.others += u64::from(gone);
        }
    }
    Ok(reaped)
}

/// Every container of this owner, by the sandbox that it is a part of.
async fn groups(
    inner: &Arc<Inner>,
    call: &Call,
    now: SystemTime,
) -> Result<BTreeMap<String, Group>> {
    let _phase = call.enter(Phase::Observe);
    let engine = &inner.engine;
    let found = engine.find(call, &[]).await?;
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for described in engine.describe(call, found).await? {
        let name = names::group(&described.found.name).to_owned();
        let (state, age) = (described.state, age(&described, now));
        if let Some(target) = target(engine.owner(), described) {
            let member = Member { target, state, age };
            groups.entry(name).or_default().push(member);
        }
    }
    Ok(groups)
}

/// Every volume of this owner that is a sandbox's. One that is in use goes
/// with its sandbox; runtime volumes are for a prune.
async fn volumes(
    inner: &Arc<Inner>,
    call: &Call,
    now: SystemTime,
) -> Result<Vec<(Described, Duration)>> {
    let _phase = call.enter(Phase::Observe);
    let engine = &inner.engine;
    let found = engine.volumes(call, &[]).await?;
    let described = engine.describe_volumes(call, found).await?;
    let with_age = described.into_iter().map(|volume| {
        let age = age(&volume, now);
        (volume, age)
    });
    Ok(with_age
        .filter(|(volume, _)| is_work_volume(engine.owner(), volume))
        .collect())
}

fn age(described: &Described, now: SystemTime) -> Duration {
    let since = described.created.map(|created| now.duration_since(created));
    since.and_then(Result::ok).unwrap_or_default()
}

/// Whether a group has the age and the scope that the filter asks for. Its
/// age is that of its oldest part.
fn picks(filter: &ReapFilter, group: &Group) -> bool {
    let age = group.iter().map(|member| member.age).max();
    let scope = group
        .first()
        .and_then(|member| scope(&member.target.labels.key));
    picks_by(filter, age.unwrap_or_default(), scope.as_deref())
}

fn picks_part(filter: &ReapFilter, labels: &BTreeMap<String, String>, age: Duration) -> bool {
    let scope = labels.get(label::KEY).and_then(|key| scope(key));
    picks_by(filter, age, scope.as_deref()) && filter.idle_for.is_none_or(|idle| age >= idle)
}

fn picks_by(filter: &ReapFilter, age: Duration, scope: Option<&str>) -> bool {
    filter.older_than.is_none_or(|least| age >= least)
        && filter
            .scope
            .as_deref()
            .is_none_or(|wanted| scope == Some(wanted))
}

fn scope(key: &str) -> Option<String> {
    names::key_of(key).map(|key| key.scope)
}

async fn reap_group(inner: &Arc<Inner>, call: &Call, filter: &ReapFilter, group: Group) -> Outcome {
    let mut outcome = Outcome::default();
    let is_guest = |member: &Member| member.target.role == Role::Guest;
    let (guests, others): (Vec<_>, Vec<_>) = group.into_iter().partition(is_guest);
    for guest in guests {
        if !may_go(inner, call, filter, &guest, &mut outcome).await {
            // Its parts are in use with it.
            return outcome;
        }
    }
    let young = |member: &Member| !filter.in_use && member.age < MAKING;
    let idle = |member: &Member| filter.idle_for.is_none_or(|idle| member.age >= idle);
    let gone = others
        .into_iter()
        .filter(|member| !young(member) && idle(member));
    let gone: Vec<_> = gone.map(|member| member.target).collect();
    let all = gone.len() as u64;
    let removed = remove(inner, call, gone).await;
    outcome.others += all - removed.failures.len() as u64;
    outcome.failures.extend(removed.failures);
    outcome
}

/// Removes a sandbox that nobody uses, or that may go all the same. False
/// when it is there still.
async fn may_go(
    inner: &Arc<Inner>,
    call: &Call,
    filter: &ReapFilter,
    guest: &Member,
    outcome: &mut Outcome,
) -> bool {
    let idle_for = filter.idle_for.unwrap_or_default();
    match guest.state {
        State::Running if !filter.in_use || filter.idle_for.is_some() => {
            let id = &guest.target.id;
            let asked = retire(&inner.engine, call, Operation::Reap, id, idle_for).await;
            match asked {
                Ok(Retirement::Ended) => return gone(inner, call, guest, outcome).await,
                Ok(Retirement::Busy) => {
                    outcome.kept += 1;
                    return false;
                }
                Ok(Retirement::Silent(why)) => {
                    let detail = format!(
                        "whether it is in use cannot be told ({why}); reap what is in use as well to remove it"
                    );
                    let failure = RemovalFailure::new(DisposalCode::Refused, id, detail);
                    outcome.failures.push(failure);
                    outcome.kept += 1;
                    return false;
                }
                Err(error) => {
                    outcome.failures.push(failure(id, &error));
                    return false;
                }
            }
        }
        State::Unstarted if !filter.in_use && guest.age < UNSTARTED => {
            outcome.kept += 1;
            return false;
        }
        // Ended: the engine refuses to remove it if somebody starts it now.
        State::Stopped | State::Unstarted | State::Lost if !filter.in_use => {
            return gone(inner, call, guest, outcome).await;
        }
        _ => {}
    }
    let removed = remove(inner, call, vec![guest.target.clone()]).await;
    outcome.sandboxes += removed.count;
    let gone = removed.failures.is_empty();
    outcome.failures.extend(removed.failures);
    gone
}

/// Removes one that has ended, or is about to, unless somebody starts it
/// again. False when it is there still.
async fn gone(inner: &Arc<Inner>, call: &Call, guest: &Member, outcome: &mut Outcome) -> bool {
    let id = &guest.target.id;
    let _phase = call.enter(Phase::Dispose);
    match inner.engine.remove_retired(call, Operation::Reap, id).await {
        Ok(true) => {
            inner.bury(id, "it was reaped");
            outcome.sandboxes += 1;
            true
        }
        Ok(false) => {
            outcome.kept += 1;
            false
        }
        Err(error) => {
            outcome.failures.push(failure(id, &error));
            false
        }
    }
}
