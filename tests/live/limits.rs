//! Limits hold, and reaching one is a result.

use std::time::Duration;

use stockade::{ExecRequest, ExecStatus, ResourceLimits};
use stockade_tests::engine::{Fixture, Host, PYTHON, spec};

fn limits(change: impl FnOnce(&mut ResourceLimits)) -> ResourceLimits {
    let mut limits = ResourceLimits::default();
    change(&mut limits);
    limits
}

#[tokio::test]
async fn running_out_of_memory_is_told_beside_the_status() {
    let limits = limits(|limits| {
        limits.memory = 128 << 20;
        limits.work_bytes = 16 << 20;
        limits.tmp_bytes = 16 << 20;
        limits.shm_bytes = 16 << 20;
    });
    let fixture = Host::new().await.acquire(spec(PYTHON).limits(limits)).await;
    let direct = fixture.py("x = bytearray(400 << 20)").await;
    assert_eq!(direct.status, ExecStatus::Signaled(9));
    assert!(direct.out_of_memory, "{direct:?}");
    // A shell may hide that its child was killed; the flag does not.
    let hidden = fixture
        .sh("python3 -c 'x = bytearray(400 << 20)'; exit 0")
        .await;
    assert_eq!(hidden.status, ExecStatus::Exited(0));
    assert!(hidden.out_of_memory, "{hidden:?}");
    let after = fixture.sh("echo on").await;
    assert_eq!(after.stdout, "on\n");
    assert!(!after.out_of_memory);
    fixture.close().await;
}

#[tokio::test]
async fn a_kill_of_its_own_is_not_taken_for_a_want_of_memory() {
    let fixture = Fixture::python().await;
    let outcome = fixture.sh("kill -9 $$").await;
    assert_eq!(outcome.status, ExecStatus::Signaled(9));
    assert!(!outcome.out_of_memory);
    fixture.close().await;
}

#[tokio::test]
async fn the_work_directory_ends_where_it_was_told_to() {
    let limits = limits(|limits| {
        limits.work_bytes = 8 << 20;
        limits.work_inodes = 100;
    });
    let fixture = Host::new().await.acquire(spec(PYTHON).limits(limits)).await;
    let full = fixture
        .sh("head -c 9000000 /dev/zero > big; stat -c %s big; rm big")
        .await;
    let size: u64 = full.stdout_text().trim().parse().unwrap();
    assert!(size <= 8 << 20, "{size}");
    let many = fixture
        .sh("i=0; while touch f$i; do i=$((i+1)); done 2>/dev/null; echo $i")
        .await;
    let count: u32 = many.stdout_text().trim().parse().unwrap();
    assert!((50..100).contains(&count), "{count}");
    // A full work directory does not keep the next command from starting.
    assert_eq!(fixture.sh("echo on").await.stdout, "on\n");
    fixture.close().await;
}

#[tokio::test]
async fn processes_end_at_their_limit_and_the_rest_goes_on() {
    let limits = limits(|limits| limits.pids = 32);
    let fixture = Host::new().await.acquire(spec(PYTHON).limits(limits)).await;
    let program = "
import os, time
made = 0
try:
    while made < 100:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        made += 1
except BlockingIOError: pass
print(made)
";
    let outcome = fixture.py(program).await;
    let made: u32 = outcome.stdout_text().trim().parse().unwrap();
    assert!(made < 32, "{made}");
    assert_eq!(fixture.sh("echo on").await.stdout, "on\n");
    fixture.close().await;
}

#[tokio::test]
async fn usage_is_reported_of_the_whole_tree() {
    let fixture = Fixture::python().await;
    let line = "python3 -c 'x = bytearray(100 << 20)\nfor i in range(3000000): pass' & wait";
    let outcome = fixture.sh(line).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert!(outcome.peak_memory >= 100 << 20, "{}", outcome.peak_memory);
    let cpu = outcome.times.cpu_user + outcome.times.cpu_system;
    assert!(cpu > Duration::from_millis(20), "{cpu:?}");
    assert!(outcome.times.wall >= cpu / 2);
    fixture.close().await;
}

#[tokio::test]
async fn an_idle_sandbox_ends_by_itself() {
    let builder = spec(PYTHON).idle_limit(Duration::from_secs(2));
    let host = Host::new().await;
    let fixture = host.acquire(builder).await;
    // No channel is opened: the sandbox hears nothing of its host.
    stockade_tests::engine::docker(["wait", fixture.container()]);
    for _ in 0..100 {
        if fixture.host.left().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(fixture.host.left().is_empty());
    let request = ExecRequest::argv(["true"]).build().unwrap();
    let error = fixture
        .sandbox
        .exec(&stockade_tests::engine::call(), request)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), stockade::ErrorKind::Lost, "{error}");
    fixture.close().await;
}

#[tokio::test]
async fn a_sandbox_whose_host_lives_is_not_idle_however_short_the_limit() {
    let builder = spec(PYTHON).idle_limit(Duration::from_secs(2));
    let fixture = Host::new().await.acquire(builder).await;
    let outcome = fixture.sh("sleep 6; echo on").await;
    assert_eq!(outcome.stdout, "on\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_sandbox_ends_at_its_highest_age_whatever_it_does() {
    let builder = spec(PYTHON)
        .idle_limit(Duration::from_secs(3))
        .max_age(Duration::from_secs(4));
    let fixture = Host::new().await.acquire(builder).await;
    let request = ExecRequest::argv(["sleep", "100"]).build().unwrap();
    let error = fixture
        .sandbox
        .exec(&stockade_tests::engine::call(), request)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), stockade::ErrorKind::Lost, "{error}");
    fixture.close().await;
}
