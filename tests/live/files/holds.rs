//! Holders that die or stop in the middle of a hold.

#![expect(
    clippy::disallowed_methods,
    reason = "another host is a process of its own"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stockade::{Backend as _, Call};
use stockade_docker::FilePlane;
use stockade_tests::engine::{Fixture, Host, call, docker_ok, unique};
use stockade_tests::files::{batch, request, shared_key};

use super::{nothing_is_paused, patient, roomy, rounds};

/// A sandbox that another process can find, too.
async fn shared() -> (Fixture, String) {
    let host = Host::with(|config| config.file_plane(FilePlane::Tar)).await;
    let thread = unique("shared");
    let key = shared_key(&thread);
    let spec = roomy().build().expect("the spec is valid");
    let sandbox = host
        .backend
        .acquire(&call(), &key, &spec)
        .await
        .expect("a sandbox");
    let fixture = Fixture {
        host,
        key,
        spec,
        sandbox,
    };
    (fixture, thread)
}

/// Another host that transfers until it is ended; it has done so once.
fn other(owner: &str, thread: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stockade-test-host"))
        .args(["transfers", owner, thread, "tar"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the host starts");
    let stdout = child.stdout.take().expect("it has an output");
    let mut lines = BufReader::new(stdout).lines();
    for what in ["wrote Ok", "read Ok"] {
        let line = lines.next().expect("it says something").expect("text");
        assert!(line.starts_with(what), "{line}");
    }
    // Nobody reads on: what it says from here on is lost, not waited for.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn is_paused(container: &str) -> bool {
    docker_ok(["inspect", "--format", "{{.State.Paused}}", container]) == "true"
}

/// Asserts that files go in and out.
async fn works(fixture: &Fixture, call: &Call) {
    let sandbox = &fixture.sandbox;
    sandbox
        .write_files(call, batch("after", 3, 100))
        .await
        .expect("files move");
    let read = sandbox
        .read_files(call, request("after", 3))
        .await
        .expect("files move");
    assert_eq!(read.len(), 3);
    let outcome = fixture.sh("echo $((40 + 2))").await;
    assert_eq!(outcome.stdout_text(), "42\n");
}

#[tokio::test]
async fn a_host_that_is_killed_at_any_moment_leaves_a_sandbox_that_works() {
    let (fixture, thread) = shared().await;
    for round in 0..rounds(12) {
        let mut child = other(&fixture.host.owner, &thread);
        // Steps of a hold take some 20 ms each; every moment is a good one.
        let moment = Duration::from_millis(u64::try_from(round * 17 % 160).unwrap_or(0));
        tokio::time::sleep(moment).await;
        child.kill().expect("it is killed");
        child.wait().expect("it is reaped");
        works(&fixture, &patient()).await;
    }
    nothing_is_paused(&fixture.host.owner);
    fixture.close().await;
}

#[tokio::test]
async fn a_host_that_is_stopped_in_a_hold_loses_it_at_its_limit() {
    let (fixture, thread) = shared().await;
    let mut child = other(&fixture.host.owner, &thread);
    let stop = |signal: &str| {
        let pid = child.id().to_string();
        let killed = Command::new("kill").args([signal, &pid]).status();
        assert!(killed.expect("kill runs").success());
    };
    // Until it was stopped in the middle of one.
    let mut tries = 0;
    loop {
        stop("-STOP");
        if is_paused(fixture.container()) {
            // A thaw that was under way ends what looks like a hold.
            tokio::time::sleep(Duration::from_secs(1)).await;
            if is_paused(fixture.container()) {
                break;
            }
        }
        tries += 1;
        assert!(tries < 500, "it never holds the sandbox");
        stop("-CONT");
        tokio::time::sleep(Duration::from_millis(tries % 13)).await;
    }
    let begun = Instant::now();
    works(&fixture, &patient()).await;
    assert!(
        begun.elapsed() < Duration::from_secs(90),
        "the hold of a host that stands still lasted {:?}",
        begun.elapsed()
    );
    stop("-CONT");
    works(&fixture, &patient()).await;
    child.kill().expect("it is killed");
    child.wait().expect("it is reaped");
    works(&fixture, &patient()).await;
    nothing_is_paused(&fixture.host.owner);
    fixture.close().await;
}

#[tokio::test]
async fn a_command_waits_for_a_thaw_and_does_not_fail() {
    let (fixture, thread) = shared().await;
    let mut child = other(&fixture.host.owner, &thread);
    // A fresh host opens a channel of its own while the other one holds and
    // releases the sandbox all the time.
    for _ in 0..rounds(6) {
        let config = stockade_docker::DockerConfig::new(&fixture.host.owner);
        let host = stockade_docker::DockerBackend::connect(&call(), config)
            .await
            .unwrap();
        let sandbox = host
            .acquire(&call(), &fixture.key, &fixture.spec)
            .await
            .unwrap();
        assert_eq!(sandbox.id(), fixture.sandbox.id());
        let request = stockade::ExecRequest::argv(["true"]).build().unwrap();
        assert!(sandbox.exec(&patient(), request).await.unwrap().success());
    }
    child.kill().expect("it is killed");
    child.wait().expect("it is reaped");
    works(&fixture, &patient()).await;
    fixture.close().await;
}
