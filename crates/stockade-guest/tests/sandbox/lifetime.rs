//! Beginning, heartbeats and end of connections and of PID 1 itself.

use std::time::Duration;

use stockade_wire::Kind;
use stockade_wire::ends::End;
use stockade_wire::message::{Goodbye, Status};

use crate::support::{Client, Options, Sandbox, argv, shell, wait_until};

#[test]
fn everything_is_killed_on_a_signal_from_outside() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&shell("(setsid sleep 300 &); echo ready; sleep 300"));
    client.stdout_holds(run, "ready");
    sandbox.signal("USR1");
    // What the host relies on is a fresh channel: an attached relay may be
    // outlived by the kill or not.
    wait_until(|| sandbox.supervisors().is_empty());
    let mut client = sandbox.attach();
    assert_eq!(client.hello.kill_generation, 1);
    assert_eq!(client.hello.live_runs, 0);
    assert!(sandbox.supervisors().is_empty());
    client.run(&argv(&["true"])).code();
}

#[test]
fn the_engines_stop_ends_everything_with_a_goodbye() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&shell("trap '' TERM; echo ready; sleep 300"));
    client.stdout_holds(run, "ready");
    sandbox.signal("TERM");
    client.until_closed();
    assert_eq!(client.goodbye, Some(Goodbye::Stopped));
    assert_eq!(sandbox.end(), Some(End::Stopped));
}

#[test]
fn without_a_host_it_ends_at_the_idle_limit() {
    let Some(sandbox) = Sandbox::with(&idle(Duration::from_millis(300))) else {
        return;
    };
    assert_eq!(sandbox.end(), Some(End::IdleLimit));
}

#[test]
fn a_host_that_says_nothing_any_more_is_told_of_the_idle_limit() {
    let Some(sandbox) = Sandbox::with(&idle(Duration::from_millis(700))) else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["sleep", "300"]);
    request.background = true;
    let run = client.start(&request);
    client.started(run);
    client.until_closed();
    assert_eq!(client.goodbye, Some(Goodbye::Idle));
    assert_eq!(sandbox.end(), Some(End::IdleLimit));
}

#[test]
fn a_host_that_is_heard_keeps_it_alive() {
    let Some(sandbox) = Sandbox::with(&idle(Duration::from_millis(800))) else {
        return;
    };
    let mut client = sandbox.attach();
    for _ in 0..20 {
        client.ping();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(client.goodbye.is_none());
    client.run(&argv(&["true"])).code();
}

#[test]
fn a_connection_that_never_answers_the_hello_does_not_count_as_a_host() {
    let Some(sandbox) = Sandbox::with(&idle(Duration::from_millis(800))) else {
        return;
    };
    let mut silent = Client::open_silently(sandbox.relay());
    for _ in 0..5 {
        silent.ping();
    }
    silent.until_closed();
    assert_eq!(silent.goodbye, Some(Goodbye::Idle));
    assert_eq!(sandbox.end(), Some(End::IdleLimit));
}

#[test]
fn at_its_maximum_age_it_ends_whoever_is_there() {
    let options = Options {
        maximum_age: Duration::from_millis(1500),
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&argv(&["sleep", "300"]));
    client.started(run);
    client.until_closed();
    assert_eq!(client.goodbye, Some(Goodbye::MaximumAge));
    assert_eq!(sandbox.end(), Some(End::MaximumAge));
}

#[test]
fn a_host_that_breaks_the_protocol_is_told_so_and_its_commands_end() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    type Break = fn(&mut Client, u32);
    let breaks: [(&str, Break); 9] = [
        ("no frame", |client, _| client.send_raw(&[0xee; 64])),
        ("too long", |client, _| {
            client.send_raw(&[0x13, 1, 0, 0, 0, 255, 255, 255, 255])
        }),
        ("a guest's frame", |client, run| {
            client.send(Kind::Exit, run, b"{}")
        }),
        ("a second welcome", |client, _| {
            client.send(Kind::Welcome, 0, br#"{"protocol":1}"#)
        }),
        ("a number twice", |client, run| {
            client.send(Kind::Start, run, b"{}")
        }),
        ("run 0", |client, _| client.send(Kind::Start, 0, b"{}")),
        ("no reason", |client, run| {
            client.send(Kind::End, run, &[77])
        }),
        ("too much credit", |client, run| {
            client.send(Kind::Credit, run, &[1, 255, 255, 255, 255])
        }),
        ("a long ping", |client, _| {
            client.send(Kind::Ping, 0, &[0; 17])
        }),
    ];
    let mut bystander = sandbox.attach();
    for (name, breach) in breaks {
        let mut client = sandbox.attach();
        let run = client.start(&argv(&["sleep", "300"]));
        client.started(run);
        breach(&mut client, run);
        client.until_closed();
        assert_eq!(client.goodbye, Some(Goodbye::Protocol), "{name}");
        wait_until(|| sandbox.supervisors().is_empty());
    }
    bystander.run(&argv(&["true"])).code();
}

#[test]
fn nothing_is_served_before_a_version_is_agreed_on() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    for (kind, payload) in [
        (Kind::Welcome, &br#"{"protocol":999}"#[..]),
        (Kind::Welcome, b"{}"),
        (Kind::KillAll, b""),
        (Kind::Start, b"{}"),
    ] {
        let mut client = Client::open_silently(sandbox.relay());
        client.send(kind, u32::from(kind == Kind::Start), payload);
        client.until_closed();
        assert_eq!(client.goodbye, Some(Goodbye::Protocol), "{kind:?}");
    }
}

#[test]
fn frames_for_a_run_that_is_over_are_no_breach() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&argv(&["true"]));
    client.outcome(run).code();
    for (kind, payload) in [
        (Kind::Stdin, &b"x"[..]),
        (Kind::StdinEnd, b""),
        (Kind::Credit, &[1, 1, 0, 0, 0]),
        (Kind::Signal, &[9]),
        (Kind::End, &[0]),
        (Kind::Resize, &[1, 0, 1, 0]),
        (Kind::Detach, b""),
    ] {
        client.send(kind, run, payload);
        client.send(kind, 4242, payload);
    }
    client.ping();
    assert!(client.goodbye.is_none());
}

#[test]
fn several_hosts_have_their_own_numbers() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut clients: Vec<Client> = (0..5).map(|_| sandbox.attach()).collect();
    let runs: Vec<u32> = clients
        .iter_mut()
        .enumerate()
        .map(|(number, client)| client.start(&shell(&format!("sleep 0.1; echo {number}"))))
        .collect();
    for (number, (client, run)) in clients.iter_mut().zip(runs).enumerate() {
        assert_eq!(run, 1);
        let outcome = client.outcome(run);
        assert_eq!(outcome.text(), format!("{number}\n"));
        assert!(matches!(outcome.exit.status, Status::Exited(0)));
    }
}

fn idle(limit: Duration) -> Options {
    Options {
        idle_limit: limit,
        ..Options::default()
    }
}
