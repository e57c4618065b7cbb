//! Files in and out, in both planes.

mod attacks;
mod budget;
mod conformance;
mod holds;
mod memory;
mod several;
mod space;
mod subject;
mod trees;

use std::time::Duration;

use stockade::{Call, SpecBuilder};
use stockade_docker::{DockerConfig, FilePlane};
use stockade_tests::engine::{Fixture, Host};
use stockade_tests::files::{batch, path, request, roomy};

/// Every plane, so that a new one cannot be forgotten.
const PLANES: [FilePlane; 2] = [FilePlane::Tar, FilePlane::Guest];

async fn sandbox(plane: FilePlane, spec: SpecBuilder) -> Fixture {
    Host::with(|config: DockerConfig| config.file_plane(plane))
        .await
        .acquire(spec)
        .await
}

/// How often something is repeated: `STOCKADE_TEST_ROUNDS` times as often as
/// in an ordinary run.
fn rounds(ordinary: usize) -> usize {
    let times = std::env::var("STOCKADE_TEST_ROUNDS");
    let times = times.map_or(1, |times| times.parse().expect("a number of times"));
    ordinary * times
}

/// A call that has time for a wait behind other holders.
fn patient() -> Call {
    Call::with_timeout(Duration::from_secs(180))
}

/// Asserts that no container of the owner is paused, and that the engine says
/// so at once.
fn nothing_is_paused(owner: &str) {
    let filter = format!("label=dev.stockade.owner={owner}");
    let paused = stockade_tests::engine::docker_ok([
        "ps",
        "--quiet",
        "--filter",
        &filter,
        "--filter",
        "status=paused",
    ]);
    assert_eq!(paused, "", "a container is paused");
}
