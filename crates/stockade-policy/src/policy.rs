//! A non-empty list of rules.

use std::collections::HashMap;
use std::fmt;

use crate::rule::excerpt;
use crate::{EgressRule, RuleError};

/// What may be reached: at least one rule, and none that contradicts another.
///
/// Rules that are equal are kept once. Two rules for one host that share a
/// port and differ in methods, paths or credential are refused, since nobody
/// could tell which one was meant. A wildcard and a name below it are two hosts.
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
    #[error("rule {number}, {text:?}: {error}")]
    Rule {
        /// Which one, counted from 1.
        number: usize,
        /// As it was written, shortened.
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

/// Everything that is wrong with the text of a policy; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyErrors {
    errors: Vec<PolicyError>,
}

impl EgressPolicy {
    /// A policy of these rules, in this order.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Empty`] for none, and [`PolicyError::Conflict`] for the
    /// first two that contradict each other.
    pub fn new(rules: impl IntoIterator<Item = EgressRule>) -> Result<Self, PolicyError> {
        let mut kept: Vec<EgressRule> = Vec::new();
        let mut by_host: HashMap<(bool, String), Vec<usize>> = HashMap::new();
        for rule in rules {
            let host = (rule.host().is_wildcard(), rule.host().name());
            let same_host = by_host.entry(host).or_default();
            if same_host.iter().any(|at| kept[*at] == rule) {
                continue;
            }
            let rival = same_host
                .iter()
                .map(|at| &kept[*at])
                .find(|other| other.ports().overlap(rule.ports()));
            if let Some(first) = rival {
                return Err(PolicyError::Conflict {
                    first: Box::new(first.clone()),
                    second: Box::new(rule),
                });
            }
            same_host.push(kept.len());
            kept.push(rule);
        }
        if kept.is_empty() {
            return Err(PolicyError::Empty);
        }
        Ok(Self { rules: kept })
    }

    /// A policy of rules in their text form.
    ///
    /// # Errors
    ///
    /// Every rule that is not well formed; when all are, what
    /// [`EgressPolicy::new`] refuses.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, PolicyErrors> {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for (at, text) in texts.into_iter().enumerate() {
            match text.parse() {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push(PolicyError::Rule {
                    number: at + 1,
                    text: excerpt(text),
                    error,
                }),
            }
        }
        if !errors.is_empty() {
            return Err(PolicyErrors { errors });
        }
        Self::new(rules).map_err(|error| PolicyErrors {
            errors: vec![error],
        })
    }

    /// The rules; never empty.
    #[must_use]
    pub fn rules(&self) -> &[EgressRule] {
        &self.rules
    }
}

/// The rules' text forms, joined by `; `.
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

impl PolicyErrors {
    /// The errors, in the order of the rules.
    #[must_use]
    pub fn errors(&self) -> &[PolicyError] {
        &self.errors
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.errors.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_never_empty() {
        assert_eq!(EgressPolicy::new([]), Err(PolicyError::Empty));
        let errors = EgressPolicy::parse([]).unwrap_err();
        assert_eq!(errors.errors(), [PolicyError::Empty]);
    }

    #[test]
    fn equal_rules_are_kept_once_in_their_first_spelling() {
        let policy = EgressPolicy::parse(["PyPI.org", "pypi.org", "https://pypi.org:443"]).unwrap();
        assert_eq!(policy.to_string(), "PyPI.org");
    }

    #[test]
    fn rules_that_differ_on_one_host_and_port_are_refused() {
        for second in ["GET a.test", "a.test/x", "A.test:443,8443"] {
            let errors = EgressPolicy::parse(["a.test", second]).unwrap_err();
            assert!(
                matches!(errors.errors(), [PolicyError::Conflict { .. }]),
                "{second}"
            );
        }
        let plain = EgressRule::new("a.test").unwrap();
        let with = plain.clone().with_authority("github").unwrap();
        assert!(matches!(
            EgressPolicy::new([plain, with]),
            Err(PolicyError::Conflict { .. })
        ));
    }

    #[test]
    fn rules_on_other_ports_or_hosts_stand_side_by_side() {
        let texts = ["a.test", "GET a.test:8443", "GET *.a.test", "b.a.test"];
        let policy = EgressPolicy::parse(texts).unwrap();
        assert_eq!(policy.rules().len(), 4);
    }

    #[test]
    fn every_rule_that_is_not_well_formed_is_reported() {
        let errors = EgressPolicy::parse(["ok.test", "*", "get b.test"]).unwrap_err();
        let numbers: Vec<usize> = errors
            .errors()
            .iter()
            .map(|error| match error {
                PolicyError::Rule { number, .. } => *number,
                _ => 0,
            })
            .collect();
        assert_eq!(numbers, [2, 3]);
    }
}
