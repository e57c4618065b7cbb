//! Standard input.

use crate::support::{Sandbox, argv, shell, wait_until};

#[test]
fn megabytes_written_before_anything_is_read_come_back_whole() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["cat"]);
    request.stdin = true;
    let run = client.start(&request);
    let bytes: Vec<u8> = (0..8_000_000_u32)
        .flat_map(u32::to_le_bytes)
        .take(8_000_000)
        .collect();
    client.write(run, &bytes);
    client.end_input(run);
    let outcome = client.outcome(run);
    assert_eq!(outcome.code(), 0);
    assert!(outcome.stdout == bytes);
}

#[test]
fn input_that_nobody_reads_is_no_error_and_the_host_is_told() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("head -n 1; exec 0<&-; sleep 0.2; echo done");
    request.stdin = true;
    let run = client.start(&request);
    client.write(run, &b"y\n".repeat(1_000_000));
    assert!(client.input_is_closed(run));
    let outcome = client.outcome(run);
    assert_eq!(outcome.text(), "y\ndone\n");
    assert_eq!(outcome.code(), 0);
}

#[test]
fn input_without_a_reader_ends_with_the_program() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["sleep", "0.1"]);
    request.stdin = true;
    let run = client.start(&request);
    client.write(run, &vec![b'x'; 3_000_000]);
    assert_eq!(client.outcome(run).code(), 0);
}

#[test]
fn without_standard_input_there_is_nothing_to_read() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let outcome = client.run(&shell("readlink /proc/self/fd/0; wc -c"));
    assert_eq!(
        outcome.text().split_whitespace().collect::<Vec<_>>(),
        ["/dev/null", "0"]
    );
}

#[test]
fn the_end_of_one_commands_input_does_not_wait_for_another_command() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["cat"]);
    request.stdin = true;
    let first = client.start(&request);
    client.started(first);
    // Forked while the first one's pipe is open in PID 1.
    let second = client.start(&request);
    client.started(second);
    client.end_input(first);
    client.outcome(first).code();
    client.end_input(second);
    client.outcome(second).code();
}

#[test]
fn closed_standard_streams_are_the_programs_own_affair() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("exec 0<&- 1>&- 2>&-; sleep 0.3; exit 5");
    request.stdin = true;
    let run = client.start(&request);
    client.until(|client| client.input_is_closed(run));
    assert!(sandbox.supervisors().len() == 1);
    assert_eq!(client.outcome(run).code(), 5);
    wait_until(|| sandbox.supervisors().is_empty());
}
