//! Standard streams, whatever either side does with them.

use std::time::Duration;

use stockade::exec::{Background, Stdin};
use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::{Fixture, call};
use tokio::time::Instant;

#[tokio::test]
async fn a_program_without_input_finds_its_end() {
    let fixture = Fixture::python().await;
    let outcome = fixture.sh("cat; echo end").await;
    assert_eq!(outcome.stdout, "end\n");
    fixture.close().await;
}

#[tokio::test]
async fn megabytes_written_before_anything_is_read_come_back_whole() {
    let fixture = Fixture::python().await;
    let bytes: Vec<u8> = (0..6_000_000_u32).map(|at| (at * 31 % 251) as u8).collect();
    // Reads all, then writes all: without credit both ways this deadlocks.
    let program = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())";
    let request = ExecRequest::argv(["python3", "-c", program]).stdin(Stdin::bytes(bytes.clone()));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert!(
        outcome.stdout == bytes,
        "{} of {} bytes",
        outcome.stdout.len(),
        bytes.len()
    );
    fixture.close().await;
}

#[tokio::test]
async fn input_that_the_program_does_not_read_is_no_failure() {
    let fixture = Fixture::python().await;
    let request =
        ExecRequest::argv(["head", "-n", "1"]).stdin(Stdin::reader(tokio::io::repeat(b'\n')));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert_eq!(outcome.stdout, "\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_program_that_closes_its_streams_runs_on_and_ends_as_it_likes() {
    let fixture = Fixture::python().await;
    let outcome = fixture.sh("exec <&- >&- 2>&-; sleep 0.2; exit 5").await;
    assert_eq!(outcome.status, ExecStatus::Exited(5));
    assert!(outcome.stdout.is_empty() && outcome.stderr.is_empty());
    fixture.close().await;
}

#[tokio::test]
async fn a_child_that_keeps_the_pipes_open_does_not_keep_the_caller() {
    let fixture = Fixture::python().await;
    let start = Instant::now();
    for _ in 0..3 {
        let outcome = fixture.sh("sleep 300 & echo hi").await;
        assert_eq!(outcome.status, ExecStatus::Exited(0));
        assert_eq!(outcome.stdout, "hi\n");
        assert_eq!(outcome.left_running, 0);
    }
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "a child of 300 s was waited for"
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_background_child_is_kept_only_when_asked_for() {
    let fixture = Fixture::python().await;
    let request = ExecRequest::shell("sleep 311 & echo hi").background(Background::Keep);
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert_eq!(outcome.stdout, "hi\n");
    assert_eq!(outcome.left_running, 1);
    assert_eq!(fixture.sh("pgrep -c -f '^sleep 311'").await.stdout, "1\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_detached_command_outlives_its_handle_and_the_channel() {
    let fixture = Fixture::python().await;
    let request = ExecRequest::shell("sleep 1; echo done > marker; sleep 312")
        .build()
        .unwrap();
    let process = fixture.sandbox.spawn(&call(), request).await.unwrap();
    process.detach();
    let outcome = fixture
        .sh("until [ -e marker ]; do sleep 0.05; done; pgrep -c -f '^sleep 312'")
        .await;
    assert_eq!(outcome.stdout, "1\n");
    fixture.close().await;
}

#[tokio::test]
async fn two_hundred_quick_commands_at_once_all_get_their_turn() {
    let fixture = Fixture::python().await;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..200 {
        let sandbox = fixture.sandbox.clone();
        running.spawn(async move {
            let line = format!("echo {number}");
            let request = ExecRequest::shell(line).build().unwrap();
            (number, sandbox.exec(&call(), request).await.unwrap())
        });
    }
    let mut seen = 0;
    while let Some(result) = running.join_next().await {
        let (number, outcome) = result.unwrap();
        assert_eq!(
            outcome.status,
            ExecStatus::Exited(0),
            "{number}: {outcome:?}"
        );
        assert_eq!(outcome.stdout, format!("{number}\n"));
        seen += 1;
    }
    assert_eq!(seen, 200);
    fixture.close().await;
}

#[tokio::test]
async fn a_program_of_megabytes_goes_in_as_input() {
    let fixture = Fixture::python().await;
    let mut program = String::from("x = 0\n");
    while program.len() < 5_000_000 {
        program.push_str("x += 1  # a line that a model could have written\n");
    }
    let lines = program.lines().count() - 1;
    program.push_str("print(x)\n");
    let request = ExecRequest::argv(["python3", "-"]).stdin(Stdin::bytes(program));
    let outcome = fixture
        .exec(request.timeout(Duration::from_secs(100)))
        .await;
    assert_eq!(
        outcome.stdout,
        format!("{lines}\n"),
        "{}",
        outcome.stderr_text()
    );
    fixture.close().await;
}
