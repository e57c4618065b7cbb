//! Every verb against every way in which a call goes wrong.

use std::time::Duration;

use docker_driver::stand_in::{Rule, Step};
use docker_driver::{Bounds, CallError, CallErrorKind, Outcome};
use futures_util::future::join_all;

use crate::support::{Bench, ID, exists, pid_at};
use crate::verbs::{Case, Garbage, all};

/// What docker says in these tests when it fails.
const COMPLAINT: &str = "Error response from daemon: the engine has hiccups";

/// Runs every verb once, each against its own stand-in that does `steps`.
async fn each(
    steps: impl Fn(&Case) -> Vec<Step>,
    check: impl AsyncFn(&Case, &Bench, Result<String, CallError>),
) {
    each_within(Duration::from_secs(60), steps, check).await;
}

async fn each_within(
    timeout: Duration,
    steps: impl Fn(&Case) -> Vec<Step>,
    check: impl AsyncFn(&Case, &Bench, Result<String, CallError>),
) {
    let cases = all();
    let runs = cases.iter().map(async |case| {
        let rule = steps(case)
            .into_iter()
            .fold(Rule::on(&case.words()).nth(case.first()), Rule::step);
        let bench = Bench::with_timeout(
            timeout,
            [
                rule,
                nothing_there("ps"),
                nothing_there("volume"),
                nothing_there("image"),
            ],
        )
        .await;
        let result = (case.call)(bench.docker.clone(), Bounds::patient()).await;
        check(case, &bench, result).await;
        bench.assert_all_reaped().await;
    });
    join_all(runs).await;
}

/// Follow-ups find nothing out.
fn nothing_there(word: &str) -> Rule {
    Rule::on(&[word]).err(COMPLAINT).exit(1)
}

fn good(case: &Case) -> Vec<Step> {
    vec![Step::WriteId(ID.to_owned()), Step::Out(case.good.clone())]
}

fn assert_answers(case: &Case, result: Result<String, CallError>) {
    match result {
        Ok(answer) => assert_eq!(answer, case.answer, "{}", case.name),
        Err(error) => panic!("{}: {error:?}", case.name),
    }
}

fn assert_fails(case: &Case, result: Result<String, CallError>, kind: CallErrorKind) -> CallError {
    let error = result.expect_err(case.name);
    assert_eq!(error.kind(), kind, "{}: {error:?}", case.name);
    assert_eq!(error.verb(), case.verb);
    assert!(
        error
            .command()
            .starts_with(&format!("docker {}", case.words().join(" ")))
    );
    error
}

#[tokio::test]
async fn an_answer_is_read() {
    each(good, async |case, bench, result| {
        assert_answers(case, result);
        assert_eq!(
            bench.docker.log().counts().of(case.verb),
            case.first() as u64,
            "{}",
            case.name
        );
    })
    .await;
}

#[tokio::test]
async fn a_failure_is_an_error_whose_words_stay_out_of_its_message() {
    let steps = |_: &Case| vec![Step::Err(COMPLAINT.to_owned()), Step::Exit(125)];
    each(steps, async |case, _, result| {
        let error = assert_fails(case, result, case.unknown_failure());
        assert_eq!(error.detail(), COMPLAINT);
        assert!(!error.to_string().contains("hiccups"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_hangs_is_ended_and_reaped() {
    let steps = |_: &Case| vec![Step::IgnoreTerm, Step::Mark("hangs".to_owned()), Step::Hang];
    each_within(
        Duration::from_secs(5),
        steps,
        async |case, bench, result| {
            assert_fails(case, result, CallErrorKind::TimedOut);
            let pid = pid_at(&bench.stand_in, "hangs");
            assert!(!exists(pid), "{} is not reaped", case.name);
            let recent = bench.docker.log().recent();
            assert!(
                recent
                    .iter()
                    .any(|call| call.verb == case.verb && call.outcome == Outcome::TimedOut)
            );
        },
    )
    .await;
}

#[tokio::test]
async fn garbage_is_never_taken_for_an_answer() {
    let garbage = b"\x00\xff{\"ID\":\"\xc3\x28\", [[[[\n\n{}\nnull\n".to_vec();
    let steps = |_: &Case| {
        vec![
            Step::WriteId(ID.to_owned()),
            Step::OutBytes(garbage.clone()),
        ]
    };
    each(steps, async |case, _, result| match case.garbage {
        Garbage::Refused => {
            let error = assert_fails(case, result, CallErrorKind::UnexpectedAnswer);
            assert!(std::error::Error::source(&error).is_some());
        }
        Garbage::Ignored => assert!(result.is_ok(), "{}: {result:?}", case.name),
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_comes_byte_by_byte_is_read() {
    let steps = |case: &Case| {
        let mut steps = vec![Step::WriteId(ID.to_owned())];
        let bytes = case.good.as_bytes();
        for chunk in bytes.chunks(bytes.len().div_ceil(20).max(1)) {
            steps.extend([Step::OutBytes(chunk.to_vec()), Step::Pause(2)]);
        }
        steps
    };
    each(steps, async |case, _, result| assert_answers(case, result)).await;
}

#[tokio::test]
async fn an_answer_of_which_half_has_come_is_no_answer() {
    let steps = |case: &Case| {
        let half = &case.good.as_bytes()[..case.good.len() / 2];
        vec![Step::OutBytes(half.to_vec()), Step::Die]
    };
    each(steps, async |case, _, result| {
        assert_fails(case, result, CallErrorKind::Signalled);
    })
    .await;
}

#[tokio::test]
async fn more_output_than_a_verb_may_have_ends_the_call() {
    let steps = |_: &Case| vec![Step::IgnoreTerm, Step::Flood(17 * 1024 * 1024), Step::Hang];
    let told = |case: &Case| matches!(case.name, "Pull" | "Build");
    each_within(Duration::from_secs(20), steps, async |case, _, result| {
        // What is told line by line is never kept, so only time bounds it.
        let kind = if told(case) {
            CallErrorKind::TimedOut
        } else {
            CallErrorKind::OutputTooLarge
        };
        assert_fails(case, result, kind);
    })
    .await;
}

#[tokio::test]
async fn complaints_beside_a_success_are_no_failure() {
    let steps = |case: &Case| {
        let mut steps = vec![
            Step::Err(
                "WARNING: Error loading config file: no such container, permission denied\n".into(),
            ),
            Step::FloodErr(1024 * 1024),
        ];
        steps.extend(good(case));
        steps
    };
    each(steps, async |case, _, result| match result {
        // Of a program that ran, standard error is data.
        Ok(answer) if case.name == "RunForeground" => assert!(answer.contains("printed")),
        result => assert_answers(case, result),
    })
    .await;
}

#[tokio::test]
async fn a_process_that_outlives_the_client_and_holds_its_pipes_delays_nothing() {
    let steps = |case: &Case| {
        let mut steps = vec![Step::HoldPipes("let-go".to_owned())];
        steps.extend(good(case));
        steps
    };
    each(steps, async |case, bench, result| {
        assert_answers(case, result);
        bench.stand_in.open("let-go");
    })
    .await;
}

#[tokio::test]
async fn a_caller_who_cancels_is_answered_although_the_call_hangs() {
    let cases = all();
    let runs = cases.iter().map(async |case| {
        let bench = Bench::new([
            Rule::on(&case.words())
                .nth(case.first())
                .step(Step::IgnoreTerm)
                .step(Step::Mark("hangs".into()))
                .step(Step::WaitFor("go on".into()))
                .step(Step::WriteId(ID.to_owned()))
                .out(case.good.clone()),
            Rule::on(&["rm"]).out(ID),
            Rule::on(&["ps"]),
            Rule::on(&["unpause"]).out(ID),
            Rule::on(&["volume", "inspect"]).out("[]").exit(1),
            Rule::on(&["volume", "ls"]),
        ])
        .await;
        let bounds = Bounds::patient();
        let call = tokio::spawn((case.call)(bench.docker.clone(), bounds.clone()));
        bench.stand_in.reached("hangs").await;
        bounds.cancel.cancel();
        let error = assert_fails(case, call.await.unwrap(), CallErrorKind::Cancelled);
        let pid = pid_at(&bench.stand_in, "hangs");
        if case.is_query() {
            crate::support::gone(pid).await;
            assert_eq!(*error.aftermath(), docker_driver::Aftermath::Clean);
        } else {
            assert!(exists(pid), "{}: a change was cut off", case.name);
            let pending = matches!(error.aftermath(), docker_driver::Aftermath::Pending(_));
            assert!(pending, "{}: {error:?}", case.name);
        }
        bench.stand_in.open("go on");
        bench.assert_all_reaped().await;
    });
    join_all(runs).await;
}
