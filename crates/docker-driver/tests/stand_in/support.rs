//! What the tests of this tier share.

use std::path::Path;
use std::time::Duration;

use docker_driver::stand_in::{Rule, StandIn, until};
use docker_driver::{
    Bounds, ContainerId, ContainerName, ContainerPath, CreationMark, Docker, ImageId, ImageRef,
    Label, RunOptions, VolumeName,
};

pub(crate) const ID: &str = "4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824";

/// A stand-in and a client that is bound to it.
pub(crate) struct Bench {
    pub(crate) stand_in: StandIn,
    pub(crate) docker: Docker,
}

impl Bench {
    /// Binds, and follows these rules from then on. Nothing of a call that
    /// does not hang takes as long as the timeouts here on any machine.
    pub(crate) async fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::with_timeout(Duration::from_secs(60), rules).await
    }

    /// The same, where every call is ended after `timeout`.
    pub(crate) async fn with_timeout(
        timeout: Duration,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Self {
        let stand_in = stand_in();
        let mut config = stand_in.config();
        config.timeouts.grace = Duration::from_millis(50);
        config.timeouts.leak = Duration::from_millis(50);
        config.timeouts.short = timeout;
        config.timeouts.long = timeout;
        let docker = Docker::bind(config)
            .await
            .expect("the stand-in can be bound");
        stand_in.follow(rules);
        Self { stand_in, docker }
    }

    /// Waits until nothing goes on in the background.
    pub(crate) async fn settle(&self) {
        let settled = self.docker.settle(Bounds::patient().deadline).await;
        assert_eq!(settled.unfinished, 0);
        assert_eq!(settled.failed, []);
    }

    /// Asserts that no process of the client is left, not even a dead one
    /// that was not reaped.
    pub(crate) async fn assert_all_reaped(&self) {
        self.settle().await;
        for call in self.stand_in.calls() {
            assert!(!exists(call.pid), "{:?} is left", call.words);
        }
    }
}

pub(crate) fn stand_in() -> StandIn {
    StandIn::new(env!("CARGO_BIN_EXE_docker-stand-in"))
}

/// Whether there is such a process, dead or alive.
pub(crate) fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Waits until a process has gone.
pub(crate) async fn gone(pid: u32) {
    until(&format!("the end of process {pid}"), || !exists(pid)).await;
}

/// The number that a mark holds.
pub(crate) fn pid_at(stand_in: &StandIn, mark: &str) -> u32 {
    let folder = stand_in.docker();
    let folder = folder.parent().unwrap_or(Path::new("/"));
    std::fs::read_to_string(folder.join(mark))
        .unwrap()
        .parse()
        .unwrap()
}

pub(crate) fn id() -> ContainerId {
    ContainerId::new(ID).unwrap()
}

pub(crate) fn volume() -> VolumeName {
    VolumeName::new("some-volume").unwrap()
}

pub(crate) fn image_id() -> ImageId {
    ImageId::new(format!("sha256:{ID}")).unwrap()
}

pub(crate) fn image() -> ImageRef {
    ImageRef::new("example/image:1").unwrap()
}

pub(crate) fn path(path: &str) -> ContainerPath {
    ContainerPath::new(path).unwrap()
}

pub(crate) fn mark() -> CreationMark {
    CreationMark::new(Label::new("example.mark", "once").unwrap())
}

pub(crate) fn options() -> RunOptions {
    RunOptions::new(
        ContainerName::new("some-container").unwrap(),
        mark(),
        image(),
    )
}
