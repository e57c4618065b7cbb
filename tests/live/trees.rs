//! No process of a command outlives it.

use std::time::Duration;

use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::Fixture;

/// Names a process of the attack, so that a survivor is found by its name.
const MARK: &str = "sleep 331";

async fn nothing_survives(fixture: &Fixture) {
    let outcome = fixture.sh(&format!("pgrep -c -f '^{MARK}'")).await;
    assert_eq!(outcome.stdout, "0\n", "{}", outcome.stderr_text());
}

#[tokio::test]
async fn daemons_die_with_the_command_that_made_them() {
    let fixture = Fixture::python().await;
    let daemon = format!(
        "import os, signal, sys\n\
         if os.fork(): os._exit(0)\n\
         os.setsid()\n\
         for s in range(1, 32):\n  \
           try: signal.signal(s, signal.SIG_IGN)\n  \
           except (OSError, ValueError): pass\n\
         if os.fork(): os._exit(0)\n\
         os.closerange(0, 64)\n\
         os.execvp('sleep', '{MARK}'.split())"
    );
    let outcome = fixture.py(&daemon).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert!(outcome.tree_ended);
    nothing_survives(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_timeout_and_the_sandbox_goes_on() {
    let fixture = Fixture::python().await;
    let bomb = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass";
    let request = ExecRequest::argv(["python3", "-c", bomb]).timeout(Duration::from_secs(3));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert!(
        outcome.tree_ended && outcome.left_running == 0,
        "{outcome:?}"
    );
    let after = fixture.sh("echo on; ls /proc | grep -c '^[0-9]'").await;
    let text = after.stdout_text();
    let processes: u32 = text.lines().nth(1).unwrap().parse().unwrap();
    assert!(text.starts_with("on\n") && processes < 12, "{text}");
    fixture.close().await;
}

#[tokio::test]
async fn a_storm_of_orphans_leaves_no_zombie() {
    let fixture = Fixture::python().await;
    fixture
        .sh("for i in $(seq 200); do (sleep 0.1 &) ; done; sleep 0.5")
        .await;
    let outcome = fixture.sh("ps -eo stat= | grep -c '^Z'").await;
    assert_eq!(outcome.stdout, "0\n");
    fixture.close().await;
}

#[tokio::test]
async fn stopped_children_die_like_others() {
    let fixture = Fixture::python().await;
    let line = format!("{MARK} & kill -STOP $!; kill -STOP $$");
    let request = ExecRequest::shell(line).timeout(Duration::from_secs(2));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert!(outcome.tree_ended);
    nothing_survives(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn a_command_ends_alone_and_its_neighbours_run_on() {
    let fixture = Fixture::python().await;
    let neighbour = fixture.exec(ExecRequest::shell("sleep 4; echo alive"));
    let short = ExecRequest::shell(MARK).timeout(Duration::from_secs(1));
    let (neighbour, short) = tokio::join!(neighbour, fixture.exec(short));
    assert_eq!(short.status, ExecStatus::TimedOut);
    assert_eq!(neighbour.stdout, "alive\n");
    nothing_survives(&fixture).await;
    fixture.close().await;
}
