//! A typed driver of the docker command line client. It knows of containers,
//! images and volumes, and nothing of what they are for.
//!
//! - A [`Verb`] is a value that renders itself as an [`Argv`] and reads its
//!   own answer. A [`Query`] is ended when nobody waits for it; a [`Mutation`]
//!   runs to its end whoever waits, and is taken back when nobody does.
//! - [`Docker::bind`] finds an engine by docker's own rules, once, and pins it
//!   by value. Nothing of the caller's environment or of docker's
//!   configuration reaches a call afterwards, but what is needed to reach that
//!   engine and to pull images.
//! - [`Docker::hold`] pauses a container by a process of its own, the guard,
//!   which thaws it however we end: released, dropped, killed, stopped, or
//!   after the longest time. Copies of a [`Hold`] are tar streams ([`tar`])
//!   that exist only within it, bounded in time and in memory.
//! - [`Docker::events`] is a stream of what happens to a container, which is
//!   live from the moment that it is there.
//! - One place starts a process. Every process leads a group of its own, or is
//!   a copy in its guard's; it has its output drained within bounds, ends by a
//!   deadline and is reaped, and [`BindConfig::in_flight`] of them run at once.
//!   A guard alone outlives us, and thaws without waiting for a place.
//! - A failed call is a [`CallError`] with a [`CallErrorKind`]. Where the
//!   engine can be asked whether something exists, it is asked; docker's
//!   English is read in one table, where it is all there is.
//! - Times are read as [`SystemTime`](std::time::SystemTime)s of the engine's
//!   clock, which [`EngineTime`] asks for; they are compared with nothing else.
//! - [`InvocationLog`] counts every process that was started, by a name of
//!   [`VERBS`], which lists all calls that there are.
//!
//! ```no_run
//! use docker_driver::{BindConfig, Bounds, Docker, ImageRef, InspectImage};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let docker = Docker::bind(BindConfig::from_env()).await?;
//! let image = InspectImage::new(ImageRef::new("debian:stable")?);
//! match docker.query(&Bounds::patient(), image).await? {
//!     Some(facts) => println!("{} is for {}", facts.id, facts.architecture),
//!     None => println!("{} does not have it", docker.endpoint()),
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod argv;
mod bind;
mod bounds;
mod client;
mod docker;
mod error;
mod hold;
mod log;
mod phrases;
mod process;
mod registry;
#[cfg(feature = "stand-in")]
pub mod stand_in;
mod stream;
pub mod tar;
mod time;
mod undo;
mod verb;
mod verbs;

pub use self::argv::{
    Argv, ContainerId, ContainerName, ContainerPath, ContainerRef, CreationMark, EnvVar, ImageId,
    ImageRef, InvalidEnvVar, InvalidName, Label, Platform, Secret, VolumeName,
};
pub use self::bind::{
    ApiVersion, BindConfig, BindError, Endpoint, EngineFacts, EngineVersion, Environment, Timeouts,
};
pub use self::bounds::Bounds;
pub use self::docker::Docker;
pub use self::error::{Aftermath, CallError, CallErrorKind};
pub use self::hold::{ContainerEvent, Events, Hold, HoldRequest, TarIn, TarOut};
pub use self::log::{Counts, Invocation, InvocationLog, Outcome};
pub use self::registry::{VERBS, verb_of};
pub use self::stream::{Stream, StreamControl, StreamEnd, StreamInput, StreamOutput};
pub use self::time::parse_time;
pub use self::undo::{FailedUndo, Settled, Undo};
pub use self::verb::{
    Effect, Exit, Input, LineSink, Mutation, Output, ParseError, Query, STDOUT_LIMIT, Subject,
    TimeoutClass, Verb,
};
pub use self::verbs::{
    Build, ContainerFacts, ContainerRow, ContainerState, ContainerUsage, CopyIn, CreateContainer,
    CreateVolume, DiskUsage, EngineNow, EngineTime, EngineUsage, ExecStream, ForegroundOutput,
    ImageFacts, ImageRow, ImageUsage, InspectContainer, InspectContainers, InspectImage,
    InspectVolume, KillContainer, ListContainers, ListImages, ListVolumes, Mount, PastEvent,
    PastEvents, PauseContainer, Pull, Removal, RemoveContainer, RemoveImage, RemoveVolume,
    RunDetached, RunForeground, RunOptions, Signal, StartContainer, TmpfsVolume, UnpauseContainer,
    User, VolumeFacts, VolumeUsage,
};
