//! Copies within a hold, when docker goes wrong.

use std::time::Duration;

use bytes::Bytes;
use docker_driver::stand_in::{Rule, Step};
use docker_driver::{
    Bounds, CallErrorKind, ContainerEvent, ContainerPath, Docker, Exit, Hold, HoldRequest,
};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::support::{Bench, ID, id, path, stand_in};

const HICCUPS: &str = "Error response from daemon: the engine has hiccups";

async fn bench(copy: Rule) -> (Bench, Hold) {
    let rules = [
        Rule::on(&["pause"]),
        Rule::on(&["unpause"]),
        copy,
        Rule::on(&["ps"]).exit(1),
    ];
    let bench = Bench::new(rules).await;
    // None of these copies hangs.
    let request = HoldRequest::new(id()).no_progress(Duration::from_secs(60));
    let hold = bench.docker.hold(&Bounds::patient(), request).await;
    (bench, hold.unwrap())
}

fn words(bench: &Bench) -> Vec<String> {
    bench.stand_in.calls_of(&["cp"])[0].words.clone()
}

#[tokio::test]
async fn what_is_written_reaches_docker_exactly_and_its_answer_is_waited_for() {
    let (bench, hold) = bench(Rule::on(&["cp"]).step(Step::Input("received".into()))).await;
    let mut copy = hold.copy_in(&path("/a: -b")).await.unwrap();
    let sent: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    for part in sent.chunks(70_000) {
        copy.write(Bytes::copy_from_slice(part)).await.unwrap();
    }
    copy.finish().await.unwrap();
    assert!(bench.stand_in.file("received") == sent);
    assert_eq!(words(&bench), ["cp", "-", &format!("{ID}:/a: -b")]);
    hold.release().await.unwrap();
    assert_eq!(bench.docker.log().counts().of("cp in"), 1);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn what_docker_writes_is_read_exactly_whatever_it_is() {
    let garbage: Vec<u8> = (0..200_000_u32).map(|at| (at % 253) as u8).collect();
    let copy = Rule::on(&["cp"]).step(Step::OutBytes(garbage.clone()));
    let (bench, hold) = bench(copy).await;
    let from = ContainerPath::from_bytes(&b"/\xff"[..]).unwrap();
    let mut copy = hold.copy_out(&from).await.unwrap();
    let mut read = Vec::new();
    while let Some(bytes) = copy.next().await.unwrap() {
        read.extend_from_slice(&bytes);
    }
    assert!(copy.next().await.unwrap().is_none(), "the end stays");
    copy.finish().await.unwrap();
    assert!(read == garbage);
    assert_eq!(words(&bench), ["cp", &format!("{ID}:/\u{fffd}"), "-"]);
    hold.release().await.unwrap();
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_copy_that_fails_keeps_dockers_words_and_exit_code() {
    let copy = Rule::on(&["cp"]).out("some").err(HICCUPS).exit(7);
    let (bench, hold) = bench(copy).await;
    let mut out = hold.copy_out(&path("/a")).await.unwrap();
    assert_eq!(out.next().await.unwrap().unwrap(), "some");
    let error = out.finish().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other);
    assert_eq!(
        (error.detail(), error.exit()),
        (HICCUPS, Some(Exit::Code(7)))
    );
    assert_eq!(error.verb(), "cp out");

    let mut copy = hold.copy_in(&path("/a")).await.unwrap();
    let many = Bytes::from(vec![0; 1 << 20]);
    let error = copy.write(many).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Other);
    assert_eq!(
        (error.detail(), error.exit()),
        (HICCUPS, Some(Exit::Code(7)))
    );
    let copy = hold.copy_in(&path("/a")).await.unwrap();
    let error = copy.finish().await.unwrap_err();
    assert_eq!(error.detail(), HICCUPS);
    hold.release().await.unwrap();
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_docker_that_ends_well_without_reading_all_has_not_copied() {
    let (bench, hold) = bench(Rule::on(&["cp"])).await;
    let mut copy = hold.copy_in(&path("/a")).await.unwrap();
    let error = copy.write(Bytes::from(vec![0; 1 << 20])).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::UnexpectedAnswer);
    hold.release().await.unwrap();
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_copy_without_progress_is_ended_with_its_words_and_the_guard_stays() {
    let hang = |nth: usize| {
        Rule::on(&["cp"])
            .nth(nth)
            .err(HICCUPS)
            .step(Step::Mark(format!("hangs {nth}")))
            .step(Step::Hang)
    };
    let bench = Bench::new([
        Rule::on(&["pause"]),
        Rule::on(&["unpause"]),
        hang(1),
        hang(2),
        hang(3),
    ])
    .await;
    let request = HoldRequest::new(id()).no_progress(Duration::from_millis(100));
    let hold = bench.docker.hold(&Bounds::patient(), request).await;
    let hold = hold.unwrap();
    let mut copy = hold.copy_in(&path("/a")).await.unwrap();
    bench.stand_in.reached("hangs 1").await;
    let error = copy.write(Bytes::from(vec![0; 1 << 20])).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoProgress);
    assert_eq!(error.detail(), HICCUPS);
    let copy = hold.copy_in(&path("/a")).await.unwrap();
    bench.stand_in.reached("hangs 2").await;
    let error = copy.finish().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoProgress);
    let mut copy = hold.copy_out(&path("/a")).await.unwrap();
    bench.stand_in.reached("hangs 3").await;
    let error = copy.next().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoProgress);
    assert_eq!(error.detail(), HICCUPS);
    assert!(hold.is_in_force(), "a copy is ended alone");
    hold.release().await.unwrap();
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_copy_that_was_stopped_or_dropped_is_reaped_and_the_guard_stays() {
    let copy = Rule::on(&["cp"]).out("first").step(Step::Hang);
    let (bench, hold) = bench(copy).await;
    let mut copy = hold.copy_out(&path("/a")).await.unwrap();
    assert_eq!(copy.next().await.unwrap().unwrap(), "first");
    copy.stop().await.unwrap();
    drop(hold.copy_out(&path("/a")).await.unwrap());
    drop(hold.copy_in(&path("/a")).await.unwrap());
    assert!(hold.is_in_force());
    hold.release().await.unwrap();
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn the_guard_ends_copies_before_it_thaws() {
    let rules = [
        Rule::on(&["pause"]),
        Rule::on(&["unpause"]),
        Rule::on(&["cp"]).out("first").step(Step::Hang),
    ];
    let bench = Bench::new(rules).await;
    // As long as the hold, its end could come first.
    let patience = Duration::from_secs(60);
    let request = HoldRequest::new(id())
        .limit(Duration::from_secs(5))
        .no_progress(patience);
    let hold = bench.docker.hold(&Bounds::patient(), request).await;
    let hold = hold.unwrap();
    let mut copy = hold.copy_out(&path("/a")).await.unwrap();
    assert_eq!(copy.next().await.unwrap().unwrap(), "first");
    assert!(copy.next().await.unwrap().is_none(), "it is ended");
    let error = copy.finish().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::HoldEnded);
    hold.release().await.unwrap();
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn what_was_read_when_the_hold_was_over_does_not_count() {
    let rules = [
        Rule::on(&["pause"]),
        Rule::on(&["unpause"]),
        Rule::on(&["cp"])
            .step(Step::IgnoreTerm)
            .out("all")
            .step(Step::WaitFor("go on".into())),
    ];
    let bench = Bench::new(rules).await;
    let request = HoldRequest::new(id()).limit(Duration::from_secs(5));
    let hold = bench.docker.hold(&Bounds::patient(), request).await;
    let hold = hold.unwrap();
    let mut copy = hold.copy_out(&path("/a")).await.unwrap();
    assert_eq!(copy.next().await.unwrap().unwrap(), "all");
    let stopped = hold.copy_out(&path("/a")).await.unwrap();
    bench.stand_in.called(&["unpause"], 1).await;
    bench.stand_in.open("go on");
    let error = copy.finish().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::HoldEnded);
    let error = stopped.stop().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::HoldEnded);
    drop(hold);
    bench.settle().await;
}

#[tokio::test]
async fn holds_that_all_wait_for_places_for_their_copies_get_them() {
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.in_flight = 2;
    let docker = Docker::bind(config).await.unwrap();
    stand_in.follow([
        Rule::on(&["pause"]),
        Rule::on(&["unpause"]),
        Rule::on(&["cp", "-"]).step(Step::Input("ignored".into())),
        Rule::on(&["cp"])
            .out("up")
            .step(Step::Input("ignored".into())),
    ]);
    let bench = Bench { stand_in, docker };
    let one = async || {
        let request = HoldRequest::new(id());
        let hold = bench.docker.hold(&Bounds::patient(), request).await;
        let hold = hold.unwrap();
        // All are open at once, and nobody reads or writes yet.
        let mut copies = Vec::new();
        for _ in 0..2 {
            copies.push(hold.copy_in(&path("/a")).await.unwrap());
        }
        let mut out = hold.copy_out(&path("/a")).await.unwrap();
        for mut copy in copies {
            copy.write(Bytes::from_static(b"x")).await.unwrap();
            copy.finish().await.unwrap();
        }
        while out.next().await.unwrap().is_some() {}
        out.finish().await.unwrap();
        hold.release().await.unwrap();
    };
    let all = join_all((0..4).map(|_| one()));
    timeout(Duration::from_secs(60), all).await.unwrap();
    assert_eq!(bench.docker.log().counts().of("cp in"), 8);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn events_are_open_once_a_copy_of_ours_is_seen_in_them() {
    let events = Rule::on(&["events"])
        .out("pause\n")
        .step(Step::WaitFor("copied".into()))
        .out("archive-path\nunpause\nstrange\n")
        .out("x".repeat(100_000))
        .out("\npa")
        .out("use\n")
        .err("Error response from daemon: the engine ends")
        .exit(1);
    // The first is not seen.
    let copy = Rule::on(&["cp"])
        .nth(2)
        .step(Step::Mark("copied".into()))
        .out("root");
    let other = Rule::on(&["cp"]).out("root");
    let bench = Bench::new([events, copy, other]).await;
    let mut events = bench
        .docker
        .events(&Bounds::patient(), &id())
        .await
        .unwrap();
    assert_eq!(bench.stand_in.calls_of(&["cp"]).len(), 2);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Unpaused);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Paused);
    let error = events.next().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::ConnectionLost);
    assert!(error.detail().contains("the engine ends"));
    drop(events);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn events_that_cannot_be_opened_say_why() {
    let gone = format!("Error response from daemon: No such container: {ID}");
    let rules = [
        Rule::on(&["events"]).step(Step::Hang),
        Rule::on(&["cp"]).err(gone).exit(1),
    ];
    let bench = Bench::new(rules).await;
    let bounds = Bounds::patient();
    let error = bench.docker.events(&bounds, &id()).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer);
    bench.assert_all_reaped().await;
}
