//! Changes that nobody waits for, and changes that fail.

use std::future::Future as _;
use std::task::{Context, Waker};

use docker_driver::stand_in::{Rule, Step, until};
use docker_driver::{
    Aftermath, Bounds, CallErrorKind, CreateVolume, Docker, KillContainer, PauseContainer,
    RunDetached, Signal, Undo,
};
use futures_util::future::join_all;

use crate::support::{Bench, ID, id, mark, options, pid_at, stand_in, volume};
use crate::verbs::{Case, Kind, all};

/// A line of `docker ps` for the container of [`options`].
fn row() -> String {
    format!("{{\"ID\":\"{ID}\",\"Names\":\"some-container\",\"State\":\"running\"}}\n")
}

/// `docker volume inspect` of [`volume`], with a label.
fn volume_marked(value: &str) -> String {
    format!(
        "[{{\"Name\":\"some-volume\",\"Driver\":\"local\",\"Labels\":{{\"example.mark\":\"{value}\"}},\"Options\":null}}]"
    )
}

fn mutations() -> Vec<(Case, &'static [&'static str])> {
    let with_undo = |case: Case| match case.kind {
        Kind::Mutation(undo) => Some((case, undo)),
        Kind::Query => None,
    };
    all().into_iter().filter_map(with_undo).collect()
}

/// A call of the case that has begun, and goes on when `go on` is opened.
fn held(case: &Case) -> Rule {
    Rule::on(&case.words())
        .nth(1)
        .step(Step::WriteId(ID.to_owned()))
        .step(Step::Mark("begun".into()))
        .step(Step::WaitFor("go on".into()))
        .out(case.good.clone())
        .step(Step::Mark("done".into()))
}

fn undo_rules() -> [Rule; 5] {
    [
        Rule::on(&["rm"]).out(ID),
        Rule::on(&["ps"]).out(row()),
        Rule::on(&["unpause"]).out(ID),
        Rule::on(&["volume", "inspect"]).out(volume_marked("once")),
        Rule::on(&["volume", "rm"]).out("some-volume"),
    ]
}

#[tokio::test]
async fn a_change_whose_caller_has_gone_is_finished_and_undone_exactly_once() {
    let cases = mutations();
    let runs = cases.iter().map(async |(case, undo)| {
        let bench = Bench::new([held(case)].into_iter().chain(undo_rules())).await;
        let call = tokio::spawn((case.call)(bench.docker.clone(), Bounds::patient()));
        bench.stand_in.reached("begun").await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        bench.stand_in.open("go on");
        bench.settle().await;
        bench.stand_in.reached("done").await;
        let own = usize::from(case.words() == *undo);
        let undone = bench.stand_in.calls_of(undo).len() - own;
        let expected = usize::from(!undo.is_empty());
        if undo.is_empty() {
            // Binding, and the call itself.
            assert_eq!(bench.docker.log().counts().total(), 3 + 1, "{}", case.name);
        } else {
            assert_eq!(
                undone,
                expected,
                "{}: {:?}",
                case.name,
                bench.stand_in.calls()
            );
        }
        bench.assert_all_reaped().await;
    });
    join_all(runs).await;
}

#[tokio::test]
async fn an_answer_that_has_come_but_was_never_looked_at_is_undone_too() {
    let bench = Bench::new([Rule::on(&["run"]).out(ID), Rule::on(&["rm"]).out(ID)]).await;
    let bounds = Bounds::patient();
    let mut call = Box::pin(bench.docker.mutate(&bounds, RunDetached(options())));
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    bench.settle().await;
    assert_eq!(bench.stand_in.calls_of(&["rm"]).len(), 0);
    drop(call);
    bench.settle().await;
    assert_eq!(bench.stand_in.calls_of(&["rm"]).len(), 1);
}

#[tokio::test]
async fn a_change_whose_caller_took_the_answer_is_not_undone() {
    let bench = Bench::new([Rule::on(&["run"]).out(ID)]).await;
    let made = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options()))
        .await
        .unwrap();
    assert_eq!(made, id());
    bench.settle().await;
    assert_eq!(bench.docker.log().counts().total(), 3 + 1);
}

#[tokio::test]
async fn a_caller_whose_deadline_passes_is_told_what_is_pending() {
    let run = Rule::on(&["run"])
        .step(Step::WaitFor("go on".into()))
        .out(ID);
    let bench = Bench::new([run, Rule::on(&["rm"]).out(ID)]).await;
    let mut bounds = Bounds::patient();
    bounds.deadline = tokio::time::Instant::now() + std::time::Duration::from_millis(200);
    let error = bench
        .docker
        .mutate(&bounds, RunDetached(options()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::DeadlinePassed);
    let pending = Undo::RemoveMarkedContainer("some-container".parse().unwrap(), mark());
    assert_eq!(*error.aftermath(), Aftermath::Pending(pending));
    bench.stand_in.open("go on");
    bench.settle().await;
    assert_eq!(bench.stand_in.calls_of(&["rm"]).len(), 1);
}

#[tokio::test]
async fn a_name_that_another_container_has_leads_to_no_removal() {
    let conflict = "docker: Error response from daemon: Conflict. The container name \"/some-container\" \
                    is already in use by container \"abc\".";
    let bench = Bench::new([Rule::on(&["run"]).err(conflict).exit(125)]).await;
    let error = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NameConflict);
    assert_eq!(*error.aftermath(), Aftermath::Clean);
    bench.settle().await;
    assert_eq!(bench.docker.log().counts().total(), 3 + 1);
}

#[tokio::test]
async fn a_container_that_was_made_but_not_started_is_removed_by_its_id() {
    let run = Rule::on(&["run"])
        .step(Step::WriteId(ID.to_owned()))
        .out(ID)
        .err("docker: Error response from daemon: failed to create task for container: exec: \"/nope\": stat /nope: no such file or directory")
        .exit(127);
    let bench = Bench::new([run, Rule::on(&["rm"]).having(ID).out(ID)]).await;
    let error = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::ProgramNotFound);
    assert_eq!(
        *error.aftermath(),
        Aftermath::Undone(Undo::RemoveContainer(id()))
    );
}

#[tokio::test]
async fn what_a_killed_client_may_have_made_is_looked_for_by_name_and_mark_until_it_is_there() {
    let bench = Bench::new([
        Rule::on(&["run"]).step(Step::Die),
        Rule::on(&["ps"])
            .having("--filter=label=example.mark=once")
            .having("--filter=name=some-container")
            .nth(2)
            .out(row()),
        Rule::on(&["ps"]),
        Rule::on(&["rm"]).having(ID).out(ID),
    ])
    .await;
    let error = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Signalled);
    let undo = Undo::RemoveMarkedContainer("some-container".parse().unwrap(), mark());
    assert_eq!(*error.aftermath(), Aftermath::Undone(undo));
    assert_eq!(bench.stand_in.calls_of(&["ps"]).len(), 2);
    assert_eq!(bench.stand_in.calls_of(&["rm"]).len(), 1);
}

#[tokio::test]
async fn a_container_whose_name_only_begins_the_same_is_left_alone() {
    let other = row().replace("some-container", "some-container-too");
    let bench = Bench::new([
        Rule::on(&["run"]).step(Step::Die),
        Rule::on(&["ps"]).out(other),
    ])
    .await;
    let error = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options()))
        .await
        .unwrap_err();
    assert_eq!(*error.aftermath(), Aftermath::Clean);
    assert_eq!(bench.stand_in.calls_of(&["rm"]).len(), 0);
}

#[tokio::test]
async fn a_volume_that_somebody_else_made_is_left_alone() {
    let bench = Bench::new([
        Rule::on(&["volume", "create"])
            .step(Step::Mark("begun".into()))
            .out("some-volume"),
        Rule::on(&["volume", "inspect"]).out(volume_marked("another")),
    ])
    .await;
    let bounds = Bounds::patient();
    let docker = bench.docker.clone();
    let (called, cancel) = (bounds.clone(), bounds.cancel.clone());
    let call = tokio::spawn(async move {
        docker
            .mutate(&called, CreateVolume::new(volume(), mark()))
            .await
    });
    bench.stand_in.reached("begun").await;
    cancel.cancel();
    let result = call.await.unwrap();
    bench.settle().await;
    assert_eq!(bench.stand_in.calls_of(&["volume", "rm"]).len(), 0);
    // It may have been answered before it was cancelled.
    let looked = bench.stand_in.calls_of(&["volume", "inspect"]).len();
    assert_eq!(looked, usize::from(result.is_err()));
}

#[tokio::test]
async fn an_undo_that_fails_is_handed_over_once() {
    let run = Rule::on(&["run"])
        .step(Step::Mark("begun".into()))
        .step(Step::WaitFor("go on".into()))
        .out(ID);
    let bench = Bench::new([
        run,
        Rule::on(&["rm"])
            .err("Error response from daemon: hiccups")
            .exit(1),
        Rule::on(&["ps"]).out(row()),
    ])
    .await;
    let docker = bench.docker.clone();
    let call = tokio::spawn(async move {
        docker
            .mutate(&Bounds::patient(), RunDetached(options()))
            .await
    });
    bench.stand_in.reached("begun").await;
    call.abort();
    let _ = call.await;
    bench.stand_in.open("go on");
    let settled = bench.docker.settle(Bounds::patient().deadline).await;
    assert_eq!(settled.failed.len(), 1, "{settled:?}");
    assert_eq!(settled.failed[0].undo, Undo::RemoveContainer(id()));
    bench.settle().await;
}

#[tokio::test]
async fn an_undo_that_fails_is_told_to_the_caller_who_waits() {
    let bench = Bench::new([
        Rule::on(&["run"])
            .step(Step::WriteId(ID.to_owned()))
            .err("docker: hiccups")
            .exit(125),
        Rule::on(&["rm"])
            .err("Error response from daemon: hiccups")
            .exit(1),
        Rule::on(&["ps"]).out(row()),
    ])
    .await;
    let error = bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options()))
        .await
        .unwrap_err();
    let left = matches!(
        error.aftermath(),
        Aftermath::Left {
            undo: Undo::RemoveContainer(_),
            ..
        }
    );
    assert!(left, "{error:?}");
    bench.settle().await;
}

#[tokio::test]
async fn a_pause_that_failed_is_not_thawed() {
    let paused = "Error response from daemon: Container abc is already paused";
    let bench = Bench::new([Rule::on(&["pause"]).err(paused).exit(1)]).await;
    let error = bench
        .docker
        .mutate(&Bounds::patient(), PauseContainer::new(id()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::AlreadyPaused);
    bench.settle().await;
    assert_eq!(bench.stand_in.calls_of(&["unpause"]).len(), 0);
}

#[tokio::test]
async fn a_change_is_finished_and_undone_when_the_last_handle_has_gone() {
    let run = Rule::on(&["run"])
        .step(Step::Mark("begun".into()))
        .step(Step::WaitFor("go on".into()))
        .out(ID);
    let Bench { stand_in, docker } = Bench::new([
        run,
        Rule::on(&["rm"]).step(Step::Mark("removed".into())).out(ID),
    ])
    .await;
    let call = tokio::spawn(async move {
        docker
            .mutate(&Bounds::patient(), RunDetached(options()))
            .await
    });
    stand_in.reached("begun").await;
    call.abort();
    let _ = call.await;
    stand_in.open("go on");
    stand_in.reached("removed").await;
    let removal = &stand_in.calls_of(&["rm"])[0];
    assert!(removal.environment.contains_key("DOCKER_CONFIG"));
}

#[test]
fn when_the_runtime_ends_changes_go_on_and_questions_are_ended() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let stand_in = stand_in();
    let docker = runtime.block_on(Docker::bind(stand_in.config())).unwrap();
    stand_in.follow([
        Rule::on(&["kill"])
            .step(Step::Mark("change".into()))
            .step(Step::WaitFor("go on".into()))
            .step(Step::Mark("changed".into())),
        Rule::on(&["ps"])
            .step(Step::IgnoreTerm)
            .step(Step::Mark("question".into()))
            .step(Step::Hang),
    ]);
    let clone = docker.clone();
    runtime.spawn(async move {
        clone
            .mutate(&Bounds::patient(), KillContainer::new(id(), Signal::Term))
            .await
    });
    let clone = docker.clone();
    runtime.spawn(async move {
        clone
            .query(&Bounds::patient(), docker_driver::ListContainers::default())
            .await
    });
    runtime.block_on(async {
        stand_in.reached("change").await;
        stand_in.reached("question").await;
    });
    let question = pid_at(&stand_in, "question");
    runtime.shutdown_background();
    drop(docker);
    stand_in.open("go on");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        stand_in.reached("changed").await;
        until("the end of the question", || !runs(question)).await;
    });
}

/// Whether a process runs; one that is dead and not reaped does not.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}
