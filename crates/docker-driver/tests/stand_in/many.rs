//! Many containers looked at at once, and images removed.

use docker_driver::stand_in::Rule;
use docker_driver::{
    Bounds, CallError, CallErrorKind, ContainerFacts, ContainerId, InspectContainers, Removal,
    RemoveImage,
};

use crate::support::{Bench, ID, id, image_id};

/// The container whose facts docker prints here.
const GOLDEN: &str = "430136625dabd4c0cf8f2e73e0e80d8d487ada2856e4dc80faa60ba392739edb";

const PRINTED: &str = include_str!("../golden/28.5.2/container-inspect.json");

/// Words of no version and no language.
const STRANGE: &str = "Fehlermeldung vom Dienst: gibt es nicht";

fn golden() -> ContainerId {
    ContainerId::new(GOLDEN).unwrap()
}

/// Looks at the one that docker prints and at another one.
async fn both(bench: &Bench) -> Result<Vec<ContainerFacts>, CallError> {
    let verb = InspectContainers::of([id(), golden()]).pop().unwrap();
    bench.docker.query(&Bounds::patient(), verb).await
}

fn one_of_two() -> Rule {
    Rule::on(&["container", "inspect"])
        .out(PRINTED)
        .err(STRANGE)
        .exit(1)
}

fn row(id: &str) -> String {
    format!("{{\"ID\":\"{id}\",\"Names\":\"one\",\"State\":\"exited\"}}\n")
}

#[tokio::test]
async fn a_container_that_is_gone_is_left_out_in_whatever_words_docker_says_so() {
    let asked = Rule::on(&["ps"]).having(format!("--filter=id={ID}"));
    let bench = Bench::new([one_of_two(), asked]).await;
    let found = both(&bench).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, golden());
    let asked_for = bench.stand_in.calls_of(&["ps"]).pop().unwrap().words;
    assert!(
        !asked_for.iter().any(|word| word.contains(GOLDEN)),
        "{asked_for:?}"
    );
}

#[tokio::test]
async fn none_that_is_there_is_no_failure() {
    let none = Rule::on(&["container", "inspect"])
        .out("[]\n")
        .err(STRANGE)
        .exit(1);
    let bench = Bench::new([none, Rule::on(&["ps"])]).await;
    assert_eq!(both(&bench).await.unwrap(), []);
}

#[tokio::test]
async fn a_container_that_docker_left_out_although_it_is_there_is_a_failure() {
    let bench = Bench::new([one_of_two(), Rule::on(&["ps"]).out(row(ID))]).await;
    let error = both(&bench).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other, "{error:?}");
}

#[tokio::test]
async fn an_engine_that_does_not_tell_what_is_there_is_a_failure() {
    let unreachable =
        "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?";
    let none = Rule::on(&["container", "inspect"])
        .out("[]\n")
        .err(unreachable)
        .exit(1);
    let bench = Bench::new([none, Rule::on(&["ps"]).err(unreachable).exit(1)]).await;
    let error = both(&bench).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::DaemonUnreachable);
    let bench = Bench::new([one_of_two(), Rule::on(&["ps"]).err(STRANGE).exit(1)]).await;
    let error = both(&bench).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other);
}

#[tokio::test]
async fn a_success_that_leaves_one_out_or_tells_of_another_is_no_answer() {
    let bench = Bench::new([Rule::on(&["container", "inspect"]).out(PRINTED)]).await;
    let error = both(&bench).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::UnexpectedAnswer);
    let other = InspectContainers::of([id()]).pop().unwrap();
    let result = bench.docker.query(&Bounds::patient(), other).await;
    assert_eq!(result.unwrap_err().kind(), CallErrorKind::UnexpectedAnswer);
}

#[tokio::test]
async fn an_image_that_is_not_there_is_an_answer_to_its_removal() {
    let refused = Rule::on(&["image", "rm"]).err(STRANGE).exit(1);
    let other = format!("{{\"ID\":\"sha256:{GOLDEN}\",\"Repository\":\"a\",\"Tag\":\"1\"}}\n");
    let bench = Bench::new([refused.clone(), Rule::on(&["image", "ls"]).out(other)]).await;
    let remove = || RemoveImage::new(image_id());
    let removal = bench.docker.mutate(&Bounds::patient(), remove()).await;
    assert_eq!(removal.unwrap(), Removal::Absent);
    let there = format!("{{\"ID\":\"sha256:{ID}\",\"Repository\":\"a\",\"Tag\":\"1\"}}\n");
    let bench = Bench::new([refused, Rule::on(&["image", "ls"]).out(there)]).await;
    let removal = bench.docker.mutate(&Bounds::patient(), remove()).await;
    assert_eq!(removal.unwrap_err().kind(), CallErrorKind::Other);
}

#[tokio::test]
async fn an_image_that_something_uses_is_told_by_its_kind() {
    let words = "Error response from daemon: conflict: unable to delete 4a20c3e5695b (cannot be forced) - image is being used by running container abc";
    let bench = Bench::new([Rule::on(&["image", "rm"]).err(words).exit(1)]).await;
    let removal = bench
        .docker
        .mutate(&Bounds::patient(), RemoveImage::new(image_id()))
        .await;
    assert_eq!(removal.unwrap_err().kind(), CallErrorKind::ImageInUse);
}
