//! A non-empty list of rules.

use std::fmt;

use crate::{EgressRule, RuleError};

/// What may be reached: at least one rule, and none that contradicts another.
///
/// Rules that are equal are kept once. Two rules for one host that share a
/// port and differ in methods, paths or credential are refused, since nobody
/// could tell which one was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressPolicy {
    rules: Vec<EgressRule>,
}

/// Why rules make no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// There is no rule.
    #[error("a policy has at least one rule; ask for closed egress instead of an empty policy")]
    Empty,
    /// A rule is not well formed.
    #[error("rule {number} ({text:?}): {error}")]
    Rule {
        /// Which one, from 1.
        number: usize,
        /// As it was written.
        text: String,
        /// What is wrong.
        error: RuleError,
    },
    /// Two rules for one host and port differ.
    #[error(
        "`{first}` and `{second}` are for one host and port and differ; write them as one rule"
    )]
    Conflict {
        /// The earlier one.
        first: Box<EgressRule>,
        /// The later one.
        second: Box<EgressRule>,
    },
}

impl EgressPolicy {
    /// A policy of these rules, in this order.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Empty`] and [`PolicyError::Conflict`].
    pub fn new(rules: impl IntoIterator<Item = EgressRule>) -> Result<Self, PolicyError> {
        let mut kept: Vec<EgressRule> = Vec::new();
        for rule in rules {
            if kept.contains(&rule) {
                continue;
            }
            let rival = kept
                .iter()
                .find(|other| other.host() == rule.host() && other.ports().overlap(rule.ports()));
            if let Some(first) = rival {
                return Err(PolicyError::Conflict {
                    first: Box::new(first.clone()),
                    second: Box::new(rule),
                });
            }
            kept.push(rule);
        }
        if kept.is_empty() {
            return Err(PolicyError::Empty);
        }
        Ok(Self { rules: kept })
    }

    /// The rules; never empty.
    #[must_use]
    pub fn rules(&self) -> &[EgressRule] {
        &self.rules
    }
}

impl fmt::Display for EgressPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.rules.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{rule}")?;
        }
        Ok(())
    }
}
