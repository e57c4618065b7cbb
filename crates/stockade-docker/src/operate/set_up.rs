//! Doing ahead what a first acquire would do.

use std::fmt;

use stockade::{Call, Image, Result};

use crate::backend::DockerBackend;

/// What is ready on the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SetUp {
    /// The volume that holds the guest runtime.
    pub runtime_volume: String,
    /// Whether it was filled just now, and not before.
    pub runtime_filled: bool,
    /// The images, in the order in which they were asked for.
    pub images: Vec<ImageReady>,
}

/// An image that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageReady {
    /// The reference or the directory, as it was asked for.
    pub asked: String,
    /// The engine's id, `sha256:…`.
    pub id: String,
    /// Where it came from.
    pub origin: ImageOrigin,
}

/// Where an image came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageOrigin {
    /// The engine had it.
    Present,
    /// It was pulled.
    Pulled,
    /// It was built; what the engine's cache still had was taken from there.
    Built,
}

impl ImageOrigin {
    /// One lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Pulled => "pulled",
            Self::Built => "built",
        }
    }
}

impl fmt::Display for ImageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl DockerBackend {
    /// Does ahead what a first acquire of these images would do: pulls or
    /// builds what is missing, looks into each, and fills the volume of the
    /// guest runtime. What is there stays; asking again changes nothing.
    ///
    /// The runtime is brought to the engine through a container of one of the
    /// images that never runs, so that there must be at least one.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` without an image; the refusals and errors of an
    /// acquire about its image. What was ready by then stays ready.
    ///
    /// Cancel safety: a pull or a build ends, and leaves what any that was
    /// interrupted leaves: layers in the engine's cache.
    pub async fn set_up(&self, call: &Call, images: &[Image]) -> Result<SetUp> {
        let _ = (call, images);
        Err(super::unready())
    }
}
