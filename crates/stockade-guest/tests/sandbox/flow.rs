//! Back-pressure, limits of output, and what is not lost at the end.

use std::io::Write as _;
use std::time::Duration;

use stockade_wire::Kind;
use stockade_wire::limits::STREAM_CREDIT;
use stockade_wire::message::Status;

use crate::support::{Sandbox, argv, shell};

/// What PID 1 may hold at most, with its code, see the server's page.
const MEMORY: u64 = 48 * 1024 * 1024;

#[test]
fn a_slow_reader_gets_one_window_and_stalls_nobody_else() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let slow: Vec<u32> = (0..20)
        .map(|_| {
            let run = client.start(&argv(&["yes"]));
            client.be_slow(run);
            run
        })
        .collect();
    let window = STREAM_CREDIT as usize;
    client.until(|client| slow.iter().all(|run| client.stdout(*run).len() == window));
    let outcome = client.run(&shell("echo lively; head -c 3000000 /dev/zero"));
    assert_eq!(outcome.stdout.len(), 3_000_007);
    // And nobody is busy with waiting.
    let before = sandbox.cpu_time();
    std::thread::sleep(Duration::from_millis(300));
    assert!(sandbox.cpu_time() - before < Duration::from_millis(150));
    client.hurry(slow[0]);
    client.until(|client| client.stdout(slow[0]).len() > 4 * window);
    assert!(sandbox.peak_memory() < MEMORY);
    client.kill_all();
    for run in slow {
        client.hurry(run);
        assert_eq!(client.outcome(run).exit.status, Status::Cancelled);
    }
}

#[test]
fn a_host_that_reads_nothing_at_all_stalls_no_other_host() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut stuck = sandbox.relay();
    let mut stuck = stuck
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = Vec::new();
    stockade_wire::encode(Kind::Welcome, 0, br#"{"protocol":1}"#, &mut requests);
    for run in 1..=30 {
        let request = serde_json::to_vec(&argv(&["yes"])).unwrap();
        stockade_wire::encode(Kind::Start, run, &request, &mut requests);
    }
    stuck.stdin.as_mut().unwrap().write_all(&requests).unwrap();
    let mut client = sandbox.attach();
    crate::support::wait_until(|| sandbox.supervisors().len() >= 30);
    let outcome = client.run(&argv(&["head", "-c", "3000000", "/dev/zero"]));
    assert_eq!(outcome.stdout.len(), 3_000_000);
    assert!(sandbox.peak_memory() < MEMORY);
    drop(stuck.stdin.take());
    stuck.kill().unwrap();
    stuck.wait().unwrap();
    crate::support::wait_until(|| sandbox.supervisors().is_empty());
}

#[test]
fn an_endless_writer_ends_exactly_at_its_limit() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("yes & yes >&2");
    request.output_limit = Some(1_000_000);
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::OutputLimit);
    assert_eq!(outcome.stdout.len() + outcome.stderr.len(), 1_000_000);
    assert!(outcome.exit.tree_ended);
}

#[test]
fn the_limit_counts_the_same_for_a_program_that_is_quicker_than_its_reader() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for (written, expected) in [(1000, Status::Exited(0)), (1001, Status::OutputLimit)] {
        for _ in 0..10 {
            let mut request = argv(&["head", "-c", &written.to_string(), "/dev/zero"]);
            request.output_limit = Some(1000);
            let outcome = client.run(&request);
            assert_eq!(outcome.exit.status, expected);
            assert_eq!(outcome.stdout.len(), 1000);
        }
    }
}

#[test]
fn sixty_four_megabytes_come_out_whole() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let length = 64 * 1024 * 1024;
    let outcome = client.run(&argv(&["head", "-c", &length.to_string(), "/dev/zero"]));
    assert_eq!(outcome.code(), 0);
    assert_eq!(outcome.stdout.len(), length);
    assert!(sandbox.peak_memory() < MEMORY);
}

#[test]
fn a_child_that_keeps_the_output_open_delays_nothing() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for background in [false, true] {
        let mut request = shell("sleep 300 & echo hi");
        request.background = background;
        let outcome = client.run(&request);
        assert_eq!(outcome.text(), "hi\n");
        assert_eq!(outcome.exit.status, Status::Exited(0));
        assert_eq!(outcome.exit.left_running, u32::from(background));
        assert_eq!(outcome.exit.tree_ended, !background);
    }
    // Nor does it keep anybody busy.
    let before = sandbox.cpu_time();
    std::thread::sleep(Duration::from_millis(500));
    assert!(sandbox.cpu_time() - before < Duration::from_millis(200));
}

#[test]
fn what_a_program_wrote_before_its_end_is_not_lost_behind_a_writer_that_stays() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("head -c 60000 /dev/zero; (sleep 0.2; exec yes) & ");
    request.background = true;
    let run = client.start(&request);
    client.be_slow(run);
    let outcome = client.outcome(run);
    assert!(outcome.stdout.starts_with(&[0; 60_000]));
    assert!(outcome.exit.left_running > 0);
    // The one that stays is drained, not blocked, and not at any price.
    let before = sandbox.cpu_time();
    std::thread::sleep(Duration::from_secs(1));
    assert!(sandbox.cpu_time() - before < Duration::from_millis(500));
    client.run(&argv(&["true"])).code();
    assert_eq!(client.kill_all().left, 0);
}
