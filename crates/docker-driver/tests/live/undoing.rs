//! What a real engine has made is taken back.

use std::future::Future as _;
use std::task::{Context, Waker};
use std::time::Duration;

use docker_driver::{
    Aftermath, Bounds, CallErrorKind, InspectContainer, RunDetached, RunForeground, Undo, User,
};

use crate::support::Bench;

#[tokio::test]
async fn a_container_whose_caller_has_gone_is_removed() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    for _ in 0..3 {
        let options = bench.options().program("sleep", ["1000"]);
        let mut call = Box::pin(bench.docker.mutate(&bounds, RunDetached(options)));
        assert!(
            call.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        drop(call);
    }
    let settled = bench.docker.settle(bounds.deadline).await;
    assert_eq!(
        (settled.unfinished, settled.failed.len()),
        (0, 0),
        "{settled:?}"
    );
    assert_eq!(bench.docker.log().counts().of("run"), 3);
    assert_eq!(bench.docker.log().counts().of("rm"), 3);
    assert_eq!(bench.containers().await, 0);
    bench.finish().await;
}

#[tokio::test]
async fn a_container_that_cannot_be_started_is_removed_and_the_reason_is_told() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let cases = [
        (
            bench.options().program("/absent", [""; 0]),
            CallErrorKind::ProgramNotFound,
        ),
        (
            bench.options().program("absent", [""; 0]),
            CallErrorKind::ProgramNotFound,
        ),
        (
            bench.options().program("/etc/passwd", [""; 0]),
            CallErrorKind::ProgramNotExecutable,
        ),
        (
            bench.options().program("/etc", [""; 0]),
            CallErrorKind::ProgramNotExecutable,
        ),
    ];
    for (options, kind) in cases {
        let error = bench
            .docker
            .mutate(&bounds, RunDetached(options.clone()))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(matches!(
            error.aftermath(),
            Aftermath::Undone(Undo::RemoveContainer(_))
        ));
        let run = RunForeground::new(options, 1024);
        let error = bench.docker.mutate(&bounds, run).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
    }
    assert_eq!(bench.containers().await, 0);
    bench.finish().await;
}

#[tokio::test]
async fn a_program_that_outlives_its_time_is_removed_with_its_container() {
    let bench = Bench::new().await;
    let mut config = docker_driver::BindConfig::from_env();
    config.timeouts.short = Duration::from_secs(8);
    let hasty = docker_driver::Docker::bind(config).await.unwrap();
    let options = bench
        .options()
        .user(User { uid: 65534, gid: 65534 })
        .program("python3", ["-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"]);
    let name = options.name().clone();
    let run = RunForeground::new(options, 1024);
    let error = hasty.mutate(&Bounds::patient(), run).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    assert!(
        matches!(error.aftermath(), Aftermath::Undone(_)),
        "{error:?}"
    );
    let found = bench
        .docker
        .query(&Bounds::patient(), InspectContainer::new(&name))
        .await
        .unwrap();
    assert_eq!(found, None);
    bench.finish().await;
}
