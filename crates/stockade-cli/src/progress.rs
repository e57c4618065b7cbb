//! What takes long, on standard error, for a person.

use std::io::IsTerminal as _;

use stockade_docker::{DockerConfig, FilePlane, Progress};

use crate::args::{Engine, PlaneName};
use crate::say;

/// The backend's configuration, with progress for whoever watches.
pub(crate) fn config(engine: &Engine, quiet: bool) -> DockerConfig {
    let plane = match engine.plane {
        PlaneName::Tar => FilePlane::Tar,
        PlaneName::Guest => FilePlane::Guest,
    };
    // A sandbox that somebody made under a name is theirs to remove.
    let config = DockerConfig::new(&engine.owner)
        .docker_path(&engine.docker)
        .refuse_drifted()
        .file_plane(plane);
    if quiet || !std::io::stderr().is_terminal() {
        return config;
    }
    config.on_progress(|progress| match progress {
        Progress::Pull { image, line } => say::line(&format!("pulling {image}: {line}")),
        Progress::Build {
            directory, line, ..
        } => say::line(&format!("building {}: {line}", directory.display())),
        Progress::FillRuntime { volume } => {
            say::line(&format!(
                "bringing the guest runtime to the engine, once (volume {volume})"
            ));
        }
        _ => {}
    })
}
