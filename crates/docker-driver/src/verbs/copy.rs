//! Copying into and out of containers.

use bytes::Bytes;

use crate::argv::{Argv, ContainerPath, ContainerRef, StandardStream};
use crate::undo::Undo;
use crate::verb::{Effect, Input, Mutation, Output, ParseError, Subject, Verb};

/// `docker cp -`: unpacks a tar stream into a directory of a container, which
/// need not run. Owners and permissions are those of the stream.
///
/// It is not undone: what it writes ends with the container or the volume.
#[derive(Debug, Clone)]
pub struct CopyIn {
    container: ContainerRef,
    directory: ContainerPath,
    tar: Input,
}

/// What docker answers when it has unpacked a stream.
pub(crate) const SILENCE: &str = "the silence of a copy that is done";

/// Something else.
pub(crate) fn spoke() -> ParseError {
    ParseError::new(SILENCE, "it says something")
}

/// The words that unpack a tar stream into a directory.
pub(crate) fn copy_in(container: &ContainerRef, directory: &ContainerPath) -> Argv {
    Argv::new(&["cp"])
        .positional(&StandardStream)
        .place(container, directory)
}

/// The words that make a tar stream of what is at a path. A link at its end
/// is not followed.
pub(crate) fn copy_out(container: &ContainerRef, path: &ContainerPath) -> Argv {
    Argv::new(&["cp"])
        .place(container, path)
        .positional(&StandardStream)
}

impl CopyIn {
    /// Unpacks this stream into this directory.
    pub fn new(container: impl Into<ContainerRef>, directory: ContainerPath, tar: Bytes) -> Self {
        Self {
            container: container.into(),
            directory,
            tar: Input::Bytes(tar),
        }
    }
}

impl Verb for CopyIn {
    type Answer = ();
    const NAME: &'static str = "cp in";

    fn argv(&self) -> Argv {
        copy_in(&self.container, &self.directory)
    }

    fn parse(&self, output: &Output) -> Result<(), ParseError> {
        if output.stdout.is_empty() {
            Ok(())
        } else {
            Err(spoke())
        }
    }

    fn stdin(&self) -> Input {
        self.tar.clone()
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Container(self.container.clone()))
    }
}

impl Mutation for CopyIn {
    fn undo(&self, _: Effect<'_, ()>) -> Undo {
        Undo::Nothing
    }
}
