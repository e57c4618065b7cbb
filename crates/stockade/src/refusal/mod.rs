//! Why a spec, or an operation on a file, cannot be served.

mod display;
mod file;

use std::time::Duration;

pub use self::file::FileRefusal;
use crate::error::{ErrorKind, Retry};
use crate::key::BackendName;
use crate::limits::TransferLimits;
use crate::spec::{Digest, Platform, Storage};
use crate::vocabulary::{
    AuthorityChannel, Capabilities, DisposalCode, EgressMode, Feature, Identity, IdentityScope,
    Isolation, IsolationScope, OsFamily, TransferDirection,
};
use crate::words::{Words, words};

/// Why a spec cannot be served as it stands, or a file cannot be moved, looked
/// at or removed. Nothing was made.
///
/// [`Display`](std::fmt::Display) says what was asked, what is wrong and what
/// to do; [`Refusal::code`] is stable and for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no backend at all, or none of the selected name.
    NoBackend {
        /// The name that was selected.
        selected: Option<BackendName>,
    },
    /// The backend isolates less than the floor.
    IsolationTooWeak {
        /// The floor.
        asked: Isolation,
        /// What the backend gives.
        given: Isolation,
    },
    /// The backend lacks capabilities.
    CapabilityMissing {
        /// What it lacks.
        missing: Capabilities,
    },
    /// The host forbids capabilities.
    CapabilityDenied {
        /// What it forbids.
        denied: Capabilities,
    },
    /// The host forbids identities that host tools exercise.
    IdentityDenied {
        /// What it forbids.
        denied: Words<Identity>,
    },
    /// The backend's guests are not of the family.
    OsFamily {
        /// The family that was asked for.
        asked: OsFamily,
        /// The families that it has.
        served: Words<OsFamily>,
    },
    /// A transfer limit is above the backend's.
    TransferLimits {
        /// Which way.
        direction: TransferDirection,
        /// Which limit: a field of [`TransferLimits`].
        limit: &'static str,
        /// What was asked.
        asked: u64,
        /// The most that is served.
        most: u64,
    },
    /// The backend does not enforce the egress mode.
    EgressNotEnforced {
        /// The mode that was asked for.
        asked: EgressMode,
        /// The modes that it enforces.
        enforced: Words<EgressMode>,
    },
    /// The backend's rules cannot name methods.
    EgressMethods {
        /// The methods.
        missing: Vec<String>,
    },
    /// The backend does not enforce the isolation scope.
    ScopeNotEnforced {
        /// The scope that was asked for.
        asked: IsolationScope,
        /// The scopes that it enforces.
        enforced: Words<IsolationScope>,
    },
    /// The key does not fit the isolation scope.
    KeyScopeMismatch {
        /// The scope of the spec.
        scope: IsolationScope,
    },
    /// The backend's attached credential does not fit the spec.
    AttachedIdentity {
        /// In what.
        mismatch: IdentityMismatch,
    },
    /// The key is closed, since something of it could not be removed.
    Unclean {
        /// Why it could not be removed.
        code: DisposalCode,
    },
    /// The sandbox was made with another execution contract.
    ExecutionContract {
        /// The one that was asked for.
        wanted: Option<String>,
        /// The one that it was made with.
        found: Option<String>,
    },
    /// A part of the spec that this backend does not serve.
    NotYetServed {
        /// The part.
        feature: Feature,
    },
    /// Something that no backend serves, ever.
    NeverServed {
        /// What.
        what: Never,
    },
    /// The image is not there and could not be pulled, or may not be.
    ImageNotFound {
        /// As it was asked for.
        reference: String,
        /// What the engine or the registry said, shortened.
        detail: String,
    },
    /// The image is another one than the required digest names.
    ImageDigestMismatch {
        /// The required digest.
        wanted: Digest,
        /// The id and the repository digests of the image that is there.
        found: Vec<String>,
    },
    /// The image is of another platform.
    ImagePlatformMismatch {
        /// The required platform.
        wanted: Platform,
        /// The image's.
        found: String,
    },
    /// The directory is none that an image can be built from.
    BuildDirectory {
        /// The directory.
        directory: String,
        /// Why.
        why: String,
    },
    /// The recipe in the directory does not lead to an image. What the build
    /// said is in the error's detail.
    ImageBuild {
        /// The directory.
        directory: String,
        /// Why.
        why: String,
    },
    /// The user that the image names cannot be resolved.
    ImageUserUnresolved {
        /// As the image names it.
        user: String,
        /// Why.
        why: String,
    },
    /// The image declares a volume that would hide content or be unlabelled.
    ImageVolume {
        /// Where.
        path: String,
    },
    /// The image has content where the work directory would be mounted.
    WorkDirHidesContent {
        /// Where.
        path: String,
    },
    /// The image has something else than a directory there.
    WorkDirNotDirectory {
        /// Where.
        path: String,
    },
    /// The limit is above what the engine's host has.
    LimitAboveEngine {
        /// Which limit: a field of [`ResourceLimits`](crate::ResourceLimits).
        limit: &'static str,
        /// What was asked.
        asked: u64,
        /// The most that the engine has.
        most: u64,
    },
    /// With the limit no program could run.
    LimitBelowFloor {
        /// Which limit.
        limit: &'static str,
        /// What was asked.
        asked: u64,
        /// The least that works.
        least: u64,
    },
    /// The engine cannot enforce the limit.
    LimitNotEnforceable {
        /// Which limit.
        limit: &'static str,
        /// Why.
        why: String,
    },
    /// What the sandbox really had was not what was asked for, which was seen
    /// before any guest code ran; it was removed.
    NotAsPlanned {
        /// Each difference, as a sentence.
        differences: Vec<String>,
    },
    /// The memory limit leaves programs no room once every tmpfs is full.
    MemoryRule {
        /// The memory limit, in bytes.
        memory: u64,
        /// What it must be at least, in bytes.
        needed: u64,
    },
    /// The engine is too old.
    EngineTooOld {
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: String,
        /// For what.
        for_what: String,
    },
    /// The engine is of another sort than the backend drives.
    EngineForeign {
        /// What was found.
        found: String,
        /// What the backend drives.
        needed: String,
    },
    /// A live sandbox of this key was made from another spec, and is in use.
    Drifted {
        /// The fields that differ.
        fields: Vec<String>,
    },
    /// Something of the sandbox's name is there and is not ours.
    Foreign {
        /// The name.
        name: String,
    },
    /// There is no guest runtime for the platform.
    RuntimeNotCarried {
        /// The platform.
        platform: String,
    },
    /// The storage does not fit the image or the hardening.
    StorageMismatch {
        /// The storage that was asked for.
        storage: Storage,
        /// Why it does not fit.
        why: String,
    },
    /// A file cannot be moved, looked at or removed.
    File {
        /// Its path, shortened.
        path: String,
        /// Why.
        why: FileRefusal,
    },
    /// Files cannot be moved in the way that the host chose.
    FilePlane {
        /// Why.
        why: String,
    },
}

/// In what an attached credential does not fit a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityMismatch {
    /// The backend attaches one and the spec does not ask for it.
    NotAsked,
    /// It is shared more widely than the spec accepts.
    Scope {
        /// The widest that is accepted.
        most: IdentityScope,
        /// The backend's.
        given: IdentityScope,
    },
    /// It is kept longer than the spec accepts.
    Retention {
        /// The longest that is accepted.
        most: Duration,
        /// The backend's.
        given: Duration,
    },
    /// It takes effect through other channels than the spec's rules use.
    Channels {
        /// The spec's.
        asked: Words<AuthorityChannel>,
        /// The backend's.
        given: Words<AuthorityChannel>,
    },
}

words! { unranked "thing that is never served"
    /// What no sandbox ever has, whoever asks.
    Never {
        /// A directory of the host.
        HostMounts = "host_mounts",
        /// A port that the host publishes.
        PublishedPorts = "published_ports",
        /// A device or a GPU of the host.
        Devices = "devices",
        /// The engine's socket.
        EngineSocket = "engine_socket",
        /// An engine inside the sandbox.
        NestedEngine = "nested_engine",
    }
}

impl Refusal {
    /// A stable name of the reason, for programs and records.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoBackend { .. } => "no_backend",
            Self::IsolationTooWeak { .. } => "isolation_too_weak",
            Self::CapabilityMissing { .. } => "capability_missing",
            Self::CapabilityDenied { .. } => "capability_denied",
            Self::IdentityDenied { .. } => "identity_denied",
            Self::OsFamily { .. } => "os_family",
            Self::TransferLimits { .. } => "transfer_limits",
            Self::EgressNotEnforced { .. } => "egress_not_enforced",
            Self::EgressMethods { .. } => "egress_methods",
            Self::ScopeNotEnforced { .. } => "scope_not_enforced",
            Self::KeyScopeMismatch { .. } => "key_scope_mismatch",
            Self::AttachedIdentity { .. } => "attached_identity",
            Self::Unclean { .. } => "unclean",
            Self::ExecutionContract { .. } => "execution_contract",
            Self::NotYetServed { .. } => "not_yet_served",
            Self::NeverServed { .. } => "never_served",
            Self::ImageNotFound { .. } => "image_not_found",
            Self::ImageDigestMismatch { .. } => "image_digest_mismatch",
            Self::ImagePlatformMismatch { .. } => "image_platform_mismatch",
            Self::BuildDirectory { .. } => "build_directory",
            Self::ImageBuild { .. } => "image_build",
            Self::ImageUserUnresolved { .. } => "image_user_unresolved",
            Self::ImageVolume { .. } => "image_volume",
            Self::WorkDirHidesContent { .. } => "work_dir_hides_content",
            Self::WorkDirNotDirectory { .. } => "work_dir_not_directory",
            Self::LimitAboveEngine { .. } => "limit_above_engine",
            Self::LimitBelowFloor { .. } => "limit_below_floor",
            Self::LimitNotEnforceable { .. } => "limit_not_enforceable",
            Self::NotAsPlanned { .. } => "not_as_planned",
            Self::MemoryRule { .. } => "memory_rule",
            Self::EngineTooOld { .. } => "engine_too_old",
            Self::EngineForeign { .. } => "engine_foreign",
            Self::Drifted { .. } => "drifted",
            Self::Foreign { .. } => "foreign",
            Self::RuntimeNotCarried { .. } => "runtime_not_carried",
            Self::StorageMismatch { .. } => "storage_mismatch",
            Self::File { why, .. } => why.code(),
            Self::FilePlane { .. } => "file_plane",
        }
    }

    /// The kind of error that it makes.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File { why, .. } => why.kind(),
            _ => ErrorKind::Refused,
        }
    }

    /// Whether asking again, or asking another backend, can help.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unclean { .. } | Self::Drifted { .. } => Retry::Later,
            Self::IsolationTooWeak { .. }
            | Self::CapabilityMissing { .. }
            | Self::OsFamily { .. }
            | Self::EgressNotEnforced { .. }
            | Self::EgressMethods { .. }
            | Self::ScopeNotEnforced { .. }
            | Self::AttachedIdentity { .. }
            | Self::NotYetServed { .. }
            | Self::ImageNotFound { .. }
            | Self::LimitAboveEngine { .. }
            | Self::LimitNotEnforceable { .. }
            | Self::NotAsPlanned { .. }
            | Self::EngineTooOld { .. }
            | Self::EngineForeign { .. }
            | Self::RuntimeNotCarried { .. }
            | Self::FilePlane { .. } => Retry::OtherBackend,
            Self::File { why, .. } => why.retry(),
            // No spec may ask for more than the ceiling, wherever it is served.
            Self::TransferLimits { limit, asked, .. } => match ceiling(limit) {
                Some(most) if *asked > most => Retry::Never,
                _ => Retry::OtherBackend,
            },
            Self::NoBackend { .. }
            | Self::CapabilityDenied { .. }
            | Self::IdentityDenied { .. }
            | Self::KeyScopeMismatch { .. }
            | Self::ExecutionContract { .. }
            | Self::NeverServed { .. }
            | Self::ImageDigestMismatch { .. }
            | Self::ImagePlatformMismatch { .. }
            | Self::BuildDirectory { .. }
            | Self::ImageBuild { .. }
            | Self::ImageUserUnresolved { .. }
            | Self::ImageVolume { .. }
            | Self::WorkDirHidesContent { .. }
            | Self::WorkDirNotDirectory { .. }
            | Self::LimitBelowFloor { .. }
            | Self::MemoryRule { .. }
            | Self::Foreign { .. }
            | Self::StorageMismatch { .. } => Retry::Never,
        }
    }
}

impl std::error::Error for Refusal {}

fn ceiling(limit: &str) -> Option<u64> {
    let most = TransferLimits::CEILING;
    match limit {
        "max_bytes_per_file" => Some(most.max_bytes_per_file),
        "max_total_bytes" => Some(most.max_total_bytes),
        "max_files" => Some(most.max_files),
        _ => None,
    }
}
