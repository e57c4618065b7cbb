//! Commands on a terminal.

use stockade_wire::Kind;
use stockade_wire::message::{Start, Status, TtySize};

use crate::support::{Sandbox, shell, wait_until};

#[test]
fn a_terminal_is_one_in_every_respect_and_has_its_size() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let outcome = client.run(&on_terminal(
        "test -t 0 && test -t 1 && test -t 2 && stty size && echo controlling >/dev/tty",
    ));
    assert_eq!(outcome.text(), "24 80\r\ncontrolling\r\n");
    assert_eq!(outcome.code(), 0);
}

#[test]
fn a_resize_reaches_the_program() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&on_terminal(
        "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done",
    ));
    client.stdout_holds(run, "ready");
    client.send(Kind::Resize, run, &[50, 0, 132, 0]);
    let outcome = client.outcome(run);
    assert!(outcome.text().contains("50 132"), "{}", outcome.text());
}

#[test]
fn an_interrupt_key_interrupts_the_foreground() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&on_terminal("echo ready; exec sleep 300"));
    client.stdout_holds(run, "ready");
    client.write(run, &[3]);
    assert_eq!(client.outcome(run).exit.status, Status::Signaled(2));
}

#[test]
fn the_end_of_input_is_typed() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for (typed, expected) in [("a\nb\n", 4), ("a\nb", 3), ("", 0)] {
        let run = client.start(&on_terminal("stty -echo; echo ready; wc -c"));
        client.stdout_holds(run, "ready");
        client.write(run, typed.as_bytes());
        client.end_input(run);
        let outcome = client.outcome(run);
        assert_eq!(outcome.text(), format!("ready\r\n{expected}\r\n"));
    }
}

#[test]
fn all_that_was_written_to_a_terminal_arrives() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for _ in 0..20 {
        let outcome = client.run(&on_terminal("stty -opost; head -c 20000 /dev/zero; exit 3"));
        assert_eq!(outcome.stdout.len(), 20_000);
        assert_eq!(outcome.code(), 3);
    }
}

#[test]
fn what_runs_on_a_terminal_ends_in_time_and_with_its_tree() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = on_terminal("(setsid sleep 300 &); echo ready; sleep 300");
    request.timeout_ms = Some(500);
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::TimedOut);
    assert_eq!(outcome.text(), "ready\r\n");
    assert!(outcome.exit.tree_ended);
    wait_until(|| sandbox.supervisors().is_empty());
}

#[test]
fn what_stays_behind_on_a_terminal_is_drained() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = on_terminal(
        "trap '' HUP; (sleep 0.2; head -c 500000 /dev/zero; echo >through; sleep 300) & echo hi",
    );
    request.background = true;
    let outcome = client.run(&request);
    assert_eq!(outcome.text(), "hi\r\n");
    wait_until(|| {
        let mut look = shell("test -e through");
        look.tty = None;
        matches!(client.run(&look).exit.status, Status::Exited(0))
    });
}

fn on_terminal(line: &str) -> Start {
    let mut request = shell(line);
    request.stdin = true;
    request.tty = Some(TtySize {
        rows: 24,
        columns: 80,
    });
    request
}
