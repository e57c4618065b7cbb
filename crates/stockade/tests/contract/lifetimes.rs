//! Calls, and sandboxes from acquire to removal.

use std::time::Duration;

use stockade::exec::Background;
use stockade::memory::MemoryBackend;
use stockade::vocabulary::EgressMode;
use stockade::{
    Backend, Call, Declarations, ErrorKind, ExecRequest, Image, Interruption, IsolationScope, Kind,
    Phase, ReapFilter, Refusal, Sandbox, SandboxKey, SandboxSpec, Which,
};

use crate::{acquire, builder, call, key, spec};

fn hanging() -> MemoryBackend {
    MemoryBackend::new().with_program("hang", async |_| std::future::pending().await)
}

fn hang() -> ExecRequest {
    let request = ExecRequest::argv(["hang"]).timeout(Duration::from_secs(7 * 24 * 3600));
    request.build().expect("the request is valid")
}

async fn dispose(backend: &MemoryBackend, key: &SandboxKey, which: Which) -> u64 {
    let removed = backend
        .dispose(&call(), key, which)
        .await
        .expect("it answers");
    assert!(removed.is_clean());
    removed.count
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_child_is_never_longer_than_its_parent_and_ends_with_it() {
    let parent = Call::with_timeout(seconds(10));
    let (short, long) = (parent.child(seconds(4)), parent.child(seconds(60)));
    assert_eq!(short.remaining(), seconds(4));
    assert_eq!(long.deadline(), parent.deadline());
    assert_eq!(short.id(), parent.id());
    short.cancel();
    assert!(short.is_cancelled() && !parent.is_cancelled() && !long.is_cancelled());
    parent.cancel();
    assert_eq!(long.interrupted().await, Interruption::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_absolute_and_is_no_cancellation() {
    let call = Call::with_timeout(seconds(10));
    tokio::time::sleep(seconds(6)).await;
    assert_eq!(call.remaining(), seconds(4));
    assert_eq!(call.interruption(), None);
    assert_eq!(call.interrupted().await, Interruption::DeadlinePassed);
    assert_eq!(call.elapsed(), seconds(10));
    assert_eq!(
        (call.remaining(), call.is_cancelled()),
        (Duration::ZERO, false)
    );
    call.cancel();
    assert_eq!(call.interruption(), Some(Interruption::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_bound_future_that_is_done_wins() {
    let over = Call::with_timeout(Duration::ZERO);
    assert_eq!(over.bound(async { 1 }).await, Ok(1));
    let call = Call::with_timeout(seconds(1));
    let never = call.bound(std::future::pending::<()>());
    assert_eq!(never.await, Err(Interruption::DeadlinePassed));
}

#[tokio::test]
async fn the_longest_time_is_no_overflow() {
    let call = Call::with_timeout(Duration::MAX);
    assert!(call.remaining() > seconds(3600 * 24 * 365));
    assert!(call.child(Duration::MAX).remaining() > seconds(3600 * 24 * 365));
}

#[tokio::test]
async fn ids_of_calls_differ() {
    assert_ne!(call().id(), call().id());
}

#[tokio::test(start_paused = true)]
async fn the_phase_clock_counts_each_phase_in_order_also_of_children() {
    let call = call();
    let create = call.enter(Phase::Create);
    tokio::time::advance(seconds(2)).await;
    assert_eq!(call.phase(), Some(Phase::Create));
    let child = call.child(seconds(60));
    let pull = child.enter(Phase::Pull);
    tokio::time::advance(seconds(3)).await;
    assert_eq!(call.phase(), Some(Phase::Pull));
    drop(pull);
    drop(child.enter(Phase::Pull));
    let times = call.phases();
    drop(create);
    assert_eq!(call.phase(), None);
    let seen: Vec<_> = times
        .iter()
        .map(|time| (time.phase, time.entered, time.took))
        .collect();
    assert_eq!(
        seen,
        [(Phase::Create, 1, seconds(5)), (Phase::Pull, 2, seconds(3))]
    );
    assert_eq!(times[1].first_entered, seconds(2));
}

#[tokio::test]
async fn one_key_and_kind_is_one_sandbox() {
    let backend = hanging();
    let (one, two) = (acquire(&backend).await, acquire(&backend).await);
    assert_eq!(one.id(), two.id());
    assert!(one.freshly_created() && !two.freshly_created());
    let other = SandboxSpec::builder("other")
        .image(Image::reference("x"))
        .build()
        .unwrap();
    let three = backend.acquire(&call(), &key(), &other).await.unwrap();
    assert_ne!(one.id(), three.id());
    assert!(three.freshly_created());
    assert_eq!(backend.sandboxes(), 2);
}

#[tokio::test]
async fn a_call_has_a_sandbox_of_its_own_when_it_asks_for_one() {
    let backend = hanging();
    let per_call = builder()
        .isolation_scope(IsolationScope::Call)
        .build()
        .unwrap();
    let of_call = key().with_call("1");
    backend.acquire(&call(), &of_call, &per_call).await.unwrap();
    acquire(&backend).await;
    assert_eq!(backend.sandboxes(), 2);
    let error = backend
        .acquire(&call(), &key(), &per_call)
        .await
        .unwrap_err();
    assert_eq!(
        error.refusal().map(Refusal::code),
        Some("key_scope_mismatch")
    );
    assert_eq!(dispose(&backend, &key(), Which::All).await, 1);
    assert_eq!(backend.sandboxes(), 1, "the call's own is another key's");
}

#[tokio::test]
async fn drift_replaces_what_nobody_uses_and_refuses_the_rest() {
    let backend = hanging();
    let changed = builder().env([("A", "b")]).build().unwrap();
    let old = acquire(&backend).await;
    let error = backend
        .acquire(&call(), &key(), &changed)
        .await
        .unwrap_err();
    let fields = vec!["env".to_owned()];
    assert_eq!(error.refusal(), Some(&Refusal::Drifted { fields }));
    let id = old.id().clone();
    drop(old);
    let new = backend.acquire(&call(), &key(), &changed).await.unwrap();
    assert!(new.freshly_created() && *new.id() != id);
    assert_eq!(backend.sandboxes(), 1);
}

#[tokio::test]
async fn a_running_command_is_a_use() {
    let backend = hanging();
    let sandbox = acquire(&backend).await;
    let process = sandbox.spawn(&call(), hang()).await.unwrap();
    drop(sandbox);
    let changed = builder().env([("A", "b")]).build().unwrap();
    let acquired = backend.acquire(&call(), &key(), &changed).await;
    assert_eq!(
        acquired.unwrap_err().refusal().map(Refusal::code),
        Some("drifted")
    );
    drop(process);
}

#[tokio::test]
async fn what_is_not_admitted_makes_nothing() {
    let backend =
        hanging().with_declarations(Declarations::new().with_egress_modes([EgressMode::Allowlist]));
    let error = backend.acquire(&call(), &key(), &spec()).await.unwrap_err();
    assert_eq!(error.refusal(), backend.admit(&spec()).err().as_ref());
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test]
async fn a_call_that_is_over_acquires_nothing() {
    let backend = hanging();
    let cancelled = call();
    cancelled.cancel();
    let error = backend
        .acquire(&cancelled, &key(), &spec())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test]
async fn disposal_ends_what_runs_and_loses_the_handle() {
    let backend = hanging();
    let sandbox = acquire(&backend).await;
    let mut process = sandbox.spawn(&call(), hang()).await.unwrap();
    assert_eq!(dispose(&backend, &key(), Which::All).await, 1);
    assert_eq!(process.wait().await.unwrap_err().kind(), ErrorKind::Lost);
    let error = sandbox.exec(&call(), hang()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(
        dispose(&backend, &key(), Which::All).await,
        0,
        "gone is no failure"
    );
    assert!(acquire(&backend).await.freshly_created());
}

#[tokio::test]
async fn disposal_takes_a_kind_or_an_instance_alone() {
    let backend = hanging();
    let first = acquire(&backend).await;
    let other = SandboxSpec::builder("other")
        .image(Image::reference("x"))
        .build()
        .unwrap();
    backend.acquire(&call(), &key(), &other).await.unwrap();
    let kind = Kind::new("other").unwrap();
    assert_eq!(dispose(&backend, &key(), Which::Kind(kind)).await, 1);
    let elsewhere = SandboxKey::new("x", "y", "z");
    let instance = Which::Instance(first.id().clone());
    assert_eq!(dispose(&backend, &elsewhere, instance.clone()).await, 0);
    assert_eq!(dispose(&backend, &key(), instance).await, 1);
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test]
async fn a_scope_is_disposed_of_with_every_agent_call_and_kind() {
    let backend = hanging();
    let per_call = builder()
        .isolation_scope(IsolationScope::Call)
        .build()
        .unwrap();
    acquire(&backend).await;
    backend
        .acquire(&call(), &key().with_call("1"), &per_call)
        .await
        .unwrap();
    let agent = SandboxKey::new("scope", "thread", "other agent");
    backend.acquire(&call(), &agent, &spec()).await.unwrap();
    let neighbour = SandboxKey::new("scope", "other thread", "agent");
    backend.acquire(&call(), &neighbour, &spec()).await.unwrap();
    let removed = backend
        .dispose_scope(&call(), "scope", "thread")
        .await
        .unwrap();
    assert_eq!((removed.count, backend.sandboxes()), (3, 1));
}

async fn keep(backend: &MemoryBackend, scope: &str) -> Sandbox {
    let key = SandboxKey::new(scope, "thread", "agent");
    backend
        .acquire(&call(), &key, &spec())
        .await
        .expect("it is served")
}

#[tokio::test(start_paused = true)]
async fn reaping_takes_what_is_old_idle_and_of_the_scope() {
    let backend = hanging();
    drop(keep(&backend, "a").await);
    tokio::time::advance(seconds(60)).await;
    let used = keep(&backend, "b").await;
    drop(keep(&backend, "c").await);
    tokio::time::advance(seconds(10)).await;
    let reap = async |filter: ReapFilter| {
        let reaped = backend.reap(&call(), &filter).await.unwrap();
        assert!(reaped.is_clean() && reaped.others == 0);
        reaped.sandboxes
    };
    let filter = ReapFilter::everything;
    assert_eq!(reap(filter().older_than(seconds(100))).await, 0);
    assert_eq!(reap(filter().older_than(seconds(30)).scope("b")).await, 0);
    assert_eq!(reap(filter().older_than(seconds(30))).await, 1, "a");
    assert_eq!(
        reap(filter().idle_for(seconds(5))).await,
        1,
        "c; b has a handle"
    );
    assert_eq!(reap(filter().scope("b")).await, 1);
    assert_eq!(
        used.exec(&call(), hang()).await.unwrap_err().kind(),
        ErrorKind::Lost
    );
}

#[tokio::test(start_paused = true)]
async fn reaping_keeps_what_is_in_use_and_counts_it_unless_told_otherwise() {
    let backend = hanging();
    let used = keep(&backend, "a").await;
    drop(keep(&backend, "b").await);
    let reap = async |filter: ReapFilter| {
        let reaped = backend.reap(&call(), &filter).await.unwrap();
        (reaped.sandboxes, reaped.kept)
    };
    assert_eq!(reap(ReapFilter::default()).await, (1, 1));
    let idle = ReapFilter::default().idle_for(seconds(0));
    assert_eq!(reap(idle).await, (0, 1));
    assert_eq!(reap(ReapFilter::default().scope("b")).await, (0, 0));
    assert_eq!(reap(ReapFilter::everything()).await, (1, 0));
    drop(used);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_leaves_the_sandboxes_of_its_calls_unless_they_are_asked_for() {
    let backend = hanging();
    let conversation = acquire(&backend).await;
    let per_call = SandboxSpec::builder("python")
        .image(Image::reference("python"))
        .isolation_scope(IsolationScope::Call)
        .build()
        .unwrap();
    let make = async |key: SandboxKey| {
        let made = backend.acquire(&call(), &key, &per_call).await.unwrap();
        assert!(made.freshly_created());
    };
    let of_call = key().with_call("1");
    make(of_call.clone()).await;
    let mut other = key().with_call("1");
    other.agent_id.push('x');
    make(other.clone()).await;
    assert_eq!(dispose(&backend, &key(), Which::All).await, 1);
    assert_eq!(dispose(&backend, &of_call, Which::AllWithCalls).await, 1);
    make(of_call).await;
    assert_eq!(dispose(&backend, &key(), Which::AllWithCalls).await, 1);
    assert_eq!(
        dispose(&backend, &other, Which::All).await,
        1,
        "another agent's"
    );
    drop(conversation);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_ends_by_itself_when_nobody_is_there() {
    let backend = hanging();
    let sandbox = acquire(&backend).await;
    tokio::time::advance(seconds(2 * 3600)).await;
    assert_eq!(backend.sandboxes(), 1, "a handle keeps it");
    drop(sandbox);
    tokio::time::advance(seconds(30 * 60 - 1)).await;
    assert_eq!(backend.sandboxes(), 1);
    tokio::time::advance(seconds(1)).await;
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_ends_at_its_maximum_age_whoever_is_there() {
    let backend = hanging();
    let sandbox = acquire(&backend).await;
    let mut process = sandbox.spawn(&call(), hang()).await.unwrap();
    let started = tokio::time::Instant::now();
    assert_eq!(process.wait().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(started.elapsed(), seconds(24 * 3600));
    assert!(acquire(&backend).await.freshly_created());
}

#[tokio::test(start_paused = true)]
async fn kept_background_work_goes_on_until_its_sandbox_ends() {
    let (alive, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
    let backend = MemoryBackend::new().with_program("daemon", move |mut guest| {
        let alive = alive.clone();
        async move {
            guest.leave_running(async move {
                let _alive = alive;
                std::future::pending::<()>().await;
            });
            0
        }
    });
    let sandbox = acquire(&backend).await;
    let request = ExecRequest::argv(["daemon"])
        .background(Background::Keep)
        .build()
        .unwrap();
    assert!(sandbox.exec(&call(), request).await.unwrap().success());
    dispose(&backend, &key(), Which::All).await;
    drop((sandbox, backend));
    assert_eq!(dropped.recv().await, None);
}

#[tokio::test]
async fn closing_leaves_what_callers_acquired() {
    let backend = hanging();
    acquire(&backend).await;
    let removed = backend.close(&call()).await.unwrap();
    assert_eq!((removed.count, backend.sandboxes()), (0, 1));
}

#[tokio::test]
async fn a_sandbox_without_snapshots_cannot_be_reset() {
    let sandbox = acquire(&hanging()).await;
    let error = sandbox.reset(&call()).await.unwrap_err();
    assert_eq!(
        error.refusal().map(Refusal::code),
        Some("capability_missing")
    );
}
