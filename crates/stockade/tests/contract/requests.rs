//! Requests for commands: defaults, and every fault.

use std::time::Duration;

use proptest::prelude::*;
use stockade::exec::{AtOutputLimit, Background, ExecBuilder, Program};
use stockade::{ErrorKind, ExecRequest, Stdin};

fn fields(builder: ExecBuilder) -> Vec<&'static str> {
    match builder.build() {
        Ok(_) => Vec::new(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
            error.faults().iter().map(|fault| fault.field()).collect()
        }
    }
}

fn one() -> ExecBuilder {
    ExecRequest::argv(["true"])
}

#[test]
fn defaults_bound_a_command_in_time_and_output() {
    let request = one().build().unwrap();
    assert_eq!(request.timeout(), Duration::from_secs(120));
    assert_eq!(request.output_limit(), 8 * 1024 * 1024);
    assert_eq!(request.at_output_limit(), AtOutputLimit::End);
    assert_eq!(request.ends_after(), Some(8 * 1024 * 1024));
    assert_eq!(request.background(), Background::Kill);
    assert!(!request.stdin().is_open() && !request.tools());
    assert!(request.cwd().is_none() && request.tty().is_none());
}

#[test]
fn arguments_are_bytes_of_any_owner() {
    let texts: Vec<String> = vec!["a".to_owned(), "b".to_owned()];
    let request = ExecRequest::argv(&texts).build().unwrap();
    let expected = Program::Argv(vec![b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(*request.program(), expected);
    let raw = ExecRequest::argv([&[0xff_u8, b'x'][..]]).build().unwrap();
    assert_eq!(*raw.program(), Program::Argv(vec![vec![0xff, b'x']]));
    let empty = ExecRequest::argv(["echo", ""]).build();
    assert!(empty.is_ok(), "an argument may be empty");
}

#[test]
fn every_fault_is_reported_at_once() {
    let broken = ExecRequest::argv([""; 0])
        .env("A=B", "x")
        .cwd("")
        .timeout(Duration::ZERO);
    assert_eq!(fields(broken), ["argv", "env", "cwd", "timeout"]);
}

#[test]
fn a_program_has_a_name_and_no_argument_a_nul() {
    assert_eq!(fields(ExecRequest::argv([""])), ["argv"]);
    assert_eq!(fields(ExecRequest::argv(["a\0"])), ["argv"]);
    assert_eq!(fields(ExecRequest::argv(["a", "b\0c"])), ["argv"]);
    assert_eq!(fields(ExecRequest::shell("")), ["shell"]);
    assert_eq!(fields(ExecRequest::shell("a\0")), ["shell"]);
}

#[test]
fn one_argument_is_as_long_as_the_kernel_takes() {
    let longest = "x".repeat(131_071);
    assert_eq!(fields(ExecRequest::argv(["echo", &longest])), [""; 0]);
    let longer = format!("{longest}x");
    assert_eq!(fields(ExecRequest::argv(["echo", &longer])), ["argv"]);
    assert_eq!(fields(ExecRequest::shell(&longer)), ["shell"]);
}

#[test]
fn two_mebibytes_of_arguments_are_refused_with_the_way_out() {
    let argv = vec!["x".repeat(64 * 1024); 32];
    let error = ExecRequest::argv(&argv).build().unwrap_err();
    let line = error.to_string();
    assert!(
        line.contains("standard input or as a file") && line.len() < 1000,
        "{line}"
    );
}

#[test]
fn bytes_that_are_no_text_take_more_room_on_their_way() {
    let argv = vec![vec![0xff_u8; 100_000]; 3];
    assert_eq!(fields(ExecRequest::argv(&argv)), ["argv"]);
    let argv = vec![vec![b'x'; 100_000]; 3];
    assert_eq!(fields(ExecRequest::argv(&argv)), [""; 0]);
}

#[test]
fn variables_keep_the_rules_and_the_last_of_a_name_counts() {
    for (name, value) in [("", "x"), ("A=", "x"), ("A\0", "x"), ("A", "\0")] {
        assert_eq!(fields(one().env(name, value)), ["env"], "{name:?}");
    }
    assert!(fields(one().env("A", "x".repeat(131_070))).contains(&"env"));
    let request = one()
        .env("A", "1")
        .envs([("B", "2"), ("A", "3")])
        .build()
        .unwrap();
    let env: Vec<(&str, &[u8])> = request.env().collect();
    assert_eq!(env, [("B", &b"2"[..]), ("A", &b"3"[..])]);
}

#[test]
fn working_directories_may_be_relative_or_absolute() {
    for good in ["a", "../a", "/", "/srv", "a b"] {
        assert_eq!(fields(one().cwd(good)), [""; 0], "{good}");
    }
    for bad in ["", "a\0", &"a".repeat(4096)] {
        assert_eq!(fields(one().cwd(bad)), ["cwd"]);
    }
}

#[test]
fn there_is_no_command_without_a_timeout() {
    let week = Duration::from_secs(7 * 24 * 3600);
    assert_eq!(fields(one().timeout(week)), [""; 0]);
    assert_eq!(
        fields(one().timeout(week + Duration::from_millis(1))),
        ["timeout"]
    );
    assert_eq!(fields(one().timeout(Duration::MAX)), ["timeout"]);
    assert_eq!(fields(one().timeout(Duration::ZERO)), ["timeout"]);
}

#[test]
fn only_an_ending_rule_below_no_limit_ends_a_command() {
    let unlimited = one().output_limit(u64::MAX).build().unwrap();
    assert_eq!(unlimited.ends_after(), None);
    let kept = one().at_output_limit(AtOutputLimit::KeepHeadAndTail);
    assert_eq!(kept.build().unwrap().ends_after(), None);
    assert_eq!(one().output_limit(0).build().unwrap().ends_after(), Some(0));
}

#[test]
fn secrets_of_a_request_are_never_shown() {
    let secret = "hunter2";
    let builder = one().env("TOKEN", secret).stdin(Stdin::bytes(secret));
    let mut shown = format!("{builder:?}");
    shown += &format!("{:?}", builder.build().unwrap());
    assert!(
        shown.contains("TOKEN") && !shown.contains(secret),
        "{shown}"
    );
    let error = one().env("A=B", secret).build().unwrap_err();
    assert!(!format!("{error} {error:?}").contains(secret));
}

proptest! {
    #[test]
    fn what_was_taken_fits_a_kernel_and_a_frame(
        argv in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8),
        env in prop::collection::vec((any::<String>(), prop::collection::vec(any::<u8>(), 0..50)), 0..5),
        cwd in prop::option::of(prop::collection::vec(any::<u8>(), 0..50)),
    ) {
        let mut builder = ExecRequest::argv(&argv).envs(env);
        if let Some(cwd) = cwd {
            builder = builder.cwd(cwd);
        }
        if let Ok(request) = builder.build() {
            prop_assert!(argv.iter().flatten().all(|byte| *byte != 0));
            prop_assert!(!argv[0].is_empty());
            for (name, value) in request.env() {
                prop_assert!(!name.is_empty() && !name.contains(['=', '\0']) && !value.contains(&0));
            }
        }
    }
}
