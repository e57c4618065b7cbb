//! That what is removed is gone, and nothing else.

use stockade::{InstanceId, Removed, Sandbox, SandboxKey, Which};

use crate::probe::{Verdict, demand, probes};
use crate::site::{Bench, OTHER_THREAD};

probes! { OnBench;
    what_is_disposed_of_is_gone: "a sandbox that lives on holds its secrets, its processes and its price";
    disposing_twice_is_no_failure: "who disposes wants it gone, and gone it is";
    siblings_survive: "a removal must never take a neighbour's";
    another_instance_is_not_disposed_of: "who names an instance means that one, and not its successor";
    a_kind_is_disposed_of: "the kind is a part of the identity";
    a_conversation_is_disposed_of_whole: "what is left of a conversation is left for ever";
    other_conversations_survive: "a removal must never take a neighbour's";
}

async fn dispose(bench: &Bench, key: &SandboxKey, which: Which) -> Verdict<Removed> {
    let removed = bench.backend.dispose(&bench.call, key, which).await?;
    demand!(removed.is_clean(), "{:?}", removed.folded());
    Ok(removed)
}

fn instance(sandbox: &Sandbox) -> Which {
    Which::Instance(sandbox.id().clone())
}

async fn what_is_disposed_of_is_gone(bench: &Bench) -> Verdict {
    let key = bench.key("target");
    let sandbox = bench.acquire(&key).await?;
    let removed = dispose(bench, &key, instance(&sandbox)).await?;
    demand!(
        removed.count == 1,
        "{} are gone instead of 1",
        removed.count
    );
    is_gone(bench, &sandbox).await?;
    is_another(bench, &key, sandbox.id()).await
}

/// The handle reaches nothing any more.
async fn is_gone(bench: &Bench, sandbox: &Sandbox) -> Verdict {
    let at = bench.at(sandbox);
    let path = bench.spec.work_dir().to_string();
    let looked = bench.subject.look(&at, path.as_bytes()).await;
    demand!(looked.is_err(), "{} still answers", sandbox.id());
    Ok(())
}

/// The key has another sandbox, or none that was there before.
async fn is_another(bench: &Bench, key: &SandboxKey, old: &InstanceId) -> Verdict {
    let next = bench.acquire(key).await?;
    demand!(
        next.id() != old && next.freshly_created(),
        "{} is {} again, fresh: {}",
        next.id(),
        old,
        next.freshly_created()
    );
    Ok(())
}

async fn is_still_there(bench: &Bench, key: &SandboxKey, sandbox: &Sandbox) -> Verdict {
    let at = bench.at(sandbox);
    let path = bench.spec.work_dir().to_string();
    let looked = bench.subject.look(&at, path.as_bytes()).await?;
    demand!(looked.is_some(), "{} has no work directory", sandbox.id());
    let again = bench.acquire(key).await?;
    demand!(
        again.id() == sandbox.id() && !again.freshly_created(),
        "{} was replaced by {}",
        sandbox.id(),
        again.id()
    );
    Ok(())
}

async fn disposing_twice_is_no_failure(bench: &Bench) -> Verdict {
    let key = bench.key("target");
    let sandbox = bench.acquire(&key).await?;
    for count in [1, 0] {
        let removed = dispose(bench, &key, instance(&sandbox)).await?;
        demand!(
            removed.count == count,
            "{} are gone instead of {count}",
            removed.count
        );
    }
    let removed = dispose(bench, &key, Which::All).await?;
    demand!(removed.count == 0, "{} more are gone", removed.count);
    Ok(())
}

/// Neighbours of a target: other agents of its conversation, and its own
/// agent in another one.
fn sibling_keys(bench: &Bench) -> [SandboxKey; 3] {
    let target = bench.key("target");
    let elsewhere = SandboxKey::new(&target.scope, OTHER_THREAD, &target.agent_id);
    [bench.key("targe"), bench.key("target-2"), elsewhere]
}

async fn siblings_survive(bench: &Bench) -> Verdict {
    let keys = sibling_keys(bench);
    let mut siblings = Vec::new();
    for key in &keys {
        siblings.push(bench.acquire(key).await?);
    }
    let key = bench.key("target");
    let target = bench.acquire(&key).await?;
    for _ in 0..2 {
        let _counted = dispose(bench, &key, instance(&target)).await?;
    }
    let _counted = dispose(bench, &key, Which::All).await?;
    for (key, sibling) in keys.iter().zip(&siblings) {
        is_still_there(bench, key, sibling).await?;
    }
    is_gone(bench, &target).await
}

async fn another_instance_is_not_disposed_of(bench: &Bench) -> Verdict {
    let key = bench.key("target");
    let first = bench.acquire(&key).await?;
    let _counted = dispose(bench, &key, instance(&first)).await?;
    let second = bench.acquire(&key).await?;
    let removed = dispose(bench, &key, instance(&first)).await?;
    demand!(removed.count == 0, "{} are gone", removed.count);
    is_still_there(bench, &key, &second).await
}

async fn a_kind_is_disposed_of(bench: &Bench) -> Verdict {
    let key = bench.key("target");
    let sandbox = bench.acquire(&key).await?;
    let kind = bench.spec.kind().clone();
    let removed = dispose(bench, &key, Which::Kind(kind)).await?;
    demand!(
        removed.count == 1,
        "{} are gone instead of 1",
        removed.count
    );
    is_gone(bench, &sandbox).await
}

/// Two sandboxes of the other conversation, whose agents are this probe's.
async fn conversation(bench: &Bench) -> Verdict<Vec<Sandbox>> {
    let mut sandboxes = Vec::new();
    for agent in ["one", "two"] {
        let key = SandboxKey::new(&bench.scope, OTHER_THREAD, agent);
        sandboxes.push(bench.acquire(&key).await?);
    }
    Ok(sandboxes)
}

async fn empty(bench: &Bench, thread: &str) -> Verdict<u64> {
    let removed = bench
        .backend
        .dispose_scope(&bench.call, &bench.scope, thread);
    let removed = removed.await?;
    demand!(removed.is_clean(), "{:?}", removed.folded());
    Ok(removed.count)
}

async fn a_conversation_is_disposed_of_whole(bench: &Bench) -> Verdict {
    empty(bench, OTHER_THREAD).await?;
    let sandboxes = conversation(bench).await?;
    let count = empty(bench, OTHER_THREAD).await?;
    demand!(count == 2, "{count} are gone instead of 2");
    for sandbox in &sandboxes {
        is_gone(bench, sandbox).await?;
    }
    Ok(())
}

async fn other_conversations_survive(bench: &Bench) -> Verdict {
    let key = bench.key("sibling");
    let sibling = bench.acquire(&key).await?;
    let _others = conversation(bench).await?;
    empty(bench, OTHER_THREAD).await?;
    is_still_there(bench, &key, &sibling).await
}
