//! The conformance suite, on each plane.

use std::sync::Arc;
use std::time::Duration;

use stockade::{Call, Capability, IsolationScope, ResourceLimits};
use stockade_conformance::Conformance;
use stockade_docker::FilePlane;
use stockade_tests::engine::Host;

use super::roomy;
use super::subject::WithRoot;

async fn conforms(plane: FilePlane) {
    let host = Host::with(|config| config.file_plane(plane)).await;
    // Small, so that filling it takes no time.
    let mut limits = ResourceLimits::default();
    limits.work_bytes = 48 * 1024 * 1024;
    limits.work_inodes = 2048;
    let spec = roomy()
        .limits(limits)
        .isolation_scope(IsolationScope::Conversation)
        .requires([
            Capability::Exec,
            Capability::FilesIn,
            Capability::FilesOut,
            Capability::FilesList,
            Capability::FilesDelete,
        ])
        .build()
        .expect("the spec is valid");
    let call = Call::with_timeout(Duration::from_secs(600));
    let suite =
        Conformance::new(Arc::new(host.backend.clone()), spec).subject(Arc::new(WithRoot::new()));
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
