//! Whole trees of processes, and what may outlive a program.

use stockade_wire::Kind;
use stockade_wire::limits::KILL_BOUND;
use stockade_wire::message::Status;

use crate::support::{Options, Sandbox, argv, shell, wait_until};

/// Leaves a daemon behind in every way there is.
const DAEMONS: &str = "(setsid sleep 301 &) ; (setsid sh -c 'setsid sleep 302 & sleep 303' &); \
    nohup sleep 304 >/dev/null 2>&1 </dev/null & (trap '' HUP TERM INT; sleep 305 & sleep 306) &";

#[test]
fn daemons_die_with_their_command() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let outcome = client.run(&shell(&format!("{DAEMONS} sleep 0.2; echo left")));
    assert_eq!(outcome.text(), "left\n");
    assert_eq!(outcome.code(), 0);
    assert_eq!(sleepers(&sandbox), 0);
    wait_until(|| sandbox.supervisors().is_empty());
}

#[test]
fn daemons_die_with_a_timeout() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell(&format!("{DAEMONS} sleep 300"));
    request.timeout_ms = Some(400);
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::TimedOut);
    assert!(outcome.exit.tree_ended);
    assert_eq!(sleepers(&sandbox), 0);
}

#[test]
fn a_fork_storm_at_the_limit_dies_within_the_bound() {
    let options = Options {
        processes: 200,
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("storm() { storm & storm & wait; }; storm 2>/dev/null & read -r line");
    request.stdin = true;
    request.timeout_ms = Some(1500);
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::TimedOut);
    assert!(outcome.exit.tree_ended, "{:?}", outcome.exit);
    assert!(outcome.exit.wall_ms < 1500 + u64::try_from(KILL_BOUND.as_millis()).unwrap());
    client.run(&argv(&["true"])).code();
}

#[test]
fn a_command_that_finds_no_process_free_is_refused_and_killing_everything_helps() {
    let options = Options {
        processes: 60,
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    // The shell gives up when it cannot fork; what it started stays.
    let mut request = shell("while :; do sleep 300 & done 2>/dev/null");
    request.background = true;
    let outcome = client.run(&request);
    assert!(outcome.exit.left_running > 40, "{:?}", outcome.exit);
    let refused = crate::support::wait_for(|| {
        let outcome = client.run(&argv(&["true"]));
        matches!(outcome.exit.status, Status::NotStarted(_)).then_some(outcome.exit.status)
    });
    let why = match refused {
        Status::NotStarted(not_started) => not_started.why,
        status => panic!("{status:?}"),
    };
    assert_eq!(why, stockade_wire::message::NotStartedWhy::Resources);
    let killed = client.kill_all();
    assert_eq!((killed.left, killed.generation), (0, 1));
    client.run(&argv(&["true"])).code();
}

#[test]
fn what_is_started_as_background_outlives_program_and_host() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("setsid sleep 300 & sleep 300 & echo hi");
    request.background = true;
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::Exited(0));
    assert_eq!(outcome.exit.left_running, 2);
    assert!(!outcome.exit.tree_ended);
    client.hang_up();
    client.until_closed();
    let mut client = sandbox.attach();
    assert_eq!(client.hello.live_runs, 1);
    wait_until(|| sleepers(&sandbox) == 2);
    assert_eq!(client.kill_all().left, 0);
    assert_eq!(sleepers(&sandbox), 0);
    drop(client);
    let client = sandbox.attach();
    assert_eq!(
        (client.hello.live_runs, client.hello.kill_generation),
        (0, 1)
    );
}

#[test]
fn a_detached_command_goes_on_and_tells_its_end() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let detached = client.start(&shell(
        "echo ready; sleep 0.3; yes | head -c 1000000; sleep 300 &",
    ));
    client.stdout_holds(detached, "ready");
    client.send(Kind::Detach, detached, &[]);
    let outcome = client.outcome(detached);
    assert_eq!(outcome.text(), "ready\n");
    assert_eq!(outcome.exit.status, Status::Exited(0));
    assert_eq!(outcome.exit.left_running, 1);
    let still = client.start(&shell("echo ready; exec sleep 300"));
    client.stdout_holds(still, "ready");
    client.send(Kind::Detach, still, &[]);
    client.ping();
    client.hang_up();
    client.until_closed();
    let client = sandbox.attach();
    assert_eq!(client.hello.live_runs, 2);
    wait_until(|| sleepers(&sandbox) == 2);
}

#[test]
fn commands_end_with_their_host_unless_they_are_background() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&shell(&format!("{DAEMONS} echo ready; sleep 300")));
    client.stdout_holds(run, "ready");
    let mut request = shell("echo ready; sleep 300; true");
    request.background = true;
    let run = client.start(&request);
    client.stdout_holds(run, "ready");
    client.hang_up();
    client.until_closed();
    wait_until(|| sandbox.supervisors().len() == 1);
    wait_until(|| sleepers(&sandbox) == 1);
    let mut client = sandbox.attach();
    assert_eq!(client.hello.live_runs, 1);
    client.run(&argv(&["true"])).code();
}

#[test]
fn no_zombie_is_left_of_a_storm_of_orphans() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let storm = "for i in $(seq 200); do (sleep 0.05 &) ; done; sleep 1; echo done";
    let run = client.start(&shell(storm));
    client.stdout_holds(run, "done");
    client.outcome(run).code();
    wait_until(|| sandbox.zombies() == 0);
    let mut request = shell("for i in $(seq 200); do (sleep 0.05 &) ; done; setsid sleep 300 &");
    request.background = true;
    client.run(&request);
    wait_until(|| sandbox.processes().len() < 10 && sandbox.zombies() == 0);
}

#[test]
fn killing_everything_reaches_storms_and_daemons_of_all_commands() {
    let options = Options {
        processes: 300,
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    let mut other = sandbox.attach();
    let daemon = other.start(&shell(&format!("{DAEMONS} echo ready; sleep 300")));
    other.stdout_holds(daemon, "ready");
    let mut request = shell("storm() { storm & storm & wait; }; storm 2>/dev/null & read -r line");
    request.stdin = true;
    let storm = client.start(&request);
    crate::support::wait_until(|| sandbox.processes().len() > 100);
    let start = crate::support::now();
    let killed = client.kill_all();
    assert_eq!((killed.left, killed.generation), (0, 1));
    assert!(start.elapsed() < KILL_BOUND * 2);
    assert_eq!(client.outcome(storm).exit.status, Status::Cancelled);
    assert_eq!(other.outcome(daemon).exit.status, Status::Cancelled);
    for client in [&mut client, &mut other] {
        client.run(&argv(&["true"])).code();
    }
    assert_eq!(sleepers(&sandbox), 0);
}

/// `sleep`s in the sandbox.
fn sleepers(sandbox: &Sandbox) -> usize {
    let is_sleep = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "sleep\n")
    };
    sandbox
        .processes()
        .iter()
        .filter(|pid| is_sleep(pid))
        .count()
}
