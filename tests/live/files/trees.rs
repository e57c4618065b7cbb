//! Trees: listed with what is closed, and read with few copies.

use stockade::files::FileWrite;
use stockade::{ListRequest, ReadRequest};
use stockade_docker::FilePlane;
use stockade_tests::engine::call;

use super::{PLANES, path, roomy, sandbox};

#[tokio::test]
async fn what_may_not_be_looked_into_is_named_and_the_rest_is_listed() {
    for plane in PLANES {
        let fixture = sandbox(plane, roomy()).await;
        fixture
            .sh("mkdir -p d/open d/closed && echo x > d/open/f && chmod 0 d/closed")
            .await;
        let request = ListRequest::new(path("d")).recursive();
        let listing = fixture.sandbox.list_dir(&call(), request).await.unwrap();
        let names: Vec<&[u8]> = listing
            .entries
            .iter()
            .map(|entry| &entry.name[..])
            .collect();
        assert_eq!(names, [b"closed".as_slice(), b"open", b"open/f"]);
        assert_eq!(listing.closed, [b"closed".to_vec()]);
        assert!(!listing.truncated, "it is closed, and not cut");
        fixture.close().await;
    }
}

#[tokio::test]
async fn a_tree_of_many_directories_is_read_by_few_copies() {
    let fixture = sandbox(FilePlane::Tar, roomy()).await;
    let paths: Vec<_> = (0..50).map(|at| path(&format!("t/{at}/deep/f"))).collect();
    let files = paths
        .iter()
        .map(|path| FileWrite::new(path.clone(), path.to_string()));
    fixture
        .sandbox
        .write_files(&call(), files.collect())
        .await
        .unwrap();
    let before = fixture.host.backend.invocations();
    let request = ReadRequest::of(paths.clone());
    let read = fixture.sandbox.read_files(&call(), request).await.unwrap();
    let cost = fixture.host.backend.invocations() - before;
    assert!(cost <= 4, "{cost} docker commands for one tree");
    for (path, file) in paths.iter().zip(read) {
        assert_eq!(file.path, *path);
        let bytes = file.content.to_bytes().await.unwrap();
        assert_eq!(bytes, path.to_string());
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_link_or_a_closed_directory_inside_of_a_tree_is_refused_and_not_passed() {
    let fixture = sandbox(FilePlane::Tar, roomy()).await;
    fixture
        .sh(
            "mkdir -p t/a t/b t/real && echo a > t/a/f && echo b > t/b/f && \
             echo c > t/real/f && ln -s real t/link && mkdir t/shut && echo d > t/shut/f",
        )
        .await;
    for (name, code) in [
        ("t/link/f", "file_linked_parent"),
        ("t/none/f", "file_missing"),
    ] {
        let request = ReadRequest::of([path("t/a/f"), path("t/b/f"), path(name)]);
        let error = fixture.sandbox.read_files(&call(), request).await;
        let error = error.unwrap_err();
        let refusal = error.refusal().map(stockade::Refusal::code);
        assert_eq!(refusal, Some(code), "{error}");
    }
    // The guest itself could not pass it, so that nobody does for it.
    fixture.sh("chmod 0 t/shut").await;
    let request = ReadRequest::of([path("t/a/f"), path("t/b/f"), path("t/shut/f")]);
    let error = fixture.sandbox.read_files(&call(), request).await;
    let refusal = error.unwrap_err();
    let refusal = refusal.refusal().map(stockade::Refusal::code);
    assert_eq!(refusal, Some("file_denied"));
    fixture.close().await;
}
