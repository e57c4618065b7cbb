//! What a sandbox must be.

mod builder;
mod check;
mod drift;
mod egress;
mod image;
mod parts;
mod reference;
mod work_dir;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use self::builder::{IDLE_LIMIT, IDLE_LIMIT_OF_CALL, MAX_AGE, MAX_AGE_CEILING, SpecBuilder};
pub use self::check::ENVIRONMENT_BYTES;
pub use self::egress::Egress;
pub use self::image::{Digest, Image, ImageSource, InvalidImagePart, Platform, PullPolicy};
pub use self::parts::{
    AfterAbort, DeclaredOutput, Hardening, HostTools, IdentityBounds, Service, Storage,
};
pub use self::work_dir::WorkDir;
use crate::key::Kind;
use crate::limits::{ResourceLimits, TransferLimits};
use crate::vocabulary::{
    AuthorityChannel, Capabilities, Capability, Cleanup, Feature, Isolation, IsolationScope,
    OsFamily,
};
use crate::words::Words;

/// What a sandbox must be: parsed once by [`SandboxSpec::builder`], then
/// shared and never changed.
///
/// A spec is served exactly as it stands, or refused before anything is made.
/// Fields for which no backend has an answer yet exist all the same, and are
/// refused by [`admit`](crate::admit()); a spec that uses none of them keeps its
/// meaning when they come.
#[derive(Clone, PartialEq, Eq)]
pub struct SandboxSpec {
    kind: Kind,
    image: Image,
    egress: Egress,
    work_dir: WorkDir,
    storage: Storage,
    hardening: Hardening,
    limits: ResourceLimits,
    env: BTreeMap<String, String>,
    idle_limit: Duration,
    max_age: Duration,
    files_in: TransferLimits,
    files_out: TransferLimits,
    declared_outputs: Vec<DeclaredOutput>,
    outputs_named_at_call_time: bool,
    requires: Capabilities,
    min_isolation: Option<Isolation>,
    isolation_scope: IsolationScope,
    min_cleanup: Option<Cleanup>,
    exclusive_admission: bool,
    os_family: Option<OsFamily>,
    labels: BTreeMap<String, String>,
    execution_contract: Option<String>,
    host_tools: Option<HostTools>,
    services: Vec<Service>,
    after_abort: AfterAbort,
    identity_bounds: Option<IdentityBounds>,
    confined_to_guest_call_path: bool,
}

impl SandboxSpec {
    /// Starts a spec of this kind; everything but the image has a default.
    pub fn builder(kind: impl Into<String>) -> SpecBuilder {
        SpecBuilder::new(kind.into())
    }

    /// What sort of sandbox; part of its identity.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// What it is made of.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What it may reach on the network.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Where commands start and files are kept.
    #[must_use]
    pub fn work_dir(&self) -> &WorkDir {
        &self.work_dir
    }

    /// Where the work directory is kept.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// How it is hardened.
    #[must_use]
    pub fn hardening(&self) -> Hardening {
        self.hardening
    }

    /// What it may use.
    #[must_use]
    pub fn limits(&self) -> &ResourceLimits {
        &self.limits
    }

    /// Variables of every command; a command's own come on top.
    #[must_use]
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// It ends when no host was heard for so long.
    #[must_use]
    pub fn idle_limit(&self) -> Duration {
        self.idle_limit
    }

    /// It ends at this age, whatever happens.
    #[must_use]
    pub fn max_age(&self) -> Duration {
        self.max_age
    }

    /// What one call may write into it.
    #[must_use]
    pub fn files_in(&self) -> &TransferLimits {
        &self.files_in
    }

    /// What one call may read from it.
    #[must_use]
    pub fn files_out(&self) -> &TransferLimits {
        &self.files_out
    }

    /// What commands are expected to leave behind.
    #[must_use]
    pub fn declared_outputs(&self) -> &[DeclaredOutput] {
        &self.declared_outputs
    }

    /// Whether a call may name outputs besides the declared ones.
    #[must_use]
    pub fn outputs_named_at_call_time(&self) -> bool {
        self.outputs_named_at_call_time
    }

    /// The capabilities that the caller asked for.
    #[must_use]
    pub fn requires(&self) -> Capabilities {
        self.requires
    }

    /// The capabilities that the spec needs: those asked for, and those that
    /// its egress rules imply.
    #[must_use]
    pub fn required_capabilities(&self) -> Capabilities {
        let rules = self.egress.rules();
        let mut needed = self.requires;
        if rules.iter().any(|rule| rule.methods().is_some()) {
            needed = needed.with(Capability::EgressMethods);
        }
        if rules.iter().any(|rule| rule.paths().is_some()) {
            needed = needed.with(Capability::EgressPaths);
        }
        needed
    }

    /// The channels through which its rules attach a credential.
    #[must_use]
    pub fn authority_channels(&self) -> Words<AuthorityChannel> {
        let mut rules = self.egress.rules().iter();
        if rules.any(|rule| rule.authority().is_some()) {
            Words::from([AuthorityChannel::EgressHeader])
        } else {
            Words::none()
        }
    }

    /// The parts it uses that are no capabilities, in the order of the fields.
    #[must_use]
    pub fn features(&self) -> Words<Feature> {
        let used = [
            (Feature::ImageBuild, self.image.build_directory().is_some()),
            (
                Feature::HardeningAsImage,
                self.hardening == Hardening::AsImage,
            ),
            (Feature::StorageRoot, self.storage == Storage::Root),
            (Feature::StorageDisk, self.storage == Storage::Disk),
            (
                Feature::DeclaredOutputs,
                self.outputs_named_at_call_time || !self.declared_outputs.is_empty(),
            ),
            (Feature::ExclusiveAdmission, self.exclusive_admission),
            (Feature::CleanupFloor, self.min_cleanup.is_some()),
            (
                Feature::ExecutionContract,
                self.execution_contract.is_some(),
            ),
            (Feature::Services, !self.services.is_empty()),
            (
                Feature::DiscardAfterAbort,
                self.after_abort == AfterAbort::Discard,
            ),
            (Feature::HostToolCalls, self.host_tools.is_some()),
        ];
        let used = used.into_iter().filter(|(_, used)| *used);
        used.map(|(feature, _)| feature).collect()
    }

    /// The weakest isolation that will do; it can only raise the host's floor.
    #[must_use]
    pub fn min_isolation(&self) -> Option<Isolation> {
        self.min_isolation
    }

    /// How much of a conversation one sandbox serves.
    #[must_use]
    pub fn isolation_scope(&self) -> IsolationScope {
        self.isolation_scope
    }

    /// The weakest cleanup that will do after a call.
    #[must_use]
    pub fn min_cleanup(&self) -> Option<Cleanup> {
        self.min_cleanup
    }

    /// Whether calls must have the sandbox for themselves.
    #[must_use]
    pub fn exclusive_admission(&self) -> bool {
        self.exclusive_admission
    }

    /// The family of operating system that it must have.
    #[must_use]
    pub fn os_family(&self) -> Option<OsFamily> {
        self.os_family
    }

    /// The host's labels; never part of the identity.
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// An opaque string that a reused sandbox must have been made with.
    #[must_use]
    pub fn execution_contract(&self) -> Option<&str> {
        self.execution_contract.as_deref()
    }

    /// The host's tools that guest code may call.
    #[must_use]
    pub fn host_tools(&self) -> Option<&HostTools> {
        self.host_tools.as_ref()
    }

    /// The services beside it.
    #[must_use]
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// What happens to it after a command was ended early.
    #[must_use]
    pub fn after_abort(&self) -> AfterAbort {
        self.after_abort
    }

    /// How far an attached credential may reach; present exactly when
    /// [`Capability::AttachedIdentity`] is required.
    #[must_use]
    pub fn identity_bounds(&self) -> Option<&IdentityBounds> {
        self.identity_bounds.as_ref()
    }

    /// Whether the caller promises to write under its call's own directory
    /// only. Advice for cleanup; nothing enforces it.
    #[must_use]
    pub fn confined_to_guest_call_path(&self) -> bool {
        self.confined_to_guest_call_path
    }
}

/// Environment variables by name only.
impl fmt::Debug for SandboxSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.env.keys().collect();
        f.debug_struct("SandboxSpec")
            .field("kind", &self.kind)
            .field("image", &self.image)
            .field("egress", &self.egress)
            .field("work_dir", &self.work_dir)
            .field("storage", &self.storage)
            .field("hardening", &self.hardening)
            .field("limits", &self.limits)
            .field("env", &names)
            .field("requires", &self.requires)
            .field("isolation_scope", &self.isolation_scope)
            .field("features", &self.features())
            .finish_non_exhaustive()
    }
}
