//! Containers.

mod control;
mod inspect;
mod list;
mod mount;
mod options;
mod remove;
mod run;

pub use self::control::{KillContainer, PauseContainer, Signal, StartContainer, UnpauseContainer};
pub use self::inspect::{ContainerFacts, ContainerState, InspectContainer, InspectContainers};
pub use self::list::{ContainerRow, ListContainers};
pub use self::mount::{Mount, TmpfsVolume};
pub use self::options::{RunOptions, User};
pub use self::remove::{Removal, RemoveContainer};
pub use self::run::{CreateContainer, ForegroundOutput, RunDetached, RunForeground};
