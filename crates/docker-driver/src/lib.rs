//! A typed driver of the docker command line client.

#![forbid(unsafe_code)]

mod argv;
mod bind;
mod bounds;
mod client;
mod docker;
mod error;
mod log;
mod phrases;
mod process;
#[cfg(feature = "stand-in")]
pub mod stand_in;
mod stream;
mod undo;
mod verb;
mod verbs;

pub use self::argv::{
    Argv, ContainerId, ContainerName, ContainerPath, ContainerRef, CreationMark, EnvVar, ImageRef,
    InvalidEnvVar, InvalidName, Label, Platform, Secret, VolumeName,
};
pub use self::bind::{
    ApiVersion, BindConfig, BindError, Endpoint, EngineFacts, EngineVersion, Environment, Timeouts,
};
pub use self::bounds::Bounds;
pub use self::docker::Docker;
pub use self::error::{Aftermath, CallError, CallErrorKind};
pub use self::log::{Counts, Invocation, InvocationLog, Outcome};
pub use self::stream::{Stream, StreamControl, StreamEnd, StreamInput, StreamOutput};
pub use self::undo::{FailedUndo, Settled, Undo};
pub use self::verb::{
    Effect, Exit, Input, LineSink, Mutation, Output, ParseError, Query, STDOUT_LIMIT, Subject,
    TimeoutClass, Verb,
};
pub use self::verbs::{
    ContainerFacts, ContainerRow, ContainerState, CopyIn, CreateContainer, CreateVolume,
    ExecStream, ForegroundOutput, ImageFacts, InspectContainer, InspectImage, InspectVolume,
    KillContainer, ListContainers, ListVolumes, Mount, PauseContainer, Pull, Removal,
    RemoveContainer, RemoveVolume, RunDetached, RunForeground, RunOptions, Signal, StartContainer,
    TmpfsVolume, UnpauseContainer, User, VolumeFacts,
};
