//! Several holders of one sandbox, and several sandboxes at once.

use std::sync::Arc;

use futures_util::future::join_all;
use stockade::{Backend as _, ExecRequest, SandboxKey};
use stockade_docker::{DockerBackend, DockerConfig, FilePlane};
use stockade_tests::engine::{Host, call, unique};

use super::{batch, nothing_is_paused, patient, request, roomy, rounds, sandbox};

/// Writes and reads back, with a prefix of its own, and runs a command between.
async fn transfers(sandbox: &stockade::Sandbox, prefix: &str, rounds: usize) {
    for round in 0..rounds {
        let directory = format!("{prefix}-{}", round % 3);
        let files = batch(&directory, 5, 2000 + round);
        sandbox
            .write_files(&patient(), files)
            .await
            .expect("files are written");
        let size = ExecRequest::shell(format!("cat {directory}/* | wc -c"));
        let size = size.build().expect("the request is valid");
        let size = sandbox
            .exec(&patient(), size)
            .await
            .expect("the command runs");
        assert_eq!(size.stdout_text().trim(), (5 * (2000 + round)).to_string());
        let read = sandbox.read_files(&patient(), request(&directory, 5)).await;
        for (number, file) in read.expect("files are read").iter().enumerate() {
            let bytes = file.content.to_bytes().await.expect("it is there");
            assert_eq!(bytes.len(), 2000 + round);
            assert!(bytes.iter().all(|&byte| usize::from(byte) == number));
        }
    }
}

#[tokio::test]
async fn two_hosts_on_one_sandbox_transfer_at_the_same_time() {
    let fixture = sandbox(FilePlane::Tar, roomy()).await;
    let config = DockerConfig::new(&fixture.host.owner).file_plane(FilePlane::Tar);
    let other = DockerBackend::connect(&call(), config).await.unwrap();
    let same = other.acquire(&call(), &fixture.key, &fixture.spec).await;
    let same = same.unwrap();
    assert_eq!(same.id(), fixture.sandbox.id());
    tokio::join!(
        transfers(&fixture.sandbox, "ours", rounds(12)),
        transfers(&same, "theirs", rounds(12)),
    );
    nothing_is_paused(&fixture.host.owner);
    drop(same);
    let closed = other.close(&call()).await.unwrap();
    assert!(closed.failures.is_empty());
    fixture.close().await;
}

#[tokio::test]
async fn ten_sandboxes_take_files_commands_and_give_files_at_the_same_time() {
    let host = Host::with(|config| config.file_plane(FilePlane::Tar)).await;
    let spec = roomy().build().unwrap();
    let thread = unique("ten");
    let keys: Vec<SandboxKey> = (0..10)
        .map(|number| SandboxKey::new("tests", &thread, "agent").with_call(number.to_string()))
        .collect();
    let backend = Arc::new(host.backend.clone());
    let lives = keys.iter().map(|key| {
        let (backend, spec) = (Arc::clone(&backend), Arc::clone(&spec));
        async move {
            let sandbox = backend.acquire(&patient(), key, &spec).await.unwrap();
            transfers(&sandbox, "files", rounds(4)).await;
        }
    });
    join_all(lives).await;
    nothing_is_paused(&host.owner);
    let removed = host.backend.dispose_scope(&call(), "tests", &thread).await;
    let removed = removed.unwrap();
    assert!(removed.failures.is_empty(), "{:?}", removed.failures);
    host.finish().await;
}

#[tokio::test]
async fn one_handle_takes_many_transfers_at_once() {
    for plane in super::PLANES {
        let fixture = sandbox(plane, roomy()).await;
        let names: Vec<String> = (0..16).map(|number| format!("one-{number}")).collect();
        let work = names.iter().map(|name| async {
            let files = batch(name, 3, 100);
            fixture
                .sandbox
                .write_files(&patient(), files)
                .await
                .unwrap();
            let read = fixture
                .sandbox
                .read_files(&patient(), request(name, 3))
                .await;
            assert_eq!(read.unwrap().len(), 3);
        });
        join_all(work).await;
        nothing_is_paused(&fixture.host.owner);
        fixture.close().await;
    }
}
