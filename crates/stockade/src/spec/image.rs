//! Which image a sandbox is made of.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::reference;
use crate::fault::Fault;
use crate::text::excerpt;
use crate::words::words;

/// The image of a sandbox: where it comes from, and what must be true of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    source: ImageSource,
    platform: Option<Platform>,
    pull: PullPolicy,
    /// A digest that was required of a build; the spec's builder refuses it.
    misplaced: Option<Digest>,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageSource {
    /// A name of an image, or its id.
    #[non_exhaustive]
    Reference {
        /// As docker writes it, such as `python:3.13-slim`, or an image id.
        reference: String,
        /// What the image must be: its id, or one of the digests that its
        /// repository knows it by.
        digest: Option<Digest>,
    },
    /// A directory with a `Dockerfile`.
    Build(PathBuf),
}

words! { unranked "pull policy"
    /// When an image is pulled.
    #[derive(Default)]
    PullPolicy {
        /// Never; a missing image is refused.
        Never = "never",
        /// When it is missing. The default.
        #[default]
        Missing = "missing",
        /// On every first use in a binding to the engine.
        Always = "always",
    }
}

/// A SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest(String);

/// The platform of an image, written `os/architecture[/variant]`, such as
/// `linux/amd64` or `linux/arm/v7`.
///
/// The names that `uname` uses (`x86_64`, `aarch64`) are understood and
/// turned into the ones of images (`amd64`, `arm64`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

/// A text that is no digest or no platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidImagePart {
    what: &'static str,
    asked: String,
    rule: &'static str,
}

impl Image {
    /// The image of this name or id, pulled when missing. A digest after `@`
    /// is required as one given to [`Image::with_digest`] is.
    pub fn reference(reference: impl Into<String>) -> Self {
        let reference = reference.into();
        let digest = reference::digest(&reference).and_then(|digest| digest.parse().ok());
        Self::of(ImageSource::Reference { reference, digest })
    }

    /// An image built from this directory, by the `Dockerfile` in it.
    ///
    /// It is the host's own recipe: never a directory that a guest can write.
    /// Which image it stands for is decided by what is in it when a sandbox is
    /// acquired, so that a change of any file, name or mode is seen at the
    /// next one. A directory of at most 65,536 entries and 1 GiB; what
    /// `.dockerignore` names counts, too.
    ///
    /// With [`PullPolicy::Missing`] an image that was built of the same content
    /// before is used, and otherwise it is built. [`PullPolicy::Always`] builds
    /// at every acquire, from the engine's cache as far as it goes, so that a
    /// base image that has changed on the engine is seen.
    /// [`PullPolicy::Never`] refuses what was not built before.
    pub fn build(directory: impl Into<PathBuf>) -> Self {
        Self::of(ImageSource::Build(directory.into()))
    }

    fn of(source: ImageSource) -> Self {
        Self {
            source,
            platform: None,
            pull: PullPolicy::default(),
            misplaced: None,
        }
    }

    /// Requires the image to be exactly this one. What is built has no digest
    /// beforehand, so the spec's builder refuses one on a build.
    #[must_use]
    pub fn with_digest(mut self, required: Digest) -> Self {
        match &mut self.source {
            ImageSource::Reference { digest, .. } => *digest = Some(required),
            ImageSource::Build(_) => self.misplaced = Some(required),
        }
        self
    }

    /// Requires a platform; the engine's own otherwise.
    #[must_use]
    pub fn with_platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Sets when the image is pulled.
    #[must_use]
    pub fn with_pull(mut self, pull: PullPolicy) -> Self {
        self.pull = pull;
        self
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> &ImageSource {
        &self.source
    }

    /// The reference, unless it is built.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.source {
            ImageSource::Reference { reference, .. } => Some(reference),
            ImageSource::Build(_) => None,
        }
    }

    /// The build directory, if it is built.
    #[must_use]
    pub fn build_directory(&self) -> Option<&Path> {
        match &self.source {
            ImageSource::Build(directory) => Some(directory),
            ImageSource::Reference { .. } => None,
        }
    }

    /// The digest that is required.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        match &self.source {
            ImageSource::Reference { digest, .. } => digest.as_ref(),
            ImageSource::Build(_) => None,
        }
    }

    /// The platform that is required.
    #[must_use]
    pub fn platform(&self) -> Option<&Platform> {
        self.platform.as_ref()
    }

    /// When it is pulled.
    #[must_use]
    pub fn pull(&self) -> PullPolicy {
        self.pull
    }

    /// Adds what is wrong with it.
    pub(super) fn check(&self, field: &'static str, faults: &mut Vec<Fault>) {
        match &self.source {
            ImageSource::Reference { reference, digest } => {
                if let Err(wrong) = reference::check(reference) {
                    faults.push(Fault::new(
                        field,
                        reference,
                        wrong,
                        "write it as docker does, such as `python:3.13-slim`, or give an image id",
                    ));
                } else if let (Some(own), Some(required)) = (reference::digest(reference), digest)
                    && own != required.as_str()
                {
                    faults.push(Fault::new(
                        field,
                        reference,
                        format!("it names another digest than the required {required}"),
                        "give the digest once",
                    ));
                }
            }
            ImageSource::Build(directory) => {
                let bytes = directory.as_os_str().as_encoded_bytes();
                if bytes.is_empty() || bytes.contains(&0) {
                    faults.push(Fault::new(
                        field,
                        directory.display(),
                        "the build directory is empty or holds a NUL",
                        "name a directory with a Dockerfile",
                    ));
                }
            }
        }
        if let Some(digest) = &self.misplaced {
            faults.push(Fault::new(
                field,
                digest,
                "what is built has no digest beforehand",
                "leave the digest out, or name the image that was built before",
            ));
        }
    }
}

impl Digest {
    /// The digest with its `sha256:`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = InvalidImagePart;

    fn from_str(text: &str) -> Result<Self, InvalidImagePart> {
        if reference::is_sha256(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidImagePart {
            what: "digest",
            asked: excerpt(text),
            rule: "`sha256:` and 64 lower-case hexadecimal digits",
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Platform {
    /// The operating system, such as `linux`.
    #[must_use]
    pub fn os(&self) -> &str {
        &self.os
    }

    /// The architecture, such as `amd64`.
    #[must_use]
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The variant of the architecture, such as `v7`.
    #[must_use]
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }
}

impl FromStr for Platform {
    type Err = InvalidImagePart;

    fn from_str(text: &str) -> Result<Self, InvalidImagePart> {
        let parts: Vec<&str> = text.split('/').collect();
        let plain = |part: &&str| {
            (1..=32).contains(&part.len())
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        if !(2..=3).contains(&parts.len()) || !parts.iter().all(plain) {
            return Err(InvalidImagePart {
                what: "platform",
                asked: excerpt(text),
                rule: "`os/architecture` or `os/architecture/variant`, such as `linux/amd64`",
            });
        }
        let architecture = match parts[1] {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        // The one variant that 64-bit ARM has means the same as none.
        let variant = parts
            .get(2)
            .filter(|variant| !(architecture == "arm64" && **variant == "v8"));
        Ok(Self {
            os: parts[0].to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.map(|variant| (*variant).to_owned()),
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for InvalidImagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, asked, rule } = self;
        write!(f, "{what} `{asked}` is not valid: use {rule}")
    }
}

impl std::error::Error for InvalidImagePart {}
