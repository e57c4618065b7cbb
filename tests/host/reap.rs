//! A host that comes after the others and removes what they left.

use serde_json::json;
use stockade::{Backend as _, ReapFilter};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::engine::call;

/// Removes everything of an owner, in use or not, and prints what it did.
pub(crate) async fn run(owner: &str) {
    let backend = DockerBackend::connect(&call(), DockerConfig::new(owner)).await;
    let backend = backend.unwrap();
    let filter = ReapFilter::everything().including_in_use();
    let reaped = backend.reap(&call(), &filter).await.unwrap();
    let closed = backend.close(&call()).await.unwrap();
    let failures: Vec<_> = reaped
        .failures
        .iter()
        .chain(&closed.failures)
        .map(ToString::to_string)
        .collect();
    let line = json!({
        "sandboxes": reaped.sandboxes,
        "others": reaped.others,
        "failures": failures,
    });
    println!("{line}");
}
