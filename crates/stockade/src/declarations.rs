//! What a backend says of itself.

use std::time::Duration;

use crate::limits::BothTransferLimits;
use crate::vocabulary::{
    AuthorityChannel, Capabilities, Capability, EgressMode, Feature, IdentityScope, Isolation,
    IsolationScope, OsFamily,
};
use crate::words::Words;

/// What a backend promises to enforce, fixed for its life.
///
/// The default is what silence means: commands and files in one conversation's
/// sandbox, nothing enforced about the network, hence every spec refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declarations {
    /// What it can do; `exec` and `files_in` by default.
    pub capabilities: Capabilities,
    /// The most that one call may move.
    pub limits: BothTransferLimits,
    /// The egress modes that it enforces; none by default.
    pub egress_modes: Words<EgressMode>,
    /// The families of its guests; unknown (none) by default, which refuses
    /// every spec that names one.
    pub os_families: Words<OsFamily>,
    /// How strongly it isolates; not at all by default.
    pub isolation: Isolation,
    /// The isolation scopes that it enforces; the conversation by default.
    pub isolation_scopes: Words<IsolationScope>,
    /// Whether it reports what its sandboxes reached.
    pub observes_egress: bool,
    /// The request methods that its rules can name; none by default.
    pub egress_method_tokens: MethodTokens,
    /// The credential that it attaches to its sandboxes.
    pub attached_identity: Option<AttachedIdentity>,
    /// Whether a sandbox can serve one call at a time only.
    pub requires_exclusive_admission: bool,
    /// The parts of a spec beyond capabilities that it serves; none by default.
    pub features: Words<Feature>,
}

/// Request methods that a backend's rules can name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a list that is either finite or everything has no third form"
)]
pub enum MethodTokens {
    /// Every token.
    Any,
    /// These.
    Only(Vec<String>),
}

/// A credential that a backend attaches to its sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttachedIdentity {
    /// How widely one credential is shared.
    pub scope: IdentityScope,
    /// How long it is kept.
    pub retention: Duration,
    /// How it takes effect.
    pub channels: Words<AuthorityChannel>,
}

impl Default for Declarations {
    fn default() -> Self {
        Self {
            capabilities: Capabilities::from([Capability::Exec, Capability::FilesIn]),
            limits: BothTransferLimits::default(),
            egress_modes: Words::none(),
            os_families: Words::none(),
            isolation: Isolation::None,
            isolation_scopes: Words::from([IsolationScope::Conversation]),
            observes_egress: false,
            egress_method_tokens: MethodTokens::default(),
            attached_identity: None,
            requires_exclusive_admission: false,
            features: Words::none(),
        }
    }
}

impl Declarations {
    /// What silence means; set the fields that are more.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what it can do.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: impl IntoIterator<Item = Capability>) -> Self {
        self.capabilities = capabilities.into_iter().collect();
        self
    }

    /// Sets the most that one call may move.
    #[must_use]
    pub fn with_limits(mut self, limits: BothTransferLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the egress modes that it enforces.
    #[must_use]
    pub fn with_egress_modes(mut self, modes: impl IntoIterator<Item = EgressMode>) -> Self {
        self.egress_modes = modes.into_iter().collect();
        self
    }

    /// Sets the families of its guests.
    #[must_use]
    pub fn with_os_families(mut self, families: impl IntoIterator<Item = OsFamily>) -> Self {
        self.os_families = families.into_iter().collect();
        self
    }

    /// Sets how strongly it isolates.
    #[must_use]
    pub fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets the isolation scopes that it enforces.
    #[must_use]
    pub fn with_isolation_scopes(
        mut self,
        scopes: impl IntoIterator<Item = IsolationScope>,
    ) -> Self {
        self.isolation_scopes = scopes.into_iter().collect();
        self
    }

    /// Sets whether it reports what its sandboxes reached.
    #[must_use]
    pub fn with_observes_egress(mut self, observes: bool) -> Self {
        self.observes_egress = observes;
        self
    }

    /// Sets the request methods that its rules can name.
    #[must_use]
    pub fn with_egress_method_tokens(mut self, tokens: MethodTokens) -> Self {
        self.egress_method_tokens = tokens;
        self
    }

    /// Sets the credential that it attaches.
    #[must_use]
    pub fn with_attached_identity(mut self, identity: AttachedIdentity) -> Self {
        self.attached_identity = Some(identity);
        self
    }

    /// Sets whether a sandbox can serve one call at a time only.
    #[must_use]
    pub fn with_requires_exclusive_admission(mut self, exclusive: bool) -> Self {
        self.requires_exclusive_admission = exclusive;
        self
    }

    /// Sets the parts of a spec beyond capabilities that it serves.
    #[must_use]
    pub fn with_features(mut self, features: impl IntoIterator<Item = Feature>) -> Self {
        self.features = features.into_iter().collect();
        self
    }
}

impl Default for MethodTokens {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl MethodTokens {
    /// Whether rules can name this method.
    #[must_use]
    pub fn contains(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(known) => known.iter().any(|token| token == method),
        }
    }
}

impl AttachedIdentity {
    /// A credential of this reach.
    #[must_use]
    pub fn new(
        scope: IdentityScope,
        retention: Duration,
        channels: impl IntoIterator<Item = AuthorityChannel>,
    ) -> Self {
        Self {
            scope,
            retention,
            channels: channels.into_iter().collect(),
        }
    }
}
