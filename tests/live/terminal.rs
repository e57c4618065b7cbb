//! A terminal instead of pipes.

use stockade::exec::{ExecBuilder, Stdin, TtySize};
use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::{Fixture, read_until};
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_program_sees_a_terminal_of_the_size_that_was_asked_for() {
    let fixture = Fixture::python().await;
    let size = TtySize {
        rows: 33,
        columns: 101,
    };
    let request =
        ExecRequest::shell("test -t 0 && test -t 1 && test -t 2 && stty size").tty(Some(size));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::Exited(0));
    assert_eq!(outcome.stdout, "33 101\r\n");
    fixture.close().await;
}

#[tokio::test]
async fn keys_reach_the_program_and_ctrl_c_interrupts_it() {
    let fixture = Fixture::python().await;
    let line = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done";
    let mut process = fixture.spawn(on_terminal(line)).await;
    let mut stdin = process.take_stdin().unwrap();
    let mut output = process.take_output().unwrap();
    let mut seen = String::new();
    read_until(&mut output, &mut seen, "ready").await;
    stdin.write_all(&[3]).await.unwrap();
    read_until(&mut output, &mut seen, "caught").await;
    assert_eq!(process.wait().await.unwrap().status, ExecStatus::Exited(9));
    fixture.close().await;
}

#[tokio::test]
async fn a_resize_reaches_the_program() {
    let fixture = Fixture::python().await;
    let line = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done";
    let mut process = fixture.spawn(on_terminal(line)).await;
    let mut output = process.take_output().unwrap();
    let mut seen = String::new();
    read_until(&mut output, &mut seen, "ready").await;
    process
        .resize(TtySize {
            rows: 50,
            columns: 132,
        })
        .await
        .unwrap();
    read_until(&mut output, &mut seen, "50 132").await;
    assert_eq!(process.wait().await.unwrap().status, ExecStatus::Exited(0));
    fixture.close().await;
}

fn on_terminal(line: &str) -> ExecBuilder {
    let size = TtySize {
        rows: 24,
        columns: 80,
    };
    ExecRequest::shell(line).tty(Some(size)).stdin(Stdin::Piped)
}
