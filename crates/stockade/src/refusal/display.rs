//! The sentences of refusals: what was asked, what is wrong, what to do.

use std::fmt;

use super::{IdentityMismatch, Never, Refusal};
use crate::text::excerpt;
use crate::vocabulary::{Feature, IsolationScope};

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, why } => write!(f, "`{path}`: {why}"),
            Self::FilePlane { why } => write!(
                f,
                "files cannot be copied while the sandbox is paused: {why}; choose the guest plane"
            ),
            Self::NoBackend { .. }
            | Self::IsolationTooWeak { .. }
            | Self::CapabilityMissing { .. }
            | Self::CapabilityDenied { .. }
            | Self::IdentityDenied { .. }
            | Self::OsFamily { .. }
            | Self::TransferLimits { .. }
            | Self::EgressNotEnforced { .. }
            | Self::EgressMethods { .. }
            | Self::ScopeNotEnforced { .. }
            | Self::AttachedIdentity { .. }
            | Self::NotYetServed { .. }
            | Self::NeverServed { .. } => self.declared(f),
            Self::ImageNotFound { .. }
            | Self::BuildDirectory { .. }
            | Self::ImageBuild { .. }
            | Self::ImageDigestMismatch { .. }
            | Self::ImagePlatformMismatch { .. }
            | Self::ImageUserUnresolved { .. }
            | Self::ImageVolume { .. }
            | Self::WorkDirHidesContent { .. }
            | Self::WorkDirNotDirectory { .. }
            | Self::StorageMismatch { .. } => self.image(f),
            Self::LimitAboveEngine { .. }
            | Self::LimitBelowFloor { .. }
            | Self::LimitNotEnforceable { .. }
            | Self::NotAsPlanned { .. }
            | Self::MemoryRule { .. }
            | Self::EngineTooOld { .. }
            | Self::EngineForeign { .. }
            | Self::RuntimeNotCarried { .. } => self.engine(f),
            Self::KeyScopeMismatch { .. }
            | Self::Unclean { .. }
            | Self::ExecutionContract { .. }
            | Self::Drifted { .. }
            | Self::Foreign { .. } => self.occupied(f),
        }
    }
}

/// One group of sentences each; a variant of another group falls to its code,
/// which a test shows to happen for none.
impl Refusal {
    /// What declarations, or the host's own rules, tell.
    fn declared(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBackend { selected: None } => {
                f.write_str("there is no backend to serve the spec; register one")
            }
            Self::NoBackend {
                selected: Some(name),
            } => write!(
                f,
                "there is no backend named `{name}`; select a registered one"
            ),
            Self::IsolationTooWeak { asked, given } => write!(
                f,
                "isolation of at least `{asked}` was asked, and the backend gives `{given}`; \
                 use a stronger backend, or lower the floor where that is acceptable"
            ),
            Self::CapabilityMissing { missing } => write!(
                f,
                "the spec needs `{missing}`, which the backend lacks; use another backend, or a \
                 spec that does without"
            ),
            Self::CapabilityDenied { denied } => write!(
                f,
                "the spec needs `{denied}`, which the host forbids; use a spec that does without, \
                 or have the host allow it"
            ),
            Self::IdentityDenied { denied } => write!(
                f,
                "the spec's host tools act as `{denied}`, which the host forbids; leave those \
                 tools out, or have the host allow it"
            ),
            Self::OsFamily { asked, served } => write!(
                f,
                "a guest of the family `{asked}` was asked, and the backend's are: {served}; use \
                 another backend"
            ),
            Self::TransferLimits {
                direction,
                limit,
                asked,
                most,
            } => write!(
                f,
                "files_{direction} asked {limit} {asked}, and the backend serves at most {most}; \
                 lower it, and move more in several calls"
            ),
            Self::EgressNotEnforced { asked, enforced } => write!(
                f,
                "egress `{asked}` was asked, and the backend enforces: {enforced}; no mode stands \
                 in for another, so ask for one of these or use another backend"
            ),
            Self::EgressMethods { missing } => write!(
                f,
                "the egress rules name the methods {}, which the backend cannot tell apart; leave \
                 them out, or use another backend",
                quoted(missing)
            ),
            Self::ScopeNotEnforced { asked, enforced } => write!(
                f,
                "a sandbox for one {asked} was asked, and the backend enforces: {enforced}; use \
                 another backend"
            ),
            Self::AttachedIdentity { mismatch } => write!(f, "{mismatch}"),
            Self::NotYetServed { feature } => write!(
                f,
                "the spec uses `{feature}` ({}), which the backend does not serve; leave it out, \
                 or use another backend",
                field(*feature)
            ),
            Self::NeverServed { what } => f.write_str(what.reason()),
            other => f.write_str(other.code()),
        }
    }

    /// What the image tells.
    fn image(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ImageNotFound { reference, detail } => {
                write!(
                    f,
                    "the image `{}` is not there; check its name and tag, pull it, or allow \
                     pulling",
                    excerpt(reference)
                )?;
                match detail.as_str() {
                    "" => Ok(()),
                    detail => write!(f, " ({})", excerpt(detail)),
                }
            }
            Self::ImageDigestMismatch { wanted, found } => write!(
                f,
                "the image must be {wanted}, and what is there is {}; pull the right one, or \
                 correct the digest",
                quoted(found)
            ),
            Self::ImagePlatformMismatch { wanted, found } => write!(
                f,
                "the image must be for {wanted}, and what is there is for `{}`; name an image of \
                 that platform",
                excerpt(found)
            ),
            Self::ImageUserUnresolved { user, why } => write!(
                f,
                "the image's user `{}` cannot be resolved ({}); use an image whose USER is a \
                 number or stands in its /etc/passwd",
                excerpt(user),
                excerpt(why)
            ),
            Self::BuildDirectory { directory, why } => write!(
                f,
                "no image can be built from `{}`: {}; name a directory of its own with a \
                 Dockerfile and what that needs",
                excerpt(directory),
                excerpt(why)
            ),
            Self::ImageBuild { directory, why } => write!(
                f,
                "the image of `{}` could not be built: {}; look at the error's detail for what \
                 the build said, and correct the Dockerfile",
                excerpt(directory),
                excerpt(why)
            ),
            Self::ImageVolume { path } => write!(
                f,
                "the image declares a volume at `{}`, which would be mounted unasked; use an \
                 image without VOLUME there",
                excerpt(path)
            ),
            Self::WorkDirHidesContent { path } => write!(
                f,
                "the image has content at `{}`, which the work directory would hide; choose \
                 another work directory, or `root` storage with `as_image` hardening",
                excerpt(path)
            ),
            Self::WorkDirNotDirectory { path } => write!(
                f,
                "what the image has at `{}` is no directory; choose another work directory",
                excerpt(path)
            ),
            Self::StorageMismatch { storage, why } => write!(
                f,
                "`{storage}` storage was asked, and {}; choose another storage",
                excerpt(why)
            ),
            other => f.write_str(other.code()),
        }
    }

    /// What the engine tells.
    fn engine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitAboveEngine { limit, asked, most } => write!(
                f,
                "the limit {limit} asked {asked}, and the engine has {most}; lower it, or use a \
                 larger engine"
            ),
            Self::LimitBelowFloor {
                limit,
                asked,
                least,
            } => write!(
                f,
                "the limit {limit} asked {asked}, with which no command can run; give at least \
                 {least}"
            ),
            Self::LimitNotEnforceable { limit, why } => write!(
                f,
                "the engine cannot enforce the limit {limit}: {}; use an engine that can",
                excerpt(why)
            ),
            Self::NotAsPlanned { differences } => write!(
                f,
                "the engine made another sandbox than was asked for ({}), and it was removed; use \
                 an engine that enforces what it is asked",
                excerpt(&differences.join("; "))
            ),
            Self::MemoryRule { memory, needed } => write!(
                f,
                "the limit memory asked {memory} bytes, and full directories in memory would leave \
                 no room for programs; give at least {needed}, or make the directories smaller"
            ),
            Self::EngineTooOld {
                found,
                needed,
                for_what,
            } => write!(
                f,
                "the engine is version `{}`, and {} needs {needed} or newer; upgrade it",
                excerpt(found),
                excerpt(for_what)
            ),
            Self::EngineForeign { found, needed } => write!(
                f,
                "`{}` was found, and the backend drives {needed} only; install that, and name it \
                 in the configuration",
                excerpt(found)
            ),
            Self::RuntimeNotCarried { platform } => write!(
                f,
                "there is no guest runtime for `{}`; use an image of another platform, or build \
                 the runtime for this one and name its file",
                excerpt(platform)
            ),
            other => f.write_str(other.code()),
        }
    }

    /// What is there already, or what the key tells.
    fn occupied(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyScopeMismatch {
                scope: IsolationScope::Call,
            } => f.write_str(
                "the spec asks for a sandbox of one call, and the key has no call id; add one",
            ),
            Self::KeyScopeMismatch { scope } => write!(
                f,
                "the spec asks for a sandbox of one {scope}, and the key has a call id; leave it \
                 out, or ask for the scope `call`"
            ),
            Self::Unclean { code } => write!(
                f,
                "the key is closed, since what it had could not be removed ({code}); dispose of \
                 it again, then ask again"
            ),
            Self::ExecutionContract { wanted, found } => write!(
                f,
                "the execution contract {} was asked, and the sandbox was made with {}; dispose \
                 of it first, or use another key",
                contract(wanted.as_deref()),
                contract(found.as_deref())
            ),
            Self::Drifted { fields } => write!(
                f,
                "a sandbox of this key is in use and was made with other {}; wait until it is \
                 idle, dispose of it, or use another key",
                quoted(fields)
            ),
            Self::Foreign { name } => write!(
                f,
                "`{}` exists and is not ours; rename or remove it by hand",
                excerpt(name)
            ),
            other => f.write_str(other.code()),
        }
    }
}

impl fmt::Display for IdentityMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str(
                "the backend attaches a credential to its sandboxes, and the spec does not ask \
                 for one; require `attached_identity`, or use another backend",
            ),
            Self::Scope { most, given } => write!(
                f,
                "the backend's credential is shared `{given}`, and at most `{most}` is accepted; \
                 use another backend, or accept more"
            ),
            Self::Retention { most, given } => write!(
                f,
                "the backend keeps its credential for {given:?}, and at most {most:?} is \
                 accepted; use another backend, or accept more"
            ),
            Self::Channels { asked, given } => write!(
                f,
                "the spec's rules attach a credential through: {asked}, and the backend through: \
                 {given}; name an authority on a rule, or use another backend"
            ),
        }
    }
}

impl Never {
    /// Why it is never served, and what to do instead, in one sentence.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::HostMounts => {
                "directories of the host are never mounted into a sandbox; copy files in and out \
                 instead"
            }
            Self::PublishedPorts => {
                "ports of a sandbox are never published on the host; run a command inside that \
                 answers on its standard output instead"
            }
            Self::Devices => {
                "devices and GPUs of the host are never given to a sandbox; do that work outside, \
                 and pass its result in"
            }
            Self::EngineSocket => {
                "the engine's socket is never given to a sandbox, since it is the host's root; \
                 ask for services instead"
            }
            Self::NestedEngine => {
                "no container engine runs inside a sandbox; ask for services instead"
            }
        }
    }
}

/// The field of a spec that a feature belongs to.
const fn field(feature: Feature) -> &'static str {
    match feature {
        Feature::ImageBuild => "image",
        Feature::HardeningAsImage => "hardening",
        Feature::StorageRoot | Feature::StorageDisk => "storage",
        Feature::DeclaredOutputs => "declared_outputs, outputs_named_at_call_time",
        Feature::ExclusiveAdmission => "exclusive_admission",
        Feature::CleanupFloor => "min_cleanup",
        Feature::ExecutionContract => "execution_contract",
        Feature::Services => "services",
        Feature::DiscardAfterAbort => "after_abort",
        Feature::HostToolCalls => "host_tools",
    }
}

/// At most eight texts, each short.
fn quoted(texts: &[String]) -> String {
    if texts.is_empty() {
        return "unknown".to_owned();
    }
    let mut shown: Vec<String> = texts
        .iter()
        .take(8)
        .map(|text| format!("`{}`", excerpt(text)))
        .collect();
    if texts.len() > shown.len() {
        shown.push(format!("{} more", texts.len() - shown.len()));
    }
    shown.join(", ")
}

fn contract(contract: Option<&str>) -> String {
    contract.map_or_else(|| "none".to_owned(), |text| format!("`{}`", excerpt(text)))
}
