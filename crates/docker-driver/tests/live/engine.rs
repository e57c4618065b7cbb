//! What a real engine tells of itself and of all that it keeps.

use std::time::{Duration, SystemTime};

use docker_driver::{
    Bounds, CallErrorKind, CreateContainer, CreateVolume, CreationMark, DiskUsage, EngineTime,
    InspectContainer, InspectContainers, InspectVolume, KillContainer, Label, ListContainers,
    PastEvents, RemoveContainer, RunDetached, Signal, StartContainer,
};

use crate::support::{Bench, unique};

async fn now(bench: &Bench) -> SystemTime {
    let now = bench.docker.query(&Bounds::patient(), EngineTime).await;
    now.unwrap().time
}

#[tokio::test]
async fn an_engines_clock_goes_forward_and_its_id_stays() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let first = bench.docker.query(&bounds, EngineTime).await.unwrap();
    let second = bench.docker.query(&bounds, EngineTime).await.unwrap();
    assert_eq!(first.id, second.id);
    assert!(first.time < second.time);
}

#[tokio::test]
async fn what_is_made_is_dated_by_the_engines_clock() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let before = now(&bench).await;
    let options = bench.options().program("sleep", ["1000"]);
    let id = bench
        .docker
        .mutate(&bounds, CreateContainer(options))
        .await
        .unwrap();
    let look = || bench.docker.query(&bounds, InspectContainer::new(&id));
    let facts = look().await.unwrap().unwrap();
    assert_eq!(
        (facts.state.started_at, facts.state.finished_at),
        (None, None)
    );
    let mark = CreationMark::new(Label::new("docker-driver.mark", unique()).unwrap());
    let name = bench.volume_name();
    let create = CreateVolume::new(name.clone(), mark).labels([bench.label()]);
    bench.docker.mutate(&bounds, create).await.unwrap();
    let start = StartContainer::new(&id);
    bench.docker.mutate(&bounds, start).await.unwrap();
    let kill = KillContainer::new(&id, Signal::Kill);
    bench.docker.mutate(&bounds, kill).await.unwrap();
    let mut facts = look().await.unwrap().unwrap();
    while facts.state.running {
        facts = look().await.unwrap().unwrap();
    }
    let after = now(&bench).await;
    let created = facts.created.unwrap();
    let started = facts.state.started_at.unwrap();
    let finished = facts.state.finished_at.unwrap();
    assert!(before < created && created < started && started < finished && finished < after);
    assert_eq!(
        (facts.state.exit_code, facts.state.oom_killed),
        (137, false)
    );
    assert_eq!(facts.image_name, crate::support::python().as_str());
    let volume = bench.docker.query(&bounds, InspectVolume::new(name)).await;
    let created = volume.unwrap().unwrap().created.unwrap();
    // Whole seconds.
    assert!(before < created + Duration::from_secs(1) && created < after);
    bench.finish().await;
}

#[tokio::test]
async fn many_containers_are_looked_at_at_once_and_those_that_are_gone_are_left_out() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let create = CreateContainer(bench.options());
        ids.push(bench.docker.mutate(&bounds, create).await.unwrap());
    }
    let look = |ids: Vec<_>| InspectContainers::of(ids).pop().unwrap();
    let found = bench
        .docker
        .query(&bounds, look(ids.clone()))
        .await
        .unwrap();
    assert_eq!(found.len(), 3);
    let gone = ids[1].clone();
    let remove = RemoveContainer::new(&gone);
    bench.docker.mutate(&bounds, remove).await.unwrap();
    let found = bench
        .docker
        .query(&bounds, look(ids.clone()))
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|facts| facts.id != gone && ids.contains(&facts.id))
    );
    let none = bench.docker.query(&bounds, look(vec![gone])).await;
    assert_eq!(none.unwrap(), []);
    let among = ListContainers::default().among(ids.clone());
    let rows = bench.docker.query(&bounds, among).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| row.aliases.is_empty() && row.state == "created")
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_past_end_of_a_container_that_is_gone_is_told_with_its_exit_code() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let before = now(&bench).await;
    let options = bench
        .options()
        .program("sh", ["-c", "exit 7"])
        .remove_at_end();
    let run = RunDetached(options);
    let id = bench.docker.mutate(&bounds, run).await.unwrap();
    let past = |until| {
        PastEvents::between(before, until)
            .kind("container")
            .labelled([bench.label()])
            .container(&id)
    };
    let last = tokio::time::Instant::now() + Duration::from_secs(60);
    let events = loop {
        let until = now(&bench).await;
        let events = bench.docker.query(&bounds, past(until)).await.unwrap();
        if events.iter().any(|event| event.action == "destroy") {
            break events;
        }
        assert!(tokio::time::Instant::now() < last, "{events:?}");
    };
    let actions: Vec<_> = events.iter().map(|event| event.action.as_str()).collect();
    assert_eq!(actions, ["create", "start", "die", "destroy"]);
    assert!(
        events
            .iter()
            .all(|event| event.id == id.as_str() && event.time > before)
    );
    assert_eq!(events[2].attributes["exitCode"], "7");
    assert!(events.is_sorted_by_key(|event| event.time));
    // What lies before and after is not told.
    let only = past(events[2].time).action("die");
    assert_eq!(bench.docker.query(&bounds, only).await.unwrap().len(), 1);
    let earlier = past(before + Duration::from_nanos(1));
    assert_eq!(bench.docker.query(&bounds, earlier).await.unwrap(), []);
    bench.finish().await;
}

#[tokio::test]
async fn what_a_container_wrote_is_in_what_takes_space() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let script = "head -c 3000000 /dev/zero > /written; sleep 1000";
    let options = bench.options().program("sh", ["-c", script]);
    let id = bench.docker.mutate(&bounds, RunDetached(options)).await;
    let id = id.unwrap();
    let last = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let usage = bench.docker.query(&bounds, DiskUsage).await.unwrap();
        let written = usage.containers.iter().find(|one| one.id == id);
        let image = usage.images.iter().filter_map(|image| image.size).max();
        assert!(image > Some(1_000_000), "{:?}", usage.images);
        if written.unwrap().written.unwrap() >= 3_000_000 {
            break;
        }
        assert!(tokio::time::Instant::now() < last, "{written:?}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_whether_a_container_is_run_or_started() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let options = || bench.options().program("/absent/program", [] as [&str; 0]);
    let run = bench.docker.mutate(&bounds, RunDetached(options())).await;
    assert_eq!(run.unwrap_err().kind(), CallErrorKind::ProgramNotFound);
    let create = CreateContainer(options());
    let id = bench.docker.mutate(&bounds, create).await.unwrap();
    let start = bench.docker.mutate(&bounds, StartContainer::new(&id)).await;
    assert_eq!(start.unwrap_err().kind(), CallErrorKind::ProgramNotFound);
    let absent = docker_driver::ImageRef::new("docker-driver.invalid/absent:1").unwrap();
    let run = RunDetached(bench.options_of(absent));
    let error = bench.docker.mutate(&bounds, run).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchImage);
    bench.finish().await;
}
