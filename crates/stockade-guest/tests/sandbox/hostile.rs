//! What guest code of the same user can do to the runtime, and what not.

use std::time::Duration;

use stockade_wire::Kind;
use stockade_wire::message::{NotStartedWhy, Status};

use crate::support::{Sandbox, argv, shell, wait_for, wait_until};

#[test]
fn guest_code_cannot_attach() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let guest = sandbox.guest().display().to_string();
    // From a program, from an orphan, and through an open standard input.
    let attempt = format!(
        "{guest} attach </dev/null; (setsid {guest} attach </dev/null &); sleep 0.3; \
         sleep 0.3 | {guest} attach; echo over"
    );
    let outcome = client.run(&shell(&attempt));
    assert_eq!(outcome.text(), "over\n");
    let client = sandbox.attach();
    assert_eq!(client.hello.live_runs, 0);
}

#[test]
fn a_flood_of_connects_keeps_no_host_out() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let guest = sandbox.guest().display().to_string();
    let flood = client.start(&shell(&format!(
        "echo ready; for i in 1 2 3 4 5 6 7 8; do \
         (while :; do {guest} attach </dev/null; done) & done; wait"
    )));
    client.stdout_holds(flood, "ready");
    for _ in 0..3 {
        let mut other = sandbox.attach();
        other.ping();
        other.run(&argv(&["true"])).code();
    }
    client.ping();
}

#[test]
fn signals_from_inside_do_nothing_to_pid_1() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let stays = client.start(&argv(&["sleep", "300"]));
    client.started(stays);
    let outcome = client.run(&shell(
        "for signal in USR1 TERM STOP KILL INT HUP QUIT SEGV ABRT RTMIN CHLD; do \
         kill -s $signal 1; done; sleep 0.2; echo over",
    ));
    assert_eq!(outcome.text(), "over\n");
    // Queued ones, whose sender can be forged; where `kill` can send them.
    client.run(&shell("kill -q 0 -s USR1 1; kill -q 0 -s TERM 1; true"));
    client.ping();
    assert!(client.has_started(stays));
    drop(client);
    let client = sandbox.attach();
    assert_eq!(client.hello.kill_generation, 0);
}

#[test]
fn a_killed_relay_loses_the_stream_and_nothing_else() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut other = sandbox.attach();
    let mut request = shell("echo ready; sleep 300; true");
    request.background = true;
    let background = client.start(&request);
    client.stdout_holds(background, "ready");
    let foreground = client.start(&argv(&["sleep", "301"]));
    client.started(foreground);
    // Every relay, which is what has no parent inside.
    other.start(&shell(
        "for p in /proc/[0-9]*; do read -r line < $p/stat; set -- ${line##*) }; \
         [ $2 = 0 ] && [ ${p#/proc/} != 1 ] && kill -9 ${p#/proc/}; done; sleep 1",
    ));
    client.until_closed();
    other.until_closed();
    let mut client = sandbox.attach();
    wait_until(|| sandbox.supervisors().len() == 1);
    client.run(&argv(&["true"])).code();
    let client = sandbox.attach();
    assert_eq!(client.hello.live_runs, 1);
}

#[test]
fn a_stopped_relay_stalls_only_its_own_host() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut stopped = sandbox.attach();
    let writer = stopped.start(&argv(&["yes"]));
    stopped.be_slow(writer);
    stopped.started(writer);
    let relays: Vec<u32> = sandbox.processes();
    let mut client = sandbox.attach();
    client.run(&shell(
        "for p in /proc/[0-9]*; do read -r line < $p/stat; set -- ${line##*) }; \
         [ $2 = 0 ] && [ ${p#/proc/} -lt $$ ] && [ ${p#/proc/} != 1 ] && echo ${p#/proc/}; done | \
         sort -n | head -n 1 | xargs kill -STOP",
    ));
    assert!(relays.iter().any(|pid| state_of(*pid) == "T"));
    client.ping();
    client
        .run(&argv(&["head", "-c", "1000000", "/dev/zero"]))
        .code();
}

#[test]
fn a_killed_supervisor_costs_its_own_command_only() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let other = client.start(&shell("sleep 1; echo fine"));
    client.started(other);
    // The program's parent is the supervisor.
    let outcome = client.run(&shell(
        "(setsid sleep 300 &); sleep 300 & kill -9 $PPID; sleep 300",
    ));
    assert_eq!(outcome.exit.status, Status::SupervisorLost);
    assert!(outcome.exit.tree_ended, "{:?}", outcome.exit);
    let outcome = client.outcome(other);
    assert_eq!((outcome.text().as_str(), outcome.code()), ("fine\n", 0));
    wait_until(|| sandbox.supervisors().is_empty());
    wait_until(|| sandbox.zombies() == 0);
}

#[test]
fn a_stopped_supervisor_goes_on() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let outcome = client.run(&shell("kill -STOP $PPID; sleep 0.2; exit 7"));
    assert_eq!(outcome.code(), 7);
    // Again and again, until the time is over.
    let mut request = shell("while :; do kill -STOP $PPID; done");
    request.timeout_ms = Some(500);
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::TimedOut);
    assert!(outcome.exit.tree_ended, "{:?}", outcome.exit);
}

#[test]
fn stopping_and_killing_all_that_can_be_reached_spares_the_runtime() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    client.start(&shell("kill -9 -1"));
    client.until_closed();
    let mut client = sandbox.attach();
    client.run(&argv(&["true"])).code();
    let relay = wait_for(|| match sandbox.processes().as_slice() {
        [relay] => Some(*relay),
        _ => None,
    });
    client.start(&shell("kill -STOP -1"));
    wait_until(|| state_of(relay) == "T");
    let mut client = sandbox.attach();
    client.run(&argv(&["true"])).code();
    assert_eq!(client.kill_all().left, 0);
}

#[test]
fn nothing_of_pid_1_or_a_supervisor_can_be_looked_into() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    assert!(client.hello.shielded);
    let outcome = client.run(&shell(
        "for p in 1 $PPID; do for f in environ mem maps fd/0 root exe; do \
         cat /proc/$p/$f >/dev/null 2>&1 && echo open $p $f; \
         readlink /proc/$p/$f >/dev/null && echo link $p $f; done; done; echo over",
    ));
    assert_eq!(outcome.text(), "over\n");
}

#[test]
fn lowered_soft_limits_are_put_back() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let lower = "prlimit --pid 1 --nofile=3: --nproc=1: --fsize=1: --stack=4096: --as=4096: \
         --data=1: --sigpending=0:";
    client.run(&shell(lower)).code();
    let outcome = client.run(&shell("ulimit -n; ulimit -s; echo fine"));
    assert!(outcome.text().ends_with("fine\n"), "{}", outcome.text());
    let soft = client.hello.limits.open_files_soft.unwrap();
    assert!(outcome.text().starts_with(&format!("{soft}\n")));
    let mut other = sandbox.attach();
    other.run(&argv(&["true"])).code();
}

#[test]
fn lowered_hard_limits_on_files_are_refusals_and_no_crash() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let stays = client.start(&shell("echo ready; sleep 300; true"));
    client.stdout_holds(stays, "ready");
    client
        .run(&argv(&["prlimit", "--pid", "1", "--nofile=0:0"]))
        .code();
    let outcome = client.run(&argv(&["true"]));
    match outcome.exit.status {
        Status::NotStarted(not_started) => assert_eq!(not_started.why, NotStartedWhy::Resources),
        status => panic!("{status:?}"),
    }
    client.ping();
    // What was there before still ends. Without descriptors the relays cannot
    // be told apart from it, so they go as well.
    client.send(Kind::KillAll, 0, &[]);
    client.until_closed();
    wait_until(|| sandbox.processes().is_empty());
}

#[test]
fn lowered_hard_limits_on_memory_do_not_end_pid_1() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["cat"]);
    request.stdin = true;
    let cats: Vec<u32> = (0..30).map(|_| client.start(&request)).collect();
    let limits = [
        "--as=1:1",
        "--data=1:1",
        "--stack=1:1",
        "--memlock=0:0",
        "--nproc=1:1",
    ];
    let lower: Vec<&str> = ["prlimit", "--pid", "1"]
        .into_iter()
        .chain(limits)
        .collect();
    client.run(&argv(&lower)).code();
    // All that PID 1 has to do without the kernel's help.
    let bytes = vec![b'x'; 2_000_000];
    for run in &cats {
        client.write(*run, &bytes);
        client.end_input(*run);
    }
    for run in cats {
        assert_eq!(client.outcome(run).stdout.len(), bytes.len());
    }
    let outcome = client.run(&argv(&["true"]));
    assert!(!matches!(outcome.exit.status, Status::Exited(0)));
    client.ping();
    assert_eq!(client.kill_all().left, 0);
}

#[test]
fn a_program_that_is_stopped_before_it_runs_still_ends_in_time() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let stopper = client.start(&shell(
        "echo ready; while :; do for p in /proc/[0-9]*; do [ ${p#/proc/} -gt $$ ] && \
         kill -STOP ${p#/proc/}; done; done 2>/dev/null",
    ));
    client.stdout_holds(stopper, "ready");
    for _ in 0..20 {
        let mut request = argv(&["sleep", "300"]);
        request.timeout_ms = Some(100);
        let outcome = client.run(&request);
        assert_eq!(outcome.exit.status, Status::TimedOut);
        assert!(outcome.exit.tree_ended);
    }
}

#[test]
fn memory_stays_small_whatever_waits() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["sleep", "300"]);
    request.stdin = true;
    let window = vec![b'x'; 256 * 1024];
    let runs: Vec<u32> = (0..300)
        .map(|_| {
            let run = client.start(&request);
            client.write(run, &window);
            run
        })
        .collect();
    client.ping();
    client.kill_all();
    let busy = runs.into_iter().filter(|run| {
        let outcome = client.outcome(*run);
        matches!(&outcome.exit.status, Status::NotStarted(not) if not.why == NotStartedWhy::Busy)
    });
    assert!(busy.count() > 0);
    assert!(sandbox.peak_memory() < 48 * 1024 * 1024);
    wait_until(|| {
        let before = sandbox.cpu_time();
        std::thread::sleep(Duration::from_millis(200));
        sandbox.cpu_time() - before < Duration::from_millis(50)
    });
}

fn state_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit(") ").next().unwrap_or_default().to_owned();
    after.chars().take(1).collect()
}
