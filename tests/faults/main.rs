//! Every docker command of a sandbox's life goes wrong in every way, on a
//! real engine: the error is of a kind that the design names, nothing is left
//! that is not named, and the next sandbox works.

use std::path::Path;
use std::time::Duration;

use stockade::vocabulary::DisposalCode;
use stockade::{Backend as _, Call, Error, ErrorKind, ExecRequest, ExecStatus, SandboxKey, Which};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::engine::{PYTHON, call, left_of, spec, unique};
use stockade_tests::faulty::{self, Fault};

/// More commands than a whole life takes.
const MOST: u32 = 32;

#[tokio::test]
async fn a_command_that_fails_leaves_nothing() {
    every_step(Fault::Fails).await;
}

#[tokio::test]
async fn a_command_that_hangs_is_ended_and_leaves_nothing() {
    every_step(Fault::Hangs).await;
}

#[tokio::test]
async fn a_command_that_answers_garbage_leaves_nothing() {
    every_step(Fault::Garbage).await;
}

#[tokio::test]
async fn a_command_that_does_its_work_and_fails_half_way_through_its_answer_leaves_nothing() {
    every_step(Fault::HalfWay).await;
}

#[tokio::test]
async fn a_command_that_does_its_work_and_is_killed_leaves_nothing() {
    every_step(Fault::Killed).await;
}

#[tokio::test]
async fn a_command_that_is_late_and_warns_is_no_failure() {
    every_step(Fault::Late).await;
}

async fn every_step(fault: Fault) {
    warm_up().await;
    for at in 1..MOST {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let owner = unique("faults");
        let client = faulty::client(folder.path(), at, fault);
        let result = life(&owner, &client, fault == Fault::Hangs).await;
        let hit = faulty::starts(folder.path()) >= at as usize;
        if let Err(error) = &result {
            assert!(
                hit,
                "{fault:?}: failed without its fault at {at}: {error:?}"
            );
            assert_ne!(fault, Fault::Late, "late at {at}: {error:?}");
            named(error, fault, at);
        }
        // What is left now is what the owner's next process would find.
        clean(&owner).await;
        if !hit {
            assert!(
                at > 12,
                "{fault:?}: a whole life took {} commands only",
                at - 1
            );
            return;
        }
    }
    panic!("{fault:?}: a life took {MOST} commands or more");
}

/// Bind, acquire, one command, a file in and out, dispose, close: through the
/// faulty client.
async fn life(owner: &str, client: &Path, hangs: bool) -> Result<(), Error> {
    let config = DockerConfig::new(owner)
        .docker_path(client)
        .command_timeout(Duration::from_secs(4));
    let call = Call::with_timeout(Duration::from_secs(90));
    let backend = DockerBackend::connect(&call, config).await?;
    let spec = spec(PYTHON).build().expect("the spec is valid");
    let key = SandboxKey::new("faults", owner, "agent").with_call("1");
    let lived = async {
        let sandbox = backend.acquire(&call, &key, &spec).await?;
        let request = ExecRequest::shell("echo on").build()?;
        let outcome = sandbox.exec(&call, request).await?;
        assert_eq!(
            outcome.status,
            ExecStatus::Exited(0),
            "a fault of docker became an outcome"
        );
        assert_eq!(outcome.stdout, "on\n");
        // The tar plane: pauses, looks, copies and thaws.
        sandbox.write_file(&call, "in/file", "content").await?;
        let read = sandbox.read_file(&call, "in/file").await?;
        assert_eq!(&read[..], b"content", "a fault of docker became content");
        Ok::<(), Error>(())
    };
    let lived = lived.await;
    let mut removed = backend.dispose(&call, &key, Which::All).await;
    if removed
        .as_ref()
        .map_or(true, |removed| !removed.failures.is_empty())
    {
        // The fault was the removal's own; a host tries again.
        removed = backend.dispose(&call, &key, Which::All).await;
    }
    let removed = removed?;
    assert!(removed.failures.is_empty(), "{removed:?}");
    let closed = backend
        .close(&Call::with_timeout(Duration::from_secs(10)))
        .await?;
    // A pause that hangs is waited for, since it may still come true; that is
    // said, and nothing is there that it could pause.
    let waits = closed
        .failures
        .iter()
        .all(|failure| failure.code == DisposalCode::Timeout);
    assert!(waits && (hangs || closed.failures.is_empty()), "{closed:?}");
    let left = left_of(owner);
    assert!(left.is_empty(), "left behind: {left:?} after {lived:?}");
    lived
}

/// The kinds that the design names for a docker command that did not answer.
fn named(error: &Error, fault: Fault, at: u32) {
    let expected = [
        ErrorKind::Unavailable,
        ErrorKind::Internal,
        ErrorKind::TimedOut,
        ErrorKind::Lost,
        ErrorKind::NotFound,
        ErrorKind::Refused,
        ErrorKind::LimitExceeded,
    ];
    assert!(
        expected.contains(&error.kind()),
        "{fault:?} at {at}: {error:?}"
    );
    assert!(!error.to_string().is_empty());
}

async fn clean(owner: &str) {
    let backend = DockerBackend::connect(&call(), DockerConfig::new(owner)).await;
    let backend = backend.expect("the engine is there");
    let left = left_of(owner);
    assert!(left.is_empty(), "left behind: {left:?}");
    let spec = spec(PYTHON).build().expect("the spec is valid");
    let key = SandboxKey::new("faults", owner, "agent").with_call("1");
    let sandbox = backend
        .acquire(&call(), &key, &spec)
        .await
        .expect("the next sandbox works");
    let request = ExecRequest::argv(["true"])
        .build()
        .expect("the request is valid");
    assert!(
        sandbox
            .exec(&call(), request)
            .await
            .expect("it runs")
            .success()
    );
    let removed = backend
        .dispose(&call(), &key, Which::All)
        .await
        .expect("it goes");
    assert!(removed.failures.is_empty(), "{removed:?}");
}

/// The engine has the guest runtime, so that no life has to bring it.
async fn warm_up() {
    clean(&unique("faults-warm-up")).await;
}
