//! Streams that are held open.

use std::time::Duration;

use docker_driver::stand_in::{Rule, Step};
use docker_driver::{
    Bounds, CallErrorKind, Docker, ExecStream, Exit, ListContainers, Outcome, Stream,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Bench, exists, gone, id, pid_at, stand_in};

async fn open(bench: &Bench) -> Stream {
    let attach = ExecStream::new(id(), "/program", ["attach"]);
    bench
        .docker
        .open_stream(&Bounds::patient(), attach)
        .await
        .unwrap()
}

#[tokio::test]
async fn bytes_pass_both_ways_exactly_and_the_end_of_input_is_seen() {
    let bench = Bench::new([Rule::on(&["exec"]).step(Step::CopyInput)]).await;
    let (mut input, mut output, mut control) = open(&bench).await.split();
    let sent: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let write = async {
        input.write_all(&sent).await.unwrap();
        input.shutdown().await.unwrap();
        input.write_all(b"more").await.unwrap_err();
    };
    let mut received = Vec::new();
    let (_, read) = tokio::join!(write, output.read_to_end(&mut received));
    read.unwrap();
    assert!(received == sent);
    let end = control.wait().await;
    assert_eq!((end.exit, end.stopped), (Exit::Code(0), false));
    let words: Vec<_> = bench.stand_in.calls_of(&["exec"])[0].words.clone();
    assert_eq!(
        words[1..],
        ["--interactive=true", id().as_str(), "/program", "attach"]
    );
}

#[tokio::test]
async fn a_dropped_stream_ends_and_reaps_its_process() {
    let hang = Rule::on(&["exec"])
        .step(Step::IgnoreTerm)
        .step(Step::Mark("up".into()))
        .step(Step::Hang);
    let bench = Bench::new([hang]).await;
    let stream = open(&bench).await;
    bench.stand_in.reached("up").await;
    drop(stream);
    gone(pid_at(&bench.stand_in, "up")).await;
    bench.assert_all_reaped().await;
    let last = bench.docker.log().recent().pop().unwrap();
    assert_eq!((last.verb, last.outcome), ("exec", Outcome::Stopped));
}

#[tokio::test]
async fn the_control_alone_keeps_the_process() {
    let bench = Bench::new([Rule::on(&["exec"])
        .step(Step::CopyInput)
        .step(Step::WaitFor("go on".into()))])
    .await;
    let (input, output, mut control) = open(&bench).await.split();
    drop((input, output));
    bench.stand_in.open("go on");
    let end = control.wait().await;
    assert_eq!((end.exit, end.stopped), (Exit::Code(0), false));
    assert_eq!(control.wait().await, end);
}

#[tokio::test]
async fn a_killed_stream_says_so() {
    let bench = Bench::new([Rule::on(&["exec"])
        .step(Step::IgnoreTerm)
        .out("up")
        .step(Step::Hang)])
    .await;
    let (_input, mut output, mut control) = open(&bench).await.split();
    let mut up = [0; 2];
    output.read_exact(&mut up).await.unwrap();
    control.kill();
    let end = control.wait().await;
    assert_eq!((end.exit, end.stopped), (Exit::Signal(9), true));
    assert_eq!(output.read(&mut up).await.unwrap(), 0);
}

#[tokio::test]
async fn a_stream_that_has_spoken_takes_no_place() {
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.in_flight = 1;
    let docker = Docker::bind(config).await.unwrap();
    stand_in.follow([
        Rule::on(&["exec"]).out("up").step(Step::CopyInput),
        Rule::on(&["ps"]),
    ]);
    let bench = Bench { stand_in, docker };
    let mut streams = Vec::new();
    for _ in 0..3 {
        let (input, mut output, control) = open(&bench).await.split();
        output.read_exact(&mut [0; 2]).await.unwrap();
        streams.push((input, output, control));
    }
    bench
        .docker
        .query(&Bounds::patient(), ListContainers::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stream_that_keeps_silent_gives_its_place_back_too() {
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.in_flight = 1;
    let docker = Docker::bind(config).await.unwrap();
    stand_in.follow([Rule::on(&["exec"]).step(Step::CopyInput), Rule::on(&["ps"])]);
    let bench = Bench { stand_in, docker };
    let _silent = open(&bench).await;
    bench
        .docker
        .query(&Bounds::patient(), ListContainers::default())
        .await
        .unwrap();
    let last = bench.docker.log().recent().pop().unwrap();
    assert!(last.queued >= Duration::from_secs(1), "{last:?}");
}

#[tokio::test]
async fn complaints_never_block_a_stream_and_their_end_is_kept() {
    let bench = Bench::new([Rule::on(&["exec"])
        .step(Step::FloodErr(4 * 1024 * 1024))
        .err("the end")
        .out("up")
        .exit(3)])
    .await;
    let (_input, mut output, mut control) = open(&bench).await.split();
    let mut said = String::new();
    output.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "up");
    let end = control.wait().await;
    assert_eq!(end.exit, Exit::Code(3));
    assert_eq!(end.stderr.len(), 64 * 1024);
    assert!(end.stderr.ends_with(b"xxxthe end"));
}

#[tokio::test]
async fn dockers_own_complaint_about_a_stream_is_told_by_its_kind() {
    let complaint = |text: &str, code| Rule::on(&["exec"]).nth(code).err(text).exit(code as u8);
    let bench = Bench::new([
        complaint("Error response from daemon: No such container: abc", 1),
        complaint(
            "Error response from daemon: container abc is not running",
            2,
        ),
        complaint("Traceback (most recent call last):", 3),
    ])
    .await;
    let mut kinds = Vec::new();
    for _ in 0..3 {
        let (_, _, mut control) = open(&bench).await.split();
        kinds.push(control.wait().await.complaint());
    }
    assert_eq!(
        kinds,
        [
            Some(CallErrorKind::NoSuchContainer),
            Some(CallErrorKind::NotRunning),
            None
        ]
    );
}

#[tokio::test]
async fn a_client_that_cannot_be_started_opens_nothing() {
    let bench = Bench::new([]).await;
    std::fs::remove_file(bench.stand_in.docker()).unwrap();
    let attach = ExecStream::new(id(), "/program", ["attach"]);
    let error = bench
        .docker
        .open_stream(&Bounds::patient(), attach)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotStarted);
}

#[tokio::test]
async fn a_stream_that_is_kept_open_is_nothing_to_settle_and_one_that_was_let_go_is() {
    let hang = Rule::on(&["exec"])
        .step(Step::IgnoreTerm)
        .step(Step::Mark("up".into()))
        .step(Step::Hang);
    let bench = Bench::new([hang]).await;
    let stream = open(&bench).await;
    bench.stand_in.reached("up").await;
    bench.settle().await;
    let pid = pid_at(&bench.stand_in, "up");
    assert!(exists(pid));
    let (_input, _output, mut control) = stream.split();
    control.kill();
    bench.settle().await;
    assert!(!exists(pid));
    assert!(control.wait().await.stopped);
    control.kill();
    bench.settle().await;
}
