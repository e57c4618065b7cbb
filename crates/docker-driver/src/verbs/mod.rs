//! The verbs, one small module by kind.

mod build;
mod container;
pub(crate) mod copy;
mod echo;
mod engine;
mod exec;
mod image;
mod images;
mod json;
mod past;
mod size;
#[cfg(test)]
mod tests;
mod usage;
mod volume;

pub use self::build::Build;
pub use self::container::{
    ContainerFacts, ContainerRow, ContainerState, CreateContainer, ForegroundOutput,
    InspectContainer, InspectContainers, KillContainer, ListContainers, Mount, PauseContainer,
    Removal, RemoveContainer, RunDetached, RunForeground, RunOptions, Signal, StartContainer,
    TmpfsVolume, UnpauseContainer, User,
};
pub use self::copy::CopyIn;
pub(crate) use self::copy::{copy_in, copy_out};
pub(crate) use self::engine::{ClientPart, EngineDescription, Info, ServerPart, Version};
pub use self::engine::{EngineNow, EngineTime};
pub use self::exec::ExecStream;
pub use self::image::{ImageFacts, InspectImage, Pull};
pub use self::images::{ImageRow, ListImages, RemoveImage};
pub use self::past::{PastEvent, PastEvents};
pub use self::usage::{ContainerUsage, DiskUsage, EngineUsage, ImageUsage, VolumeUsage};
pub use self::volume::{CreateVolume, InspectVolume, ListVolumes, RemoveVolume, VolumeFacts};
