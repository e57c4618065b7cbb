//! How an effect on the engine is taken back.

use std::fmt;

use crate::argv::{ContainerId, ContainerName, ContainerRef, CreationMark, VolumeName};

/// What takes a mutation's effect back. Removal is by id, or by name together
/// with the mark of this very creation: never by a name alone, which may be a
/// neighbour's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undo {
    /// There is nothing to take back.
    Nothing,
    /// Removes a container with its anonymous volumes.
    RemoveContainer(ContainerId),
    /// Removes the container that has both this name and this mark.
    RemoveMarkedContainer(ContainerName, CreationMark),
    /// Removes the volume if it has this mark.
    RemoveMarkedVolume(VolumeName, CreationMark),
    /// Thaws a container.
    Unpause(ContainerRef),
}

/// An undo that failed when nobody waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedUndo {
    /// What was to be done.
    pub undo: Undo,
    /// Why it could not be done.
    pub why: String,
}

/// What [`Docker::settle`](crate::Docker::settle) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// Calls and undos that go on, because the deadline came first.
    pub unfinished: usize,
    /// What could not be taken back since the last time.
    pub failed: Vec<FailedUndo>,
}

impl Undo {
    /// Whether there is something to do.
    pub fn is_needed(&self) -> bool {
        *self != Self::Nothing
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::RemoveContainer(id) => write!(f, "remove container {id}"),
            Self::RemoveMarkedContainer(name, mark) => {
                write!(
                    f,
                    "remove container {name} if it is labelled {}",
                    mark.label()
                )
            }
            Self::RemoveMarkedVolume(name, mark) => {
                write!(f, "remove volume {name} if it is labelled {}", mark.label())
            }
            Self::Unpause(container) => write!(f, "unpause container {container}"),
        }
    }
}
