//! Failures that a second question explains better than docker's words.

use docker_driver::stand_in::{Rule, Step};
use docker_driver::{
    Bounds, CallError, CallErrorKind, CopyIn, InspectContainer, InspectImage, InspectVolume,
    KillContainer, Removal, RemoveContainer, RemoveVolume, RunDetached, RunForeground, Signal,
};

use crate::support::{Bench, ID, id, image, options, path, volume};

/// Words of no version and no language.
const STRANGE: &str = "Fehlermeldung vom Dienst: gibt es nicht";

/// How docker fails at something that may be absent.
fn fails(words: &[&str]) -> Rule {
    Rule::on(words).out("[]\n").err(STRANGE).exit(1)
}

fn row() -> String {
    format!("{{\"ID\":\"{ID}\",\"Names\":\"some-container\",\"State\":\"exited\"}}\n")
}

#[tokio::test]
async fn what_does_not_exist_is_an_answer_to_a_question_in_whatever_words_docker_says_so() {
    let bench = Bench::new([
        fails(&["container", "inspect"]),
        fails(&["volume", "inspect"]),
        fails(&["image", "inspect"]),
        Rule::on(&["ps"]),
        Rule::on(&["volume", "ls"]),
    ])
    .await;
    let bounds = Bounds::patient();
    assert_eq!(
        bench
            .docker
            .query(&bounds, InspectContainer::new(id()))
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        bench
            .docker
            .query(&bounds, InspectVolume::new(volume()))
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        bench
            .docker
            .query(&bounds, InspectImage::new(image()))
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn a_failure_about_something_that_exists_stays_a_failure() {
    let volume_row = "{\"Name\":\"some-volume\"}\n";
    let bench = Bench::new([
        fails(&["container", "inspect"]),
        fails(&["volume", "inspect"]),
        Rule::on(&["image", "inspect"]).err(STRANGE).exit(1),
        Rule::on(&["ps"]).out(row()),
        Rule::on(&["volume", "ls"]).out(volume_row),
    ])
    .await;
    let bounds = Bounds::patient();
    let failures = [
        bench
            .docker
            .query(&bounds, InspectContainer::new(id()))
            .await
            .map(drop),
        bench
            .docker
            .query(&bounds, InspectVolume::new(volume()))
            .await
            .map(drop),
        bench
            .docker
            .query(&bounds, InspectImage::new(image()))
            .await
            .map(drop),
    ];
    for failure in failures {
        assert_eq!(failure.unwrap_err().kind(), CallErrorKind::Other);
    }
}

#[tokio::test]
async fn an_engine_that_is_away_makes_nothing_absent() {
    let away = "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?";
    let words: [&[&str]; 4] = [&["container"], &["volume"], &["image"], &["rm"]];
    let rules = words.map(|words| Rule::on(words).out("[]\n").err(away).exit(1));
    let bench = Bench::new(rules).await;
    let bounds = Bounds::patient();
    let failures = [
        bench
            .docker
            .query(&bounds, InspectContainer::new(id()))
            .await
            .map(drop),
        bench
            .docker
            .query(&bounds, InspectVolume::new(volume()))
            .await
            .map(drop),
        bench
            .docker
            .query(&bounds, InspectImage::new(image()))
            .await
            .map(drop),
        bench
            .docker
            .mutate(&bounds, RemoveContainer::new(id()))
            .await
            .map(drop),
        bench
            .docker
            .mutate(&bounds, RemoveVolume::new(volume()))
            .await
            .map(drop),
    ];
    for failure in failures {
        assert_eq!(
            failure.unwrap_err().kind(),
            CallErrorKind::DaemonUnreachable
        );
    }
    assert_eq!(bench.docker.log().counts().total(), 3 + 5);
}

#[tokio::test]
async fn a_follow_up_that_fails_explains_nothing() {
    let bench = Bench::new([
        fails(&["container"]),
        fails(&["image"]),
        Rule::on(&["ps"]).step(Step::Die),
        Rule::on(&["version"])
            .out("{\"Client\":null,\"Server\":null}")
            .exit(1),
    ])
    .await;
    let bounds = Bounds::patient();
    let error = bench
        .docker
        .query(&bounds, InspectContainer::new(id()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other);
    let error = bench
        .docker
        .query(&bounds, InspectImage::new(image()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other);
}

#[tokio::test]
async fn removing_what_is_not_there_is_an_answer() {
    let bench = Bench::new([
        Rule::on(&["rm"]).nth(1).err("Error: No such container: x"),
        Rule::on(&["rm"]).nth(2).err(STRANGE).exit(1),
        Rule::on(&["volume", "rm"]).err(STRANGE).exit(1),
        Rule::on(&["ps"]),
        Rule::on(&["volume", "ls"]),
    ])
    .await;
    let bounds = Bounds::patient();
    for _ in 0..2 {
        let removal = bench
            .docker
            .mutate(&bounds, RemoveContainer::new(id()))
            .await
            .unwrap();
        assert_eq!(removal, Removal::Absent);
    }
    let removal = bench
        .docker
        .mutate(&bounds, RemoveVolume::new(volume()))
        .await
        .unwrap();
    assert_eq!(removal, Removal::Absent);
}

#[tokio::test]
async fn handling_what_is_not_there_is_an_error_of_its_own() {
    let bench = Bench::new([
        Rule::on(&["kill"]).err(STRANGE).exit(1),
        Rule::on(&["cp"])
            .err("destination \"x:/\" must be a directory")
            .exit(1),
        Rule::on(&["ps"]),
    ])
    .await;
    let bounds = Bounds::patient();
    let failures: [Result<(), CallError>; 2] = [
        bench
            .docker
            .mutate(&bounds, KillContainer::new(id(), Signal::Kill))
            .await,
        bench
            .docker
            .mutate(&bounds, CopyIn::new(id(), path("/"), vec![0; 1024].into()))
            .await,
    ];
    for failure in failures {
        assert_eq!(failure.unwrap_err().kind(), CallErrorKind::NoSuchContainer);
    }
}

#[tokio::test]
async fn the_exit_code_of_a_program_that_ran_is_data_whatever_it_is() {
    for code in [0, 1, 2, 124, 125, 126, 127, 137, 143, 255] {
        let run = Rule::on(&["run"])
            .step(Step::WriteId(ID.into()))
            .out("out")
            .err("err")
            .exit(code);
        let bench = Bench::new([run]).await;
        let run = RunForeground::new(options(), 1024);
        let output = bench.docker.mutate(&Bounds::patient(), run).await.unwrap();
        assert_eq!(output.code, i32::from(code));
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"out"[..], &b"err"[..])
        );
    }
}

#[tokio::test]
async fn a_run_that_made_no_container_ran_no_program() {
    let bench = Bench::new([Rule::on(&["run"]).err(STRANGE).exit(1)]).await;
    let run = RunForeground::new(options(), 1024);
    let error = bench
        .docker
        .mutate(&Bounds::patient(), run)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other);
}

#[tokio::test]
async fn words_that_are_longer_than_the_system_takes_are_named_and_start_nothing() {
    let bench = Bench::new([]).await;
    let long = options().program("/program", ["x".repeat(2 * 1024 * 1024)]);
    let error = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(long))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::ArgumentsTooLong);
    assert!(error.command().len() <= 4096);
    assert_eq!(bench.docker.log().counts().total(), 3);
}
