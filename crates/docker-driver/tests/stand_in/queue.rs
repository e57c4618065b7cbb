//! The cap on processes in flight, and what is recorded of it.

use std::time::Duration;

use docker_driver::stand_in::{Rule, Step};
use docker_driver::{Bounds, CallErrorKind, Docker, ListContainers};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::support::{Bench, exists, stand_in};

/// A client with this many places.
async fn with_places(places: usize, timeout: Duration, rules: Vec<Rule>) -> Bench {
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.in_flight = places;
    config.timeouts.short = timeout;
    let docker = Docker::bind(config).await.unwrap();
    stand_in.follow(rules);
    Bench { stand_in, docker }
}

fn look(bench: &Bench) -> tokio::task::JoinHandle<Result<usize, CallErrorKind>> {
    look_within(bench, Bounds::patient())
}

fn look_within(
    bench: &Bench,
    bounds: Bounds,
) -> tokio::task::JoinHandle<Result<usize, CallErrorKind>> {
    let docker = bench.docker.clone();
    tokio::spawn(async move {
        let rows = docker.query(&bounds, ListContainers::default()).await;
        rows.map(|rows| rows.len()).map_err(|error| error.kind())
    })
}

#[tokio::test]
async fn of_fifty_calls_no_more_than_eight_run_at_once() {
    let slow = Rule::on(&["ps"]).step(Step::Pause(20));
    let held = Rule::on(&["ps"]).nth(1).step(Step::WaitFor("go on".into()));
    let bench = with_places(8, Duration::from_secs(60), vec![held, slow]).await;
    let calls: Vec<_> = (0..50).map(|_| look(&bench)).collect();
    let all = join_all(calls);
    tokio::pin!(all);
    let mut most = 0;
    let results = loop {
        tokio::select! {
            results = &mut all => break results,
            () = tokio::time::sleep(Duration::from_millis(2)) => {
                let running = bench.stand_in.calls_of(&["ps"]);
                if running.len() > 40 {
                    bench.stand_in.open("go on");
                }
                most = most.max(running.iter().filter(|call| exists(call.pid)).count());
            }
        }
    };
    assert!(results.into_iter().all(|result| result.unwrap() == Ok(0)));
    assert_eq!(bench.docker.log().counts().of("ps"), 50);
    assert!((2..=8).contains(&most), "{most} at once");
}

#[tokio::test]
async fn a_ninth_call_is_not_started_before_one_of_eight_has_ended() {
    let held = Rule::on(&["ps"]).step(Step::WaitFor("go on".into()));
    let bench = with_places(8, Duration::from_secs(60), vec![held]).await;
    let calls: Vec<_> = (0..9).map(|_| look(&bench)).collect();
    bench.stand_in.called(&["ps"], 8).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.docker.log().counts().of("ps"), 8);
    bench.stand_in.open("go on");
    join_all(calls).await;
    assert_eq!(bench.docker.log().counts().of("ps"), 9);
}

#[tokio::test]
async fn waiting_is_recorded_apart_from_running() {
    let held = Rule::on(&["ps"]).nth(1).step(Step::Pause(400));
    let bench = with_places(1, Duration::from_secs(60), vec![held, Rule::on(&["ps"])]).await;
    let first = look(&bench);
    bench.stand_in.called(&["ps"], 1).await;
    let second = look(&bench);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    let calls: Vec<_> = bench.docker.log().recent();
    let calls: Vec<_> = calls.iter().filter(|call| call.verb == "ps").collect();
    assert!(calls[0].ran >= Duration::from_millis(400));
    assert!(calls[0].queued < calls[0].ran);
    assert!(calls[1].queued > Duration::ZERO);
    assert!(calls[0].queued < calls[1].queued);
}

#[tokio::test]
async fn time_in_the_queue_is_no_time_of_the_call() {
    let slow = Rule::on(&["ps"]).step(Step::Pause(1500));
    let bench = with_places(1, Duration::from_secs(4), vec![slow]).await;
    let started = Instant::now();
    let calls: Vec<_> = (0..4).map(|_| look(&bench)).collect();
    let results = join_all(calls).await;
    assert!(
        started.elapsed() > Duration::from_secs(4),
        "the test shows nothing"
    );
    assert!(results.into_iter().all(|result| result.unwrap() == Ok(0)));
}

#[tokio::test]
async fn a_caller_who_gives_up_in_the_queue_starts_nothing() {
    let held = Rule::on(&["ps"]).step(Step::WaitFor("go on".into()));
    let bench = with_places(1, Duration::from_secs(60), vec![held]).await;
    let first = look(&bench);
    bench.stand_in.called(&["ps"], 1).await;
    let mut late = Bounds::patient();
    late.deadline = Instant::now() + Duration::from_millis(50);
    assert_eq!(
        look_within(&bench, late).await.unwrap(),
        Err(CallErrorKind::DeadlinePassed)
    );
    let cancelled = Bounds::patient();
    cancelled.cancel.cancel();
    assert_eq!(
        look_within(&bench, cancelled).await.unwrap(),
        Err(CallErrorKind::Cancelled)
    );
    assert_eq!(bench.docker.log().counts().of("ps"), 1);
    bench.stand_in.open("go on");
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_place_comes_back_however_a_call_ends() {
    let bench = with_places(
        1,
        Duration::from_secs(5),
        vec![
            Rule::on(&["ps"]).nth(1).exit(1),
            Rule::on(&["ps"]).nth(2).step(Step::Die),
            Rule::on(&["ps"])
                .nth(3)
                .step(Step::IgnoreTerm)
                .step(Step::Mark("hangs".into()))
                .step(Step::Hang),
            Rule::on(&["ps"])
                .nth(4)
                .step(Step::IgnoreTerm)
                .step(Step::Hang),
            Rule::on(&["ps"]),
        ],
    )
    .await;
    assert_eq!(look(&bench).await.unwrap(), Err(CallErrorKind::Other));
    assert_eq!(look(&bench).await.unwrap(), Err(CallErrorKind::Signalled));
    let dropped = look(&bench);
    bench.stand_in.reached("hangs").await;
    dropped.abort();
    assert!(dropped.await.is_err());
    assert_eq!(look(&bench).await.unwrap(), Err(CallErrorKind::TimedOut));
    assert_eq!(look(&bench).await.unwrap(), Ok(0));
}

#[tokio::test]
async fn a_client_that_vanishes_is_an_error_and_takes_no_place() {
    let bench = with_places(1, Duration::from_secs(60), vec![]).await;
    std::fs::remove_file(bench.stand_in.docker()).unwrap();
    for _ in 0..2 {
        assert_eq!(look(&bench).await.unwrap(), Err(CallErrorKind::NotStarted));
    }
    assert_eq!(bench.docker.log().counts().total(), 3);
}
