//! Pulls: their progress, and the one question that docker asks a person.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use docker_driver::stand_in::{Rule, Step};
use docker_driver::{Bounds, CallErrorKind, Docker, LineSink, Outcome, Pull};

use crate::support::{Bench, image, stand_in};

/// What a client of version 28.2.2 prints when an engine of version 28.5.2
/// says that the registry demands a login; it then waits for ever.
const PROMPT: &str = include_str!("../golden/28.5.2/login-prompt.stdout");

#[tokio::test]
async fn each_line_of_progress_is_told_while_the_pull_runs() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let pull = Rule::on(&["pull"])
        .having("--quiet=false")
        .out("1: Pulling from example/image\nabc: Pulling fs ")
        .step(Step::WaitFor("go on".into()))
        .out("layer\nStatus: Downloaded");
    let bench = Bench::new([pull]).await;
    let sink = LineSink::new(move |line| tell.lock().unwrap().push(line.to_owned()));
    let docker = bench.docker.clone();
    let call = tokio::spawn(async move {
        docker
            .query(&Bounds::patient(), Pull::new(image()).tell(sink))
            .await
    });
    docker_driver::stand_in::until("the first line", || !told.lock().unwrap().is_empty()).await;
    assert_eq!(*told.lock().unwrap(), ["1: Pulling from example/image"]);
    bench.stand_in.open("go on");
    call.await.unwrap().unwrap();
    assert_eq!(
        told.lock().unwrap()[1..],
        ["abc: Pulling fs layer", "Status: Downloaded"]
    );
}

#[tokio::test]
async fn a_pull_that_asks_for_a_login_is_ended_and_says_so() {
    let asks = Rule::on(&["pull"])
        .out(PROMPT)
        .step(Step::IgnoreTerm)
        .step(Step::Hang);
    let bench = Bench::new([asks]).await;
    for pull in [
        Pull::new(image()),
        Pull::new(image()).tell(LineSink::new(|_| {})),
    ] {
        let error = bench
            .docker
            .query(&Bounds::patient(), pull)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::RegistryDenied);
        assert!(error.to_string().contains("docker login"), "{error}");
    }
    let last = bench.docker.log().recent().pop().unwrap();
    assert_eq!(last.outcome, Outcome::Prompted);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_client_that_was_ended_has_not_pulled_even_if_it_says_so() {
    // Version 28 exits with code 0 when it is asked to end.
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.timeouts.long = Duration::from_secs(1);
    config.timeouts.grace = Duration::from_secs(60);
    let docker = Docker::bind(config).await.unwrap();
    stand_in.follow([Rule::on(&["pull"])
        .step(Step::IgnoreTerm)
        .step(Step::Mark("pulls".into()))
        .step(Step::WaitFor("go on".into()))
        .exit(0)]);
    let ends = async {
        stand_in.reached("pulls").await;
        // The signal that asks it to end comes in between.
        tokio::time::sleep(Duration::from_secs(2)).await;
        stand_in.open("go on");
    };
    let bounds = Bounds::patient();
    let (result, ()) = tokio::join!(docker.query(&bounds, Pull::new(image())), ends);
    assert_eq!(result.unwrap_err().kind(), CallErrorKind::TimedOut);
}
