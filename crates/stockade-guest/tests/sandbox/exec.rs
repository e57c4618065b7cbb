//! What a program writes, how it ends, and what that cost.

use stockade_wire::Kind;
use stockade_wire::Text;
use stockade_wire::frame::EndReason;
use stockade_wire::limits::{RUNNING, WAITING};
use stockade_wire::message::{NotStarted, NotStartedWhy, Status};

use crate::support::{Sandbox, argv, shell, wait_until};

#[test]
fn output_is_exact_to_the_byte_on_both_streams() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    std::fs::write(sandbox.guest().with_file_name("bytes"), &every_byte).unwrap();
    let bytes = sandbox.guest().with_file_name("bytes");
    let outcome = client.run(&shell(&format!(
        "cat {0}; head -c 1000 {0} >&2",
        bytes.display()
    )));
    assert_eq!(outcome.code(), 0);
    assert!(outcome.stdout == every_byte);
    assert!(outcome.stderr == every_byte[..1000]);
}

#[test]
fn codes_that_look_like_signals_or_timeouts_are_codes() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for code in [0, 1, 124, 125, 126, 127, 137, 143, 255] {
        let mut request = shell(&format!("exit {code}"));
        request.timeout_ms = Some(20_000);
        let outcome = client.run(&request);
        assert_eq!(outcome.code(), code);
        assert!(!outcome.exit.out_of_memory);
    }
}

#[test]
fn a_death_by_signal_is_told_as_that_signal() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("PIPE", 13)] {
        let outcome = client.run(&shell(&format!("kill -{name} $$")));
        assert_eq!(outcome.exit.status, Status::Signaled(number));
        assert!(outcome.exit.tree_ended);
    }
}

#[test]
fn signals_of_the_host_reach_the_programs_group_also_when_it_asked_early() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let run = client.start(&shell(
        "trap 'echo caught; exit 3' USR1; echo ready; sleep 60 & wait",
    ));
    client.stdout_holds(run, "ready");
    client.send(Kind::Signal, run, &[10]);
    let outcome = client.outcome(run);
    assert_eq!(outcome.text(), "ready\ncaught\n");
    assert_eq!(outcome.code(), 3);
    let run = client.start(&argv(&["sleep", "60"]));
    client.send(Kind::Signal, run, &[15]);
    assert_eq!(client.outcome(run).exit.status, Status::Signaled(15));
    let run = client.start(&argv(&["true"]));
    client.send(Kind::Signal, run, &[200]);
    client.outcome(run).code();
}

#[test]
fn the_environment_is_the_sandboxs_own_with_the_commands_on_top() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["env", "-0"]);
    request.env = vec![
        ("EMPTY".into(), "".into()),
        ("ODD".into(), Text::from(&b"a=b\n\xff"[..])),
    ];
    let outcome = client.run(&request);
    let variables: Vec<&[u8]> = outcome.stdout.split(|byte| *byte == 0).collect();
    for expected in [&b"INHERITED=yes"[..], b"EMPTY=", b"ODD=a=b\n\xff"] {
        assert!(variables.contains(&expected), "{:?}", outcome.text());
    }
}

#[test]
fn a_program_is_looked_up_in_the_commands_own_path() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["true"]);
    request.env = vec![("PATH".into(), "/nowhere".into())];
    let outcome = client.run(&request);
    assert_eq!(why(&outcome.exit.status), NotStartedWhy::NotFound);
    request.env = vec![("PATH".into(), "/nowhere::/usr/bin:/bin".into())];
    client.run(&request).code();
}

#[test]
fn the_working_directory_is_the_sandboxs_or_relative_to_it() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let work = sandbox.work().display().to_string();
    client.run(&shell("mkdir -p a/b")).code();
    for (cwd, expected) in [
        (None, work.clone()),
        (Some("a/b"), format!("{work}/a/b")),
        (Some("/"), "/".to_owned()),
    ] {
        let mut request = argv(&["pwd", "-P"]);
        request.cwd = cwd.map(Text::from);
        assert_eq!(client.run(&request).text(), format!("{expected}\n"));
    }
}

#[test]
fn why_a_program_never_ran_is_told_apart_and_nothing_is_written() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let made = client.run(&shell(
        "echo exit > plain; : > empty; chmod +x empty; mkdir folder; \
         printf '#!/no/interpreter\\n' > script; chmod +x script; mkdir shut; chmod 000 shut",
    ));
    made.code();
    let long = "x".repeat(131_072);
    for (words, cwd, expected) in [
        (&["no-such-program"][..], None, NotStartedWhy::NotFound),
        (&["./absent"], None, NotStartedWhy::NotFound),
        (&["./script"], None, NotStartedWhy::NotFound),
        (&["./plain"], None, NotStartedWhy::NotExecutable),
        (&["./folder"], None, NotStartedWhy::NotExecutable),
        (&["./empty"], None, NotStartedWhy::BadFormat),
        (&["true"], Some("absent"), NotStartedWhy::WorkingDirectory),
        (&["true"], Some("plain"), NotStartedWhy::WorkingDirectory),
        (&["true"], Some("shut"), NotStartedWhy::WorkingDirectory),
        (&["true", &long], None, NotStartedWhy::TooLong),
        (&[], None, NotStartedWhy::Invalid),
    ] {
        let mut request = argv(words);
        request.cwd = cwd.map(Text::from);
        let outcome = client.run(&request);
        assert_eq!(why(&outcome.exit.status), expected, "{words:?} {cwd:?}");
        assert!(outcome.stdout.is_empty() && outcome.stderr.is_empty());
        assert!(outcome.started.is_none() && outcome.exit.tree_ended);
    }
    client.run(&argv(&["true"])).code();
}

#[test]
fn a_request_that_is_no_request_is_invalid_and_the_channel_lives() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let wrong_program = r#"{"program":7,"env":[],"cwd":null,"stdin":false,"tty":null,
        "timeout_ms":null,"output_limit":null,"background":false}"#;
    for request in ["", "{", "[]", wrong_program] {
        let run = client.start(&argv(&["true"]));
        client.outcome(run).code();
        let run = client.start_raw(request.as_bytes());
        let outcome = client.outcome(run);
        assert_eq!(
            why(&outcome.exit.status),
            NotStartedWhy::Invalid,
            "{request}"
        );
    }
}

#[test]
fn a_long_request_comes_in_parts_and_one_over_the_bound_is_refused() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let piece = "x".repeat(100_000);
    let words: Vec<&str> = ["printf", "%s"]
        .into_iter()
        .chain([piece.as_str(); 7])
        .collect();
    let outcome = client.run(&argv(&words));
    assert_eq!(outcome.stdout.len(), 700_000);
    let words: Vec<&str> = ["printf", "%s"]
        .into_iter()
        .chain([piece.as_str(); 11])
        .collect();
    let outcome = client.run(&argv(&words));
    assert_eq!(why(&outcome.exit.status), NotStartedWhy::TooLong);
    // As many words as a request can hold, which no kernel takes.
    let words: Vec<&str> = ["true"].into_iter().chain([""].repeat(340_000)).collect();
    let outcome = client.run(&argv(&words));
    assert_eq!(why(&outcome.exit.status), NotStartedWhy::TooLong);
    client.run(&argv(&["true"])).code();
}

#[test]
fn a_shell_line_without_a_shell_says_so_and_programs_still_run() {
    let options = crate::support::Options {
        prepare: "mount --bind /dev/null $(readlink -f /bin/sh)",
        ..Default::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    let outcome = client.run(&shell("true"));
    assert_eq!(why(&outcome.exit.status), NotStartedWhy::NoShell);
    client.run(&argv(&["true"])).code();
}

#[test]
fn a_timeout_keeps_what_was_written_and_ends_what_ignores_signals() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("trap '' TERM INT HUP; echo step 1; sleep 60; echo step 2");
    request.timeout_ms = Some(300);
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.status, Status::TimedOut);
    assert_eq!(outcome.text(), "step 1\n");
    assert!(outcome.exit.tree_ended && outcome.exit.wall_ms >= 300);
    wait_until(|| sandbox.supervisors().is_empty());
    client.run(&argv(&["true"])).code();
}

#[test]
fn the_host_ends_a_command_for_its_own_reason() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    for (reason, expected) in [
        (EndReason::Cancelled, Status::Cancelled),
        (EndReason::OutputLimit, Status::OutputLimit),
        (EndReason::TimedOut, Status::TimedOut),
    ] {
        let run = client.start(&shell("echo ready; sleep 60"));
        client.stdout_holds(run, "ready");
        client.send(Kind::End, run, &[reason as u8]);
        let outcome = client.outcome(run);
        assert_eq!(outcome.exit.status, expected);
        assert!(outcome.exit.tree_ended);
    }
}

#[test]
fn programs_start_with_no_signal_blocked_or_ignored_and_their_own_limits() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let outcome = client.run(&argv(&["cat", "/proc/self/status", "/proc/self/limits"]));
    let text = outcome.text();
    for line in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"] {
        assert!(text.contains(line), "{text}");
    }
    let soft = client.hello.limits.open_files_soft.unwrap().to_string();
    let files = text
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    assert_eq!(files.split_whitespace().nth(3), Some(soft.as_str()));
    let open = client.run(&argv(&["ls", "/proc/self/fd"]));
    // The fourth is that of `ls` itself.
    assert_eq!(open.text(), "0\n1\n2\n3\n");
}

#[test]
fn time_and_memory_are_those_of_the_whole_tree() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let outcome = client.run(&shell(&format!("({burn}) & wait; sleep 0.1")));
    outcome.code();
    assert!(outcome.exit.cpu_user_us > 10_000, "{:?}", outcome.exit);
    assert!(outcome.exit.wall_ms >= 100);
    assert!(outcome.exit.peak_memory > 500_000);
    assert!(!outcome.exit.out_of_memory);
    let started = outcome.started.unwrap();
    assert!(started.pid > 1 && started.waited_ms < 10_000);
}

#[test]
fn two_hundred_commands_at_once_all_answer_with_their_own_output() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let runs: Vec<(u32, u32)> = (0..200)
        .map(|number| {
            (
                client.start(&shell(&format!("echo {number}; exit {}", number % 7))),
                number,
            )
        })
        .collect();
    for (run, number) in runs {
        let outcome = client.outcome(run);
        assert_eq!(outcome.text(), format!("{number}\n"));
        assert_eq!(outcome.code(), i32::try_from(number % 7).unwrap());
    }
    wait_until(|| sandbox.zombies() == 0);
}

#[test]
fn commands_beyond_the_places_wait_and_start_in_order() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut sleeper = argv(&["cat"]);
    sleeper.stdin = true;
    let running: Vec<u32> = (0..RUNNING).map(|_| client.start(&sleeper)).collect();
    for run in &running {
        client.started(*run);
    }
    let mut impatient = argv(&["true"]);
    impatient.timeout_ms = Some(10_000);
    let first = client.start(&impatient);
    let second = client.start(&argv(&["true"]));
    let dropped = client.start(&argv(&["true"]));
    client.send(Kind::End, dropped, &[EndReason::Cancelled as u8]);
    assert_eq!(client.outcome(dropped).exit.status, Status::Cancelled);
    client.ping();
    assert!(!client.has_started(first) && !client.has_started(second));
    client.end_input(running[0]);
    let outcome = client.outcome(first);
    outcome.code();
    client.outcome(second).code();
    client.kill_all();
    for run in &running[1..] {
        assert_eq!(client.outcome(*run).exit.status, Status::Cancelled);
    }
}

#[test]
fn a_full_queue_is_busy_and_empties_again() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut sleeper = argv(&["cat"]);
    sleeper.stdin = true;
    let all: Vec<u32> = (0..RUNNING + WAITING + 3)
        .map(|_| client.start(&sleeper))
        .collect();
    for run in &all[RUNNING + WAITING..] {
        let outcome = client.outcome(*run);
        assert_eq!(why(&outcome.exit.status), NotStartedWhy::Busy);
    }
    client.kill_all();
    for run in &all[..RUNNING + WAITING] {
        assert_eq!(client.outcome(*run).exit.status, Status::Cancelled);
    }
    client.run(&argv(&["true"])).code();
}

fn why(status: &Status) -> NotStartedWhy {
    match status {
        Status::NotStarted(NotStarted { why, .. }) => *why,
        status => panic!("{status:?}"),
    }
}
