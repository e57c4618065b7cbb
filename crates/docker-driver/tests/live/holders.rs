//! What becomes of a held container when the process that holds it is killed
//! or stopped.

use std::process::Stdio;

use docker_driver::{Bounds, CallErrorKind, ContainerEvent, ContainerId, ExecStream, HoldRequest};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::holds::status;
use crate::support::Bench;

/// Another process that holds a container.
struct Holder {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    #[expect(
        clippy::disallowed_methods,
        reason = "another process that uses the driver, not one of the driver's"
    )]
    fn of(container: &ContainerId, seconds: u32) -> Self {
        // As under `nohup`.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_docker-holder"))
            .args([container.as_str(), &seconds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            orders,
            answers,
        }
    }

    async fn order(&mut self, order: &str) {
        let line = format!("{order}\n");
        self.orders.write_all(line.as_bytes()).await.unwrap();
    }

    async fn answer(&mut self) -> String {
        self.answers.next_line().await.unwrap().unwrap()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed());
        kill_process(pid.unwrap(), signal).unwrap();
    }
}

#[tokio::test]
async fn a_holder_that_is_killed_in_the_middle_of_a_copy_leaves_the_container_thawed() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let mut events = bench
        .docker
        .events(&Bounds::patient(), &container)
        .await
        .unwrap();
    let mut holder = Holder::of(&container, 30);
    assert_eq!(holder.answer().await, "held");
    holder.order("begin").await;
    assert_eq!(holder.answer().await, "ok");
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Paused);
    holder.signal(Signal::KILL);
    holder.child.wait().await.unwrap();
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Unpaused);
    assert_eq!(status(&bench, &container).await, "running");
    drop(events);
    bench.finish().await;
}

#[tokio::test]
async fn a_holder_that_is_stopped_past_its_time_loses_the_hold_and_copies_nothing_more() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let mut events = bench
        .docker
        .events(&Bounds::patient(), &container)
        .await
        .unwrap();
    let mut holder = Holder::of(&container, 1);
    assert_eq!(holder.answer().await, "held");
    holder.signal(Signal::STOP);
    // Ordered while it cannot hear it, carried out when it is over.
    holder.order("begin").await;
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Paused);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Unpaused);
    assert_eq!(status(&bench, &container).await, "running");
    holder.signal(Signal::CONT);
    assert_eq!(holder.answer().await, "HoldEnded");
    holder.order("release").await;
    assert_eq!(holder.answer().await, "ok");
    assert_eq!(holder.answer().await, "ok", "it is thawed");
    assert_eq!(found(&bench, &container).await, "");
    drop(events);
    bench.finish().await;
}

#[tokio::test]
async fn a_copy_whose_holder_is_stopped_past_its_time_is_ended_by_the_guard() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let mut events = bench
        .docker
        .events(&Bounds::patient(), &container)
        .await
        .unwrap();
    let mut holder = Holder::of(&container, 5);
    assert_eq!(holder.answer().await, "held");
    holder.order("begin").await;
    assert_eq!(holder.answer().await, "ok");
    holder.signal(Signal::STOP);
    holder.order("complete").await;
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Paused);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Unpaused);
    holder.signal(Signal::CONT);
    assert_eq!(holder.answer().await, "HoldEnded");
    assert_ne!(
        found(&bench, &container).await,
        (1024 * 1024).to_string(),
        "it is not whole"
    );
    drop(events);
    bench.finish().await;
}

#[tokio::test]
async fn a_copy_that_waits_for_a_stopped_holder_to_read_does_not_keep_the_container_paused() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let mut events = bench
        .docker
        .events(&Bounds::patient(), &container)
        .await
        .unwrap();
    let mut holder = Holder::of(&container, 5);
    assert_eq!(holder.answer().await, "held");
    holder.order("read").await;
    assert_eq!(holder.answer().await, "ok");
    holder.signal(Signal::STOP);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Paused);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Unpaused);
    assert_eq!(status(&bench, &container).await, "running");
    holder.signal(Signal::CONT);
    drop(events);
    bench.finish().await;
}

#[tokio::test]
async fn of_two_processes_one_holds_a_container_and_the_other_is_told() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let mut holder = Holder::of(&container, 30);
    assert_eq!(holder.answer().await, "held");
    let request = || HoldRequest::new(container.clone());
    let bounds = Bounds::patient();
    let error = bench.docker.hold(&bounds, request()).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::AlreadyPaused);
    assert_eq!(status(&bench, &container).await, "paused");
    holder.order("release").await;
    assert_eq!(holder.answer().await, "ok");
    assert_eq!(holder.answer().await, "ok");
    let hold = bench.docker.hold(&bounds, request()).await.unwrap();
    hold.release().await.unwrap();
    bench.finish().await;
}

/// The size of what the holder copies; nothing if it is not there.
async fn found(bench: &Bench, container: &ContainerId) -> String {
    let stat = ExecStream::new(container, "stat", ["--format=%s", "/tmp/landed"]);
    let stream = bench.docker.open_stream(&Bounds::patient(), stat).await;
    let (_input, mut output, mut control) = stream.unwrap().split();
    let mut size = String::new();
    output.read_to_string(&mut size).await.unwrap();
    control.wait().await;
    size.trim().to_owned()
}
