//! How a program ended is what is reported, whatever it looks like.

use std::time::Duration;

use stockade::exec::NotStartedWhy;
use stockade::{Backend as _, Call, ErrorKind, ExecRequest, ExecStatus, ReapFilter};
use stockade_tests::engine::{EMPTY, Fixture, Host, PYTHON, call, spec};

#[tokio::test]
async fn exit_codes_that_look_like_timeouts_kills_or_engine_faults_pass_through() {
    let fixture = Fixture::python().await;
    for code in [
        0, 1, 7, 64, 122, 123, 124, 125, 126, 127, 128, 130, 137, 143, 255,
    ] {
        let outcome = fixture.sh(&format!("exit {code}")).await;
        assert_eq!(outcome.status, ExecStatus::Exited(code));
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_signal_is_told_from_the_code_a_shell_would_make_of_it() {
    let fixture = Fixture::python().await;
    for signal in [1, 2, 9, 11, 15] {
        let outcome = fixture.sh(&format!("kill -{signal} $$; sleep 60")).await;
        assert_eq!(outcome.status, ExecStatus::Signaled(signal));
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why_and_writes_nothing() {
    let fixture = Fixture::python().await;
    fixture.sh("echo data > plain; printf '\\177ELFgarbage' > broken; chmod +x broken; printf '#!/no/such/shell\\n' > script; chmod +x script").await;
    let why = [
        ("no-such-program-xyz", NotStartedWhy::NotFound),
        ("/no/such/program", NotStartedWhy::NotFound),
        ("./plain", NotStartedWhy::NotExecutable),
        ("/etc", NotStartedWhy::NotExecutable),
        ("./broken", NotStartedWhy::BadFormat),
        ("./script", NotStartedWhy::NotFound),
    ];
    for (program, why) in why {
        let outcome = fixture.exec(ExecRequest::argv([program])).await;
        let ExecStatus::NotStarted(not_started) = outcome.status else {
            panic!("{program}: {:?}", outcome.status);
        };
        assert_eq!(not_started.why, why, "{program}");
        assert!(
            outcome.stdout.is_empty() && outcome.stderr.is_empty(),
            "{program}"
        );
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_missing_working_directory_is_its_own_reason() {
    let fixture = Fixture::python().await;
    for cwd in ["/nope", "nope/deeper", "/etc/passwd"] {
        let outcome = fixture.exec(ExecRequest::argv(["pwd"]).cwd(cwd)).await;
        let ExecStatus::NotStarted(not_started) = outcome.status else {
            panic!("{cwd}: {:?}", outcome.status);
        };
        assert_eq!(not_started.why, NotStartedWhy::WorkingDirectory, "{cwd}");
    }
    fixture.sh("mkdir -p a/b").await;
    assert_eq!(
        fixture
            .exec(ExecRequest::argv(["pwd"]).cwd("a/b"))
            .await
            .stdout,
        "/work/a/b\n"
    );
    assert_eq!(
        fixture.exec(ExecRequest::argv(["pwd"])).await.stdout,
        "/work\n"
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_shell_line_in_an_image_without_a_shell_is_not_started() {
    let fixture = Host::new().await.acquire(spec(EMPTY)).await;
    let outcome = fixture.sh("echo hello").await;
    let ExecStatus::NotStarted(not_started) = outcome.status else {
        panic!("{:?}", outcome.status);
    };
    assert_eq!(not_started.why, NotStartedWhy::NoShell);
    fixture.close().await;
}

#[tokio::test]
async fn an_empty_image_is_a_valid_sandbox() {
    let fixture = Host::new().await.acquire(spec(EMPTY)).await;
    let outcome = fixture
        .exec(ExecRequest::argv(["/.stockade/guest", "version"]))
        .await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert!(!outcome.stdout.is_empty());
    fixture.close().await;
}

#[tokio::test]
async fn a_timeout_is_told_by_our_clock_and_leaves_the_sandbox_usable() {
    let fixture = Fixture::python().await;
    let stubborn = "trap '' TERM INT HUP; sleep 60";
    let request = ExecRequest::shell(stubborn).timeout(Duration::from_secs(2));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert!(outcome.tree_ended && outcome.left_running == 0);
    assert!(outcome.times.wall >= Duration::from_secs(2));
    assert_eq!(fixture.sh("echo on").await.stdout, "on\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_the_command_and_keeps_its_output() {
    let fixture = Fixture::python().await;
    let call = Call::with_timeout(Duration::from_secs(60));
    let request = ExecRequest::shell("echo begun; sleep 300").build().unwrap();
    let canceller = call.clone();
    let sandbox = fixture.sandbox.clone();
    let running = tokio::spawn(async move { sandbox.exec(&call, request).await });
    wait_until(&fixture, "pgrep -f '^sleep 300'").await;
    canceller.cancel();
    let outcome = running.await.unwrap().expect("a cancel is an outcome");
    assert_eq!(outcome.status, ExecStatus::Cancelled);
    assert_eq!(outcome.stdout, "begun\n");
    assert_eq!(
        fixture.sh("pgrep -f '^sleep 300'").await.status,
        ExecStatus::Exited(1)
    );
    fixture.close().await;
}

#[tokio::test]
async fn dropping_a_command_ends_its_tree() {
    let fixture = Fixture::python().await;
    let request = ExecRequest::shell("setsid sleep 301 & sleep 302")
        .build()
        .unwrap();
    let process = fixture.sandbox.spawn(&call(), request).await.unwrap();
    wait_until(&fixture, "pgrep -f '^sleep 301' && pgrep -f '^sleep 302'").await;
    drop(process);
    wait_until(&fixture, "! pgrep -f '^sleep 30[12]'").await;
    fixture.close().await;
}

#[tokio::test]
async fn a_sandbox_that_is_gone_is_an_error_that_says_so() {
    let fixture = Fixture::python().await;
    fixture.sh("true").await;
    stockade_tests::engine::docker_ok(["rm", "-f", fixture.container()]);
    let request = ExecRequest::argv(["true"]).build().unwrap();
    let error = fixture.sandbox.exec(&call(), request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    // Removed by hand without its volume, it left that; reaping takes it.
    let reaped = fixture
        .host
        .backend
        .reap(&call(), &ReapFilter::everything())
        .await
        .unwrap();
    assert_eq!(
        (reaped.sandboxes, reaped.others, reaped.failures.len()),
        (0, 1, 0)
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_sandbox_that_its_own_program_wrecked_still_answers_truthfully() {
    let builder = spec(PYTHON).hardening(stockade::spec::Hardening::AsImage);
    let fixture = Host::new().await.acquire(builder).await;
    fixture
        .sh("rm -rf /bin /usr/bin 2>/dev/null; kill -9 -1")
        .await;
    let outcome = fixture.exec(ExecRequest::argv(["true"])).await;
    let ExecStatus::NotStarted(not_started) = outcome.status else {
        panic!("{:?}", outcome.status);
    };
    assert_eq!(not_started.why, NotStartedWhy::NotFound);
    fixture.close().await;
}

/// Asks the sandbox itself until a shell condition holds; the bound is the
/// call's, far above what any machine needs.
async fn wait_until(fixture: &Fixture, condition: &str) {
    let line = format!("until {condition} >/dev/null; do sleep 0.05; done");
    let outcome = fixture
        .exec(ExecRequest::shell(line).timeout(Duration::from_secs(60)))
        .await;
    assert_eq!(
        outcome.status,
        ExecStatus::Exited(0),
        "`{condition}` never held"
    );
}
