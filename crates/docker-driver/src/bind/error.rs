//! Why no engine was bound, each with what to do about it.

use std::path::PathBuf;

use thiserror::Error;

use super::{Endpoint, EngineVersion};
use crate::error::CallError;

/// Why no engine was bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// There is no such program.
    #[error("no docker client at `{}`; install docker's command line client, or set docker_path to where it is", docker_path.display())]
    NoCli {
        /// What was looked for.
        docker_path: PathBuf,
    },
    /// The program is not docker's own.
    #[error("`{}` is {product}, not docker's own command line client; set docker_path to docker's own", docker_path.display())]
    NotDockerCli {
        /// The program.
        docker_path: PathBuf,
        /// What it seems to be.
        product: String,
    },
    /// The engine behind the client is not docker's own.
    #[error(
        "the engine at {endpoint} is {product}, not Docker Engine; point DOCKER_HOST or the docker context at Docker Engine"
    )]
    NotDockerEngine {
        /// Where it is.
        endpoint: Endpoint,
        /// What it says to be.
        product: String,
    },
    /// The context does not exist.
    #[error(
        "there is no docker context named `{name}`; choose one of `docker context ls`, by DOCKER_CONTEXT or `docker context use`"
    )]
    NoContext {
        /// Its name.
        name: String,
    },
    /// Nothing answers.
    #[error(
        "no docker engine answers at {endpoint}; start it, or point DOCKER_HOST or the docker context at one that runs"
    )]
    NoDaemon {
        /// Where it was looked for.
        endpoint: Endpoint,
        /// What docker said.
        #[source]
        source: Option<CallError>,
    },
    /// The socket may not be used.
    #[error(
        "no permission to use the docker engine at {endpoint}; add the user to the group that owns the socket (often `docker`) and log in again"
    )]
    PermissionDenied {
        /// Where the engine is.
        endpoint: Endpoint,
    },
    /// The engine is too old.
    #[error("Docker Engine {engine} at {endpoint} is too old; version {needed} or newer is needed")]
    TooOld {
        /// Where it is.
        endpoint: Endpoint,
        /// Its version.
        engine: String,
        /// The oldest that is accepted.
        needed: EngineVersion,
    },
    /// Docker's configuration cannot be used.
    #[error("docker's configuration {} cannot be used: {why}", path.display())]
    BadConfig {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// A private folder for the pinned configuration cannot be made.
    #[error("no private folder for docker's configuration can be made in {}; make it writable, or set TMPDIR to one that is", path.display())]
    NoPrivateFolder {
        /// Where it was tried.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The tokio runtime was shut down meanwhile.
    #[error("the tokio runtime ended while docker was being bound")]
    RuntimeEnded,
    /// A call failed in another way.
    #[error("docker does not answer as expected")]
    Call(#[source] CallError),
}
