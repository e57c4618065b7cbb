//! What files cost, counted in docker commands by the driver's own log, on the
//! uncontended path.

use stockade_docker::FilePlane;
use stockade_tests::engine::{Fixture, call};

use super::{batch, path, request, roomy, sandbox};

/// A sandbox whose channel is open.
async fn open(plane: FilePlane) -> Fixture {
    let fixture = sandbox(plane, roomy()).await;
    fixture.sh("mkdir -p one/two").await;
    fixture
}

/// How many docker commands a future takes.
async fn cost<T>(fixture: &Fixture, work: impl Future<Output = stockade::Result<T>>) -> u64 {
    let before = fixture.host.backend.invocations();
    work.await.expect("it works");
    fixture.host.backend.invocations() - before
}

#[tokio::test]
async fn a_copy_is_pause_copy_thaw_and_one_look_for_each_directory_on_the_way() {
    let fixture = open(FilePlane::Tar).await;
    let sandbox = &fixture.sandbox;
    let call = call();
    for (directory, ancestors) in [(".", 0), ("one", 1), ("one/two", 2)] {
        for count in [1, 100] {
            let write = sandbox.write_files(&call, batch(directory, count, 100));
            let cost_of_it = cost(&fixture, write).await;
            assert!(
                cost_of_it <= 4 + ancestors,
                "{count} files written into {directory}: {cost_of_it} commands"
            );
        }
        let name = format!("{directory}/1");
        let read = cost(&fixture, sandbox.read_file(&call, &name)).await;
        assert!(read <= 3 + ancestors, "read of {name}: {read} commands");
        let read = sandbox.read_files(&call, request(directory, 100));
        let read = cost(&fixture, read).await;
        assert!(
            read <= 3 + ancestors,
            "100 files read of {directory}: {read} commands"
        );
    }
    fixture.close().await;
}

#[tokio::test]
async fn the_guest_plane_costs_no_docker_command() {
    let fixture = open(FilePlane::Guest).await;
    let sandbox = &fixture.sandbox;
    let call = call();
    let write = sandbox.write_files(&call, batch("one", 100, 100));
    assert_eq!(cost(&fixture, write).await, 0);
    let read = sandbox.read_files(&call, request("one", 100));
    assert_eq!(cost(&fixture, read).await, 0);
    fixture.close().await;
}

#[tokio::test]
async fn looking_and_removing_cost_no_docker_command_in_either_plane() {
    for plane in super::PLANES {
        let fixture = open(plane).await;
        let sandbox = &fixture.sandbox;
        let call = call();
        assert_eq!(cost(&fixture, sandbox.stat(&call, "one")).await, 0);
        let list = stockade::ListRequest::new(path("."));
        assert_eq!(cost(&fixture, sandbox.list_dir(&call, list)).await, 0);
        let remove = sandbox.remove(&call, "one/two", true);
        assert_eq!(cost(&fixture, remove).await, 0);
        assert_eq!(cost(&fixture, sandbox.reclaim(&call, "one")).await, 0);
        fixture.close().await;
    }
}

#[tokio::test]
async fn a_path_that_escapes_costs_nothing_at_all() {
    for plane in super::PLANES {
        let fixture = sandbox(plane, roomy()).await;
        let before = fixture.host.backend.invocations();
        for escape in ["../x", "/etc/passwd", "a/../../x", "a\\b", "a\0b", ""] {
            let refused = fixture.sandbox.write_file(&call(), escape, "x").await;
            assert!(refused.is_err(), "{escape:?}");
        }
        assert_eq!(fixture.host.backend.invocations(), before);
        fixture.close().await;
    }
}
