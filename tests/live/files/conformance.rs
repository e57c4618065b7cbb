//! The conformance suite, on each plane.

use std::sync::Arc;
use std::time::Duration;

use stockade::{Call, Capability};
use stockade_conformance::Conformance;
use stockade_docker::FilePlane;
use stockade_tests::engine::Host;

use super::roomy;

async fn conforms(plane: FilePlane) {
    let host = Host::with(|config| config.file_plane(plane)).await;
    let spec = roomy()
        .requires([
            Capability::Exec,
            Capability::FilesIn,
            Capability::FilesOut,
            Capability::FilesList,
            Capability::FilesDelete,
        ])
        .build()
        .unwrap();
    let call = Call::with_timeout(Duration::from_secs(600));
    let suite = Conformance::new(Arc::new(host.backend.clone()), spec);
    let report = suite.run(&call).await;
    report.assert_green();
    assert!(report.is_complete(), "something was skipped:\n{report}");
    host.finish().await;
}

#[tokio::test]
async fn the_tar_plane_conforms() {
    conforms(FilePlane::Tar).await;
}

#[tokio::test]
async fn the_guest_plane_conforms() {
    conforms(FilePlane::Guest).await;
}
