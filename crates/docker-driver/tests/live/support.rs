//! What the tests of this tier share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use docker_driver::{
    BindConfig, Bounds, ContainerId, ContainerName, ContainerPath, CreationMark, Docker, ImageRef,
    Label, ListContainers, ListVolumes, RemoveContainer, RemoveVolume, RunDetached, RunOptions,
    VolumeName,
};

const LABEL: &str = "docker-driver.test";

/// A client of the engine, and a label for everything that one test makes.
pub(crate) struct Bench {
    pub(crate) docker: Docker,
    label: Label,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        require_engine();
        let docker = Docker::bind(BindConfig::from_env()).await.unwrap();
        Self {
            docker,
            label: Label::new(LABEL, unique()).unwrap(),
        }
    }

    /// A container of the Python image that this test owns.
    pub(crate) fn options(&self) -> RunOptions {
        self.options_of(python())
    }

    /// The same of another image.
    pub(crate) fn options_of(&self, image: ImageRef) -> RunOptions {
        let mark = CreationMark::new(Label::new("docker-driver.mark", unique()).unwrap());
        RunOptions::new(self.name(), mark, image).labels([self.label.clone()])
    }

    pub(crate) fn name(&self) -> ContainerName {
        ContainerName::new(format!("docker-driver-{}", unique())).unwrap()
    }

    pub(crate) fn volume_name(&self) -> VolumeName {
        VolumeName::new(format!("docker-driver-{}", unique())).unwrap()
    }

    pub(crate) fn label(&self) -> Label {
        self.label.clone()
    }

    /// A container that runs until it is ended.
    pub(crate) async fn running(&self) -> ContainerId {
        let options = self.options().program("sleep", ["1000"]);
        self.docker
            .mutate(&Bounds::patient(), RunDetached(options))
            .await
            .unwrap()
    }

    pub(crate) async fn containers(&self) -> usize {
        let list = ListContainers::labelled([self.label.clone()]);
        self.docker
            .query(&Bounds::patient(), list)
            .await
            .unwrap()
            .len()
    }

    /// Removes what the test has made, and asserts that no work is left.
    pub(crate) async fn finish(self) {
        let bounds = Bounds::patient();
        let settled = self.docker.settle(bounds.deadline).await;
        assert_eq!(
            (settled.unfinished, settled.failed.len()),
            (0, 0),
            "{settled:?}"
        );
        let list = ListContainers::labelled([self.label.clone()]);
        for row in self.docker.query(&bounds, list).await.unwrap() {
            self.docker
                .mutate(&bounds, RemoveContainer::new(row.id))
                .await
                .unwrap();
        }
        let list = ListVolumes::labelled([self.label.clone()]);
        for name in self.docker.query(&bounds, list).await.unwrap() {
            let name = VolumeName::new(name).unwrap();
            self.docker
                .mutate(&bounds, RemoveVolume::new(name))
                .await
                .unwrap();
        }
    }
}

pub(crate) fn python() -> ImageRef {
    let image = std::env::var("STOCKADE_TEST_IMAGE_PYTHON").expect("an image with Python is named");
    ImageRef::new(image).unwrap()
}

pub(crate) fn path(path: &str) -> ContainerPath {
    ContainerPath::new(path).unwrap()
}

/// A word that no other test and no other run has.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    format!(
        "{}-{nanos:x}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A missing engine is a mistake of how the tests were started, never a pass.
pub(crate) fn require_engine() {
    assert!(
        std::env::var_os("STOCKADE_TEST_ENGINE").is_some(),
        "these tests need an engine: start them with `cargo xtask test`"
    );
}
