//! The daemon goes away and comes back, with and without live-restore.
//!
//! Only a provisioned engine may be restarted; somebody's own is left alone,
//! and these tests then say that they did not run.

use std::time::Duration;

use stockade::{Backend as _, ErrorKind, ExecRequest, ExecStatus, ReapFilter};
use stockade_tests::engine::{Fixture, call, restart};

#[tokio::test]
async fn with_live_restore_the_sandbox_lives_and_a_new_channel_is_opened() {
    if !restart(&["--live-restore"]) {
        return;
    }
    let fixture = Fixture::python().await;
    fixture.sh("echo kept > /work/file").await;
    let request = ExecRequest::shell("echo begun; sleep 300").build().unwrap();
    let sandbox = fixture.sandbox.clone();
    let running = tokio::spawn(async move { sandbox.exec(&call(), request).await });
    fixture
        .sh("until pgrep -f '^sleep 300' > /dev/null; do sleep 0.05; done")
        .await;

    restart(&["--live-restore", "--kill"]);

    // The daemon's end is the channel's end, and that ends the command; the
    // sandbox and its files are still there.
    let outcome = running
        .await
        .unwrap()
        .expect("a lost channel is an outcome");
    assert_eq!(outcome.status, ExecStatus::SupervisorLost);
    assert_eq!(outcome.stdout, "begun\n");
    assert_eq!(
        fixture
            .sh("cat /work/file; pgrep -c -f '^sleep 300'")
            .await
            .stdout,
        "kept\n0\n"
    );
    fixture.close().await;
    restart(&["--no-live-restore"]);
}

#[tokio::test]
async fn without_live_restore_the_sandbox_is_gone_and_the_next_acquire_is_fresh() {
    if !restart(&["--no-live-restore"]) {
        return;
    }
    let fixture = Fixture::python().await;
    let first = fixture.sandbox.id().clone();
    fixture.sh("true").await;

    restart(&["--no-live-restore"]);

    let request = ExecRequest::argv(["true"])
        .timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let error = fixture.sandbox.exec(&call(), request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    let again = fixture
        .host
        .backend
        .acquire(&call(), &fixture.key, &fixture.spec)
        .await
        .unwrap();
    assert!(again.freshly_created());
    assert_ne!(*again.id(), first);
    // A daemon that ends removes the container and not its volume, which the
    // labels lead to. Everything of this owner goes here.
    let reaped = fixture
        .host
        .backend
        .reap(&call(), &ReapFilter::everything())
        .await
        .unwrap();
    assert_eq!(
        (reaped.sandboxes, reaped.others, reaped.failures.len()),
        (1, 1, 0)
    );
    drop(again);
    fixture.close().await;
}
