//! Output arrives byte for byte, separated, bounded, and never lost.

use std::time::Duration;

use stockade::exec::AtOutputLimit;
use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::{Fixture, call, read_until};
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn every_byte_value_passes_unchanged_on_both_streams() {
    let fixture = Fixture::python().await;
    let outcome = fixture
        .py("import sys; b = bytes(range(256)); sys.stdout.buffer.write(b); sys.stderr.buffer.write(b[::-1]); sys.exit(7)")
        .await;
    let all: Vec<u8> = (0..=255).collect();
    let reversed: Vec<u8> = (0..=255).rev().collect();
    assert_eq!(outcome.status, ExecStatus::Exited(7));
    assert_eq!(outcome.stdout, all);
    assert_eq!(outcome.stderr, reversed);
    assert!(!outcome.truncated);
    fixture.close().await;
}

#[tokio::test]
async fn output_of_exactly_the_limit_is_whole_and_one_byte_more_ends_the_command() {
    let fixture = Fixture::python().await;
    let write = |count: u64| {
        let program = format!("import sys; sys.stdout.buffer.write(b'x' * {count})");
        ExecRequest::argv(["python3", "-c", &program]).output_limit(100_000)
    };
    let whole = fixture.exec(write(100_000)).await;
    assert_eq!(whole.status, ExecStatus::Exited(0));
    assert_eq!(whole.stdout.len(), 100_000);
    assert!(!whole.truncated);
    let over = fixture.exec(write(100_001)).await;
    assert_eq!(over.status, ExecStatus::OutputLimit);
    assert!(over.truncated && over.tree_ended);
    assert_eq!(over.stdout.len(), 100_000);
    fixture.close().await;
}

#[tokio::test]
async fn head_and_tail_are_kept_of_a_program_that_may_write_on() {
    let fixture = Fixture::python().await;
    let program = "for i in range(200000): print(f'{i:07}')";
    let request = ExecRequest::argv(["python3", "-c", program])
        .output_limit(8000)
        .at_output_limit(AtOutputLimit::KeepHeadAndTail);
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    let text = outcome.stdout_text();
    assert!(
        text.starts_with("0000000\n") && text.ends_with("0199999\n"),
        "{text}"
    );
    assert!(outcome.truncated && text.len() <= 8000);
    fixture.close().await;
}

#[tokio::test]
async fn yes_is_ended_at_its_limit_and_the_next_command_runs() {
    let fixture = Fixture::python().await;
    let outcome = fixture.exec(ExecRequest::argv(["yes"])).await;
    assert_eq!(outcome.status, ExecStatus::OutputLimit);
    assert!(outcome.tree_ended);
    assert_eq!(fixture.sh("echo on").await.stdout, "on\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_reader_that_stops_stalls_its_own_command_and_no_other() {
    let fixture = Fixture::python().await;
    let request = ExecRequest::argv(["yes"])
        .output_limit(u64::MAX)
        .build()
        .unwrap();
    let mut stalled = fixture.sandbox.spawn(&call(), request).await.unwrap();
    let unread = stalled.take_output();
    for round in 0..20 {
        let outcome = fixture
            .sh(&format!("echo {round}; head -c 300000 /dev/zero"))
            .await;
        assert_eq!(outcome.status, ExecStatus::Exited(0));
        assert!(outcome.stdout.len() > 300_000);
    }
    drop((unread, stalled));
    fixture.close().await;
}

#[tokio::test]
async fn output_is_streamed_while_the_program_runs() {
    let fixture = Fixture::python().await;
    // The second line waits for an answer to the first: without streaming
    // this would never end.
    let program = "print('ask', flush=True); print('got ' + input())";
    let request = ExecRequest::argv(["python3", "-c", program]).stdin(stockade::Stdin::Piped);
    let mut process = fixture.spawn(request).await;
    let mut stdin = process.take_stdin().unwrap();
    let mut output = process.take_output().unwrap();
    let mut seen = String::new();
    read_until(&mut output, &mut seen, "ask\n").await;
    stdin.write_all(b"it\n").await.unwrap();
    read_until(&mut output, &mut seen, "ask\ngot it\n").await;
    assert_eq!(process.wait().await.unwrap().status, ExecStatus::Exited(0));
    fixture.close().await;
}

#[tokio::test]
async fn what_was_written_before_a_timeout_is_kept() {
    let fixture = Fixture::python().await;
    // Not flushed by the program: Python must not hold back what it printed.
    let program = "import sys, time\nprint('step 1')\nsys.stderr.write('warn')\ntime.sleep(60)";
    let request = ExecRequest::argv(["python3", "-c", program]).timeout(Duration::from_secs(3));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert_eq!(outcome.stdout, "step 1\n");
    assert_eq!(outcome.stderr, "warn");
    fixture.close().await;
}
