//! The daemon goes away in the middle of every operation, and comes back, with
//! and without its containers.
//!
//! Only a provisioned engine may be restarted; somebody's own is left alone,
//! and these tests then say that they did not run.

use std::time::Duration;

use futures_util::future::{join, join_all};
use stockade::{Backend as _, Call, ErrorKind, ReapFilter};
use stockade_tests::client::Plan;
use stockade_tests::engine::{call, restart};
use tokio::time::sleep;

use crate::act::{Acted, Finding};
use crate::matrix::warm_up;
use crate::scenario::Scenario;
use crate::world::{PATIENT, World};

/// Each in a sandbox of its own, so that one restart falls into all of them.
const SCENARIOS: [Scenario; 10] = [
    Scenario::Acquire,
    Scenario::AcquireAnother,
    Scenario::AcquireOnDisk,
    Scenario::AcquireWhatIsThere,
    Scenario::Exec,
    Scenario::WriteTar,
    Scenario::ReadTar,
    Scenario::Dispose,
    Scenario::DisposeScope,
    Scenario::Reap,
];

/// What an operation may say whose daemon went away.
const KINDS: [ErrorKind; 3] = [ErrorKind::Unavailable, ErrorKind::Lost, ErrorKind::NotFound];

#[tokio::test]
async fn a_daemon_that_goes_with_its_containers_leaves_nothing_and_the_next_operation_works() {
    under_restart("--no-live-restore").await;
}

#[tokio::test]
async fn a_daemon_that_goes_without_its_containers_leaves_nothing_and_the_next_operation_works() {
    under_restart("--live-restore").await;
    restart(&["--no-live-restore"]);
}

async fn under_restart(mode: &'static str) {
    if !restart(&[mode]) {
        return;
    }
    warm_up().await;
    let mut worlds = Vec::new();
    for scenario in SCENARIOS {
        let mut world = scenario.world(PATIENT).await;
        let ready = scenario.prepare(&mut world).await;
        ready.unwrap_or_else(|finding| panic!("{scenario:?}: {finding}"));
        world.client.arm(Plan::default());
        worlds.push((scenario, world));
    }
    let begun: Vec<_> = worlds
        .iter()
        .map(|(_, world)| world.client.watch())
        .collect();
    let operations = worlds.iter_mut().map(async |(scenario, world)| {
        let acted = scenario.act(world, &Call::with_timeout(PATIENT)).await;
        judge(acted).map_err(|finding| format!("{scenario:?}, {mode}: {finding}"))
    });
    let restarted = async {
        while begun.iter().any(|watch| watch.seen().is_empty()) {
            sleep(Duration::from_millis(5)).await;
        }
        let restart = tokio::task::spawn_blocking(move || restart(&[mode, "--kill"]));
        restart.await.expect("the restart ends");
    };
    let (judged, ()) = join(join_all(operations), restarted).await;
    let mut findings: Vec<Finding> = judged.into_iter().filter_map(Result::err).collect();
    for (scenario, world) in worlds {
        if let Err(finding) = goes_on(world).await {
            findings.push(format!("{scenario:?}, {mode}, afterwards: {finding}"));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

fn judge(acted: Result<Acted, Finding>) -> Result<(), Finding> {
    match acted? {
        Acted::Failed(error) if !KINDS.contains(&error.kind()) => {
            Err(format!("the kind is {:?}: {error:?}", error.kind()))
        }
        Acted::Failed(error) if error.phase().is_none() => Err(format!("no phase: {error:?}")),
        _ => Ok(()),
    }
}

/// What comes next works. A daemon that ends removes a container and not its
/// volume, which is of no sandbox any more: a reap finds it by its labels.
async fn goes_on(mut world: World) -> Result<(), Finding> {
    world.sandbox = None;
    world.works().await?;
    world.sandbox = None;
    let everything = ReapFilter::everything();
    match world.backend.reap(&call(), &everything).await {
        Ok(reaped) if reaped.is_clean() => world.finish().await,
        other => Err(format!("the next reap failed: {other:?}")),
    }
}
