//! The verbs, one small module by kind.

mod container;
mod copy;
mod engine;
mod exec;
mod image;
mod json;
#[cfg(test)]
mod tests;
mod volume;

pub use self::container::{
    ContainerFacts, ContainerRow, ContainerState, CreateContainer, ForegroundOutput,
    InspectContainer, KillContainer, ListContainers, Mount, PauseContainer, Removal,
    RemoveContainer, RunDetached, RunForeground, RunOptions, Signal, StartContainer, TmpfsVolume,
    UnpauseContainer, User,
};
pub use self::copy::CopyIn;
pub(crate) use self::copy::{COPY_OUT, copy_in, copy_out};
pub(crate) use self::engine::{ClientPart, EngineDescription, Info, ServerPart, Version};
pub use self::exec::ExecStream;
pub use self::image::{ImageFacts, InspectImage, Pull};
pub use self::volume::{CreateVolume, InspectVolume, ListVolumes, RemoveVolume, VolumeFacts};
