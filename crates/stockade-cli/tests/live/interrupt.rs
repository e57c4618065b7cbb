//! Ctrl-C, once and twice.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::tool::Tool;

/// A program that runs until it is ended, and has said that it does.
fn running(tool: &Tool, line: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = tool
        .command(&[], &["sh", "-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    output.read_line(&mut first).expect("it writes");
    assert_eq!(first, "ready\n");
    (child, output)
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill starts").success());
}

#[test]
fn the_first_ends_the_program_removes_the_sandbox_and_exits_130() {
    let tool = Tool::new();
    let (child, output) = running(&tool, "trap '' INT TERM; echo ready; sleep 300");
    interrupt(&child);
    let output_end = std::thread::spawn(move || drop(output));
    let ended = child.wait_with_output().expect("it ends");
    output_end.join().expect("the reader ends");
    assert_eq!(
        ended.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    tool.assert_clean();
}

#[test]
fn the_second_leaves_at_once() {
    let tool = Tool::new();
    let (mut child, output) = running(&tool, "echo ready; sleep 300");
    // Stopped, so that both signals are there when it looks, whatever the
    // machine does: a removal takes longer than the time between them.
    interrupt(&child);
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let said = stderr
        .lines()
        .next()
        .expect("it says something")
        .expect("it is text");
    assert!(said.contains("interrupted"), "{said}");
    interrupt(&child);
    let ended = child.wait().expect("it ends");
    drop(output);
    assert_eq!(ended.code(), Some(130));
    // What is left ends by itself; this test does not wait for that.
    for name in stockade_tests::engine::left_of(&tool.owner) {
        stockade_tests::engine::docker(["rm", "-f", "-v", &name]);
    }
}
