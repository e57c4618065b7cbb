//! What a sandbox may reach on the network.

use stockade_policy::{EgressPolicy, EgressRule, PolicyError};

use crate::vocabulary::EgressMode;

/// What a sandbox may reach on the network. Closed unless asked otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every backend must decide about every mode; a new one is a change of the contract"
)]
pub enum Egress {
    /// Nothing: there is no interface but loopback.
    #[default]
    Closed,
    /// What the policy names, through the proxy only. A policy is never empty.
    Allowlist(EgressPolicy),
    /// Everything, where the host allows that at all.
    Unrestricted,
}

impl Egress {
    /// The egress of a list that may be empty.
    ///
    /// An empty list gives [`Egress::Closed`]: nothing was named, so nothing
    /// can be reached. Match on the value to tell the two apart.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Conflict`] when two rules contradict each other.
    pub fn from_rules(rules: impl IntoIterator<Item = EgressRule>) -> Result<Self, PolicyError> {
        match EgressPolicy::new(rules) {
            Ok(policy) => Ok(Self::Allowlist(policy)),
            Err(PolicyError::Empty) => Ok(Self::Closed),
            Err(error) => Err(error),
        }
    }

    /// The mode without its policy.
    #[must_use]
    pub fn mode(&self) -> EgressMode {
        match self {
            Self::Closed => EgressMode::Closed,
            Self::Allowlist(_) => EgressMode::Allowlist,
            Self::Unrestricted => EgressMode::Unrestricted,
        }
    }

    /// The policy of an allowlist.
    #[must_use]
    pub fn policy(&self) -> Option<&EgressPolicy> {
        match self {
            Self::Allowlist(policy) => Some(policy),
            Self::Closed | Self::Unrestricted => None,
        }
    }

    /// The rules of an allowlist; none otherwise.
    #[must_use]
    pub fn rules(&self) -> &[EgressRule] {
        self.policy().map_or(&[], EgressPolicy::rules)
    }
}
