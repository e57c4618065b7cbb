//! Doing ahead what a first acquire would do.

use std::fmt;

use stockade::{Call, Error, ErrorKind, Image, Operation, Result, SandboxSpec};

use crate::backend::DockerBackend;
use crate::image::Origin;
use crate::plan;

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
        if images.is_empty() {
            return Err(Error::new(ErrorKind::InvalidRequest, Operation::SetUp)
                .message(
                    "no image was named; the guest runtime is brought to the engine through one, so name an image that sandboxes will be made of",
                )
                .build());
        }
        let inner = &self.inner;
        // What this process remembers may have gone since.
        inner.images.forget_all();
        let fills = inner.runtime.fills();
        let mut set_up = SetUp::default();
        for image in images {
            let spec = SandboxSpec::builder("set-up")
                .image(image.clone())
                .build()?;
            let ready = inner.images.ready(
                call,
                &inner.engine,
                &inner.runtime,
                image,
                plan::paths(&spec),
            );
            let ready = ready.await?;
            set_up.images.push(ImageReady {
                asked: asked(image),
                id: ready.facts.id.clone(),
                origin: ready.origin.into(),
            });
        }
        set_up.runtime_volume = inner.runtime.at(|runtime| runtime.volume.to_owned());
        set_up.runtime_filled = inner.runtime.fills() > fills;
        Ok(set_up)
    }
}

fn asked(image: &Image) -> String {
    match (image.name(), image.build_directory()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(directory)) => directory.display().to_string(),
        (None, None) => String::new(),
    }
}

impl From<Origin> for ImageOrigin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Present => Self::Present,
            Origin::Pulled => Self::Pulled,
            Origin::Built => Self::Built,
        }
    }
}
