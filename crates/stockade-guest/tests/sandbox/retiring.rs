//! `guest retire`: who may end a sandbox, and when.

use std::process::{Command, Stdio};
use std::time::Duration;

use stockade_wire::ends::End;
use stockade_wire::inquiry::{Busy, Retired};

use crate::support::{Client, Options, Sandbox, argv, parsed, shell, wait_for, wait_until};

const YES: Retired = Retired {
    retired: true,
    busy: None,
};

/// How often a host and a retirement are let loose on each other.
const ROUNDS: u32 = 300;

#[test]
fn one_that_nobody_uses_ends_and_says_so_first() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    assert_eq!(sandbox.retire(&[]), YES);
    assert_eq!(sandbox.end(), Some(End::Retired));
}

#[test]
fn what_is_left_in_the_background_is_no_use_and_ends_with_it() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("trap '' TERM; (setsid sleep 300 &); sleep 300 & exit 0");
    request.background = true;
    let outcome = client.run(&request);
    assert!(outcome.exit.left_running >= 1);
    drop(client);
    let left = sandbox.processes();
    assert!(!left.is_empty());
    wait_until(|| sandbox.retire(&[]).retired);
    assert_eq!(sandbox.end(), Some(End::Retired));
    let gone = |pid: &u32| !std::path::Path::new(&format!("/proc/{pid}")).exists();
    wait_until(|| left.iter().all(gone));
}

#[test]
fn an_attached_host_keeps_it_and_a_silent_one_that_is_greeted_as_well() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    client.ping();
    assert_eq!(busy(&sandbox, &[]), of(1, 0));
    let greeted = Client::open_silently(sandbox.relay());
    assert_eq!(busy(&sandbox, &[]), of(2, 0));
    drop(client);
    wait_until(|| busy(&sandbox, &[]) == of(1, 0));
    drop(greeted);
    wait_until(|| sandbox.retire(&[]).retired);
    assert_eq!(sandbox.end(), Some(End::Retired));
}

#[test]
fn commands_keep_it_whether_they_run_or_wait() {
    // So few descriptors that two commands run at a time.
    let options = Options {
        prepare: "ulimit -n 72",
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["sleep", "300"]);
    request.background = true;
    let runs: Vec<u32> = (0..3).map(|_| client.start(&request)).collect();
    client.started(runs[0]);
    client.started(runs[1]);
    assert_eq!(busy(&sandbox, &[]), of(1, 3));
    drop(client);
    wait_until(|| busy(&sandbox, &[]) == of(0, 3));
    let activity = sandbox.status(&[]);
    assert_eq!((activity.runs.len(), activity.waiting), (2, 1));
    // Not even when it would not have been used for no time at all.
    assert_eq!(busy(&sandbox, &["--idle-for-ms", "0"]), of(0, 3));
    for run in activity.runs {
        let mut kill = sandbox.enter();
        assert!(
            kill.args(["kill", &run.pid.to_string()])
                .status()
                .unwrap()
                .success()
        );
    }
    // The one that waited runs now, alone.
    wait_until(|| busy(&sandbox, &[]) == of(0, 1));
    assert_eq!(sandbox.status(&[]).waiting, 0);
}

#[test]
fn it_ends_only_when_the_last_use_is_long_enough_ago() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    client.run(&argv(&["true"]));
    drop(client);
    let long = ["--idle-for-ms", "600000"];
    let said = wait_for(|| Some(busy(&sandbox, &long)).filter(|busy| busy.channels == 0));
    assert_eq!(said.runs, 0);
    assert!(said.idle_ms < 600_000);
    // Asking is no use: the time goes on.
    let mut last = said.idle_ms;
    loop {
        let answer = sandbox.retire(&["--idle-for-ms", "700"]);
        let Some(busy) = answer.busy else {
            break;
        };
        assert!((last..700).contains(&busy.idle_ms), "{busy:?}");
        last = busy.idle_ms;
    }
    assert_eq!(sandbox.end(), Some(End::Retired));
}

#[test]
fn guest_code_can_neither_ask_nor_retire() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let guest = sandbox.guest().display().to_string();
    let mut request = shell(&format!(
        "{guest} status; echo $?; {guest} retire; echo $?; {guest} status --journal; echo $?"
    ));
    let outcome = client.run(&request);
    assert_eq!(outcome.text(), "69\n69\n69\n");
    // Nor an orphan that waits until nobody uses the sandbox.
    request = shell(&format!(
        "(setsid sh -c 'sleep 0.2; while :; do {guest} retire >> tried 2>&1; \
         echo >> tried; done' &); exit 0"
    ));
    request.background = true;
    client.run(&request);
    drop(client);
    let tried = || std::fs::read(sandbox.outside(&sandbox.work().join("tried")));
    wait_until(|| {
        tried().is_ok_and(|tried| tried.iter().filter(|byte| **byte == b'\n').count() > 9)
    });
    assert!(
        !String::from_utf8(tried().unwrap())
            .unwrap()
            .contains("retired")
    );
    assert_eq!(sandbox.status(&[]).channels, 0);
}

#[test]
fn of_many_who_ask_at_once_one_makes_the_end_and_no_two_hear_different_things() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let askers: Vec<_> = (0..8)
        .map(|_| spawn(sandbox.run_by_engine(&["retire"])))
        .collect();
    let mut yes = 0;
    for asker in askers {
        let output = asker.wait_with_output().unwrap();
        if output.status.success() {
            assert_eq!(parsed::<Retired>(&output), YES);
            yes += 1;
        }
    }
    assert!(yes > 0);
    assert_eq!(sandbox.end(), Some(End::Retired));
}

#[test]
fn a_host_that_comes_at_that_moment_gets_in_or_the_sandbox_ends_and_never_both() {
    let (mut kept, mut ended) = (0, 0);
    let mut sandbox = None;
    for round in 0..ROUNDS {
        let Some(raced) = sandbox.take().or_else(Sandbox::start) else {
            return;
        };
        // Who begins first, and by how much, goes through a small range.
        let ahead = Duration::from_micros(u64::from(round % 20) * 100);
        let host_first = round % 40 < 20;
        let (mut relay, mut retire) = (raced.relay(), raced.run_by_engine(&["retire"]));
        relay.stdin(Stdio::piped());
        let (relay, retire) = if host_first {
            let relay = spawn(relay);
            std::thread::sleep(ahead);
            (relay, spawn(retire))
        } else {
            retire.stdin(Stdio::null());
            let retire = spawn(retire);
            std::thread::sleep(ahead);
            (spawn(relay), retire)
        };
        let answer: Retired = parsed(&retire.wait_with_output().unwrap());
        if answer.retired {
            // The relay ends with everything else, and nobody was greeted.
            assert!(
                relay.wait_with_output().unwrap().stdout.is_empty(),
                "round {round}"
            );
            assert_eq!(raced.end(), Some(End::Retired));
            ended += 1;
        } else {
            assert_eq!(answer.busy.map(|busy| busy.runs), Some(0));
            let mut client = Client::of(relay);
            client.run(&argv(&["true"])).code();
            drop(client);
            kept += 1;
            wait_until(|| raced.status(&[]).channels == 0);
            sandbox = Some(raced);
        }
    }
    count(kept, ended);
    assert!(kept > 0 && ended > 0, "{kept} kept, {ended} ended");
}

#[expect(
    clippy::print_stdout,
    reason = "whoever reads the test's output wants to know that both happened"
)]
fn count(kept: u32, ended: u32) {
    println!("the host got in {kept} times, the sandbox ended {ended} times");
}

fn spawn(mut command: Command) -> std::process::Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("a process of the engine starts")
}

/// What it is busy with.
fn busy(sandbox: &Sandbox, arguments: &[&str]) -> Busy {
    let answer = sandbox.retire(arguments);
    assert!(!answer.retired);
    answer.busy.expect("a reason")
}

fn of(channels: u32, runs: u32) -> Busy {
    Busy {
        channels,
        runs,
        idle_ms: 0,
    }
}
