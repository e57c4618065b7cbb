//! Builds: what is told of them, and how they fail.

use std::sync::{Arc, Mutex};

use docker_driver::stand_in::{Rule, Step, until};
use docker_driver::{Bounds, Build, CallErrorKind, LineSink, Outcome};

use crate::support::{Bench, ID, image_id};

const DEPRECATED: &str = "DEPRECATED: The legacy builder is deprecated\n\n";

fn build() -> Build {
    Build::new("/some folder").unwrap()
}

/// A sink, and what it was told.
fn sink() -> (LineSink, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let sink = LineSink::new(move |line| tell.lock().unwrap().push(line.to_owned()));
    (sink, told)
}

#[tokio::test]
async fn each_line_of_both_streams_is_told_while_the_build_runs() {
    let builds = Rule::on(&["build"])
        .err("#1 [internal] load build definition\n")
        .step(Step::WaitFor("second".into()))
        .out("Step 1/1 : FROM scratch\n")
        .step(Step::WaitFor("third".into()))
        .step(Step::WriteId(ID.into()))
        .err("#2 DONE 0.1s");
    let bench = Bench::new([builds]).await;
    let (sink, told) = sink();
    let docker = bench.docker.clone();
    let call =
        tokio::spawn(async move { docker.query(&Bounds::patient(), build().tell(sink)).await });
    let count = || told.lock().unwrap().len();
    until("the first line", || count() == 1).await;
    bench.stand_in.open("second");
    until("the second line", || count() == 2).await;
    bench.stand_in.open("third");
    assert_eq!(call.await.unwrap().unwrap(), image_id());
    assert_eq!(
        *told.lock().unwrap(),
        [
            "#1 [internal] load build definition",
            "Step 1/1 : FROM scratch",
            "#2 DONE 0.1s"
        ]
    );
}

#[tokio::test]
async fn a_step_that_fails_is_told_by_its_kind_with_the_end_of_the_output() {
    let fails = Rule::on(&["build"])
        .err(DEPRECATED)
        .out("Step 2/2 : RUN make\n")
        .step(Step::Flood(100 * 1024))
        .out("\nmake: no such container\n")
        .err("The command '/bin/sh -c make' returned a non-zero code: 2\n")
        .exit(2);
    let bench = Bench::new([fails]).await;
    let error = bench
        .docker
        .query(&Bounds::patient(), build())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::BuildFailed);
    let (progress, words) = error
        .detail()
        .split_once("make: no such container")
        .unwrap();
    assert!(progress.starts_with("xxx") && progress.len() <= 64 * 1024);
    assert!(words.ends_with("returned a non-zero code: 2"), "{words}");
    assert!(!error.to_string().contains("make"), "{error}");
}

#[tokio::test]
async fn a_success_that_leaves_no_id_is_no_answer() {
    let bench = Bench::new([Rule::on(&["build"]).out("Successfully built 4a20c3e5695b\n")]).await;
    let result = bench.docker.query(&Bounds::patient(), build()).await;
    assert_eq!(result.unwrap_err().kind(), CallErrorKind::UnexpectedAnswer);
}

#[tokio::test]
async fn the_file_of_the_id_is_in_a_folder_of_its_own_that_goes_with_the_call() {
    let bench = Bench::new([Rule::on(&["build"]).step(Step::WriteId(ID.into()))]).await;
    for _ in 0..2 {
        let built = bench.docker.query(&Bounds::patient(), build()).await;
        assert_eq!(built.unwrap(), image_id());
    }
    let calls = bench.stand_in.calls_of(&["build"]);
    let file = |at: usize| {
        let words = calls[at].words.iter();
        let mut files = words.filter_map(|word| word.strip_prefix("--iidfile="));
        std::path::PathBuf::from(files.next().unwrap())
    };
    assert_ne!(file(0), file(1));
    assert!(!file(0).parent().unwrap().exists());
}

#[tokio::test]
async fn a_build_that_nobody_waits_for_is_ended() {
    let hangs = Rule::on(&["build"])
        .step(Step::Mark("builds".into()))
        .step(Step::Hang);
    let bench = Bench::new([hangs]).await;
    let bounds = Bounds::patient();
    tokio::select! {
        result = bench.docker.query(&bounds, build()) => panic!("{result:?}"),
        () = bench.stand_in.reached("builds") => {}
    }
    bench.assert_all_reaped().await;
    let last = bench.docker.log().recent().pop().unwrap();
    assert_eq!(last.outcome, Outcome::Stopped);
}
