//! Small parts of a spec.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Image;
use crate::vocabulary::{Identity, IdentityScope, OutputDisposition};
use crate::words::{Words, words};

words! { unranked "storage"
    /// Where the work directory is kept.
    #[derive(Default)]
    Storage {
        /// In memory, with hard limits on bytes and inodes; lost when the
        /// sandbox stops. The default.
        #[default]
        Tmpfs = "tmpfs",
        /// The image's own directory with what is in it, without a limit of
        /// its own; needs [`Hardening::AsImage`], since a strict root cannot
        /// be written, and a directory in which the sandbox's user may write.
        /// Kept when a conversation's sandbox stops, until it is disposed of.
        Root = "root",
        /// In a volume on disk, without a limit of its own: for large data,
        /// and for what survives a stop. It is kept when a conversation's
        /// sandbox ends by itself, is there again when the same spec is
        /// acquired, and goes when the sandbox is disposed of or replaced.
        Disk = "disk",
    }
}

words! { unranked "hardening"
    /// How the sandbox is hardened beyond what always holds.
    ///
    /// Always: no capabilities, no new privileges, limits, no mounts of the
    /// host, no devices, no published ports.
    #[derive(Default)]
    Hardening {
        /// A read-only root, and the image's user unless it is root. The default.
        #[default]
        Strict = "strict",
        /// A writable root, and the image's user as it is.
        AsImage = "as_image",
    }
}

words! { unranked "after abort"
    /// What happens to the sandbox after a command was ended early: by its
    /// timeout, its output limit or a cancel.
    #[derive(Default)]
    AfterAbort {
        /// It stays, once the command's process tree is proved dead. The default.
        #[default]
        Keep = "keep",
        /// It is removed.
        Discard = "discard",
    }
}

/// A file or directory that the caller expects a command to leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredOutput {
    path: String,
    disposition: OutputDisposition,
    media_type: Option<String>,
    required: bool,
    name: Option<String>,
}

/// The host's tools that guest code may call, as their registry sums them up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTools {
    names: BTreeSet<String>,
    identities: Words<Identity>,
    max_calls_per_run: u32,
}

/// A service beside the sandbox, such as a database, reached by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    name: String,
    image: Image,
}

/// How far a credential that a backend attaches may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentityBounds {
    /// The widest sharing that is accepted; never [`IdentityScope::None`].
    pub max_scope: IdentityScope,
    /// The longest time for which it may be kept; never zero.
    pub max_retention: Duration,
}

impl DeclaredOutput {
    /// A required output that is delivered to the host's sink.
    ///
    /// The path is relative to the work directory, or absolute below it.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            disposition: OutputDisposition::Land,
            media_type: None,
            required: true,
            name: None,
        }
    }

    /// Sets what happens to it.
    #[must_use]
    pub fn with_disposition(mut self, disposition: OutputDisposition) -> Self {
        self.disposition = disposition;
        self
    }

    /// Sets its media type, such as `image/png`.
    #[must_use]
    pub fn with_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// Accepts that it is not there.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Sets the name under which it is delivered; the last segment of the
    /// path otherwise.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where it is expected.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What happens to it.
    #[must_use]
    pub fn disposition(&self) -> OutputDisposition {
        self.disposition
    }

    /// Its media type.
    #[must_use]
    pub fn media_type(&self) -> Option<&str> {
        self.media_type.as_deref()
    }

    /// Whether it must be there.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// The name under which it is delivered.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl HostTools {
    /// Calls that one run may make unless told otherwise.
    pub const DEFAULT_CALLS_PER_RUN: u32 = 16;

    /// Tools of these names.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            identities: Words::none(),
            max_calls_per_run: Self::DEFAULT_CALLS_PER_RUN,
        }
    }

    /// Adds an identity whose authority one of the tools exercises.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identities = self.identities.with(identity);
        self
    }

    /// Sets how many calls one run may make; 16 otherwise.
    #[must_use]
    pub fn with_max_calls_per_run(mut self, calls: u32) -> Self {
        self.max_calls_per_run = calls;
        self
    }

    /// Names of the tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Identities whose authority the tools exercise.
    #[must_use]
    pub fn identities(&self) -> Words<Identity> {
        self.identities
    }

    /// Calls that one run may make.
    #[must_use]
    pub fn max_calls_per_run(&self) -> u32 {
        self.max_calls_per_run
    }
}

impl Service {
    /// A service of this name and image.
    pub fn new(name: impl Into<String>, image: Image) -> Self {
        Self {
            name: name.into(),
            image,
        }
    }

    /// The name by which the sandbox reaches it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its image.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }
}

impl IdentityBounds {
    /// Bounds of this width and time; the spec's builder checks them.
    #[must_use]
    pub const fn new(max_scope: IdentityScope, max_retention: Duration) -> Self {
        Self {
            max_scope,
            max_retention,
        }
    }
}
