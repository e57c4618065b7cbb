//! What names a sandbox, and the other names of the contract.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::text::excerpt;

/// Whose sandbox it is: four opaque strings of the host's.
///
/// Two keys that differ anywhere name different sandboxes, and so do two
/// [`Kind`]s under one key. No character is special. The reuse scopes of
/// other systems map onto it: scope is tenant and user, thread is the
/// session, call id is the invocation or a fresh id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SandboxKey {
    /// Tenant, user, or whatever must never share with another.
    pub scope: String,
    /// The conversation.
    pub thread_id: String,
    /// The agent within it.
    pub agent_id: String,
    /// The call, for a sandbox of its own; empty for the conversation's.
    pub call_id: String,
}

/// What sort of sandbox it is, such as `python`; part of its identity.
///
/// 1 to 128 bytes without control characters, not surrounded by spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(String);

/// The name of one physical sandbox; another after it was replaced or reset.
///
/// 1 to 256 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(String);

/// The name of a backend, such as `docker`.
///
/// 1 to 64 bytes: lower-case letters, digits and inner hyphens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendName(String);

/// The id of one [`Call`](crate::Call): the column that joins what is recorded of it.
///
/// 1 to 128 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(String);

/// A text that is no name of its sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidName {
    what: &'static str,
    asked: String,
    rule: &'static str,
}

impl SandboxKey {
    /// The key of a conversation's sandbox.
    pub fn new(
        scope: impl Into<String>,
        thread_id: impl Into<String>,
        agent_id: impl Into<String>,
    ) -> Self {
        Self {
            scope: scope.into(),
            thread_id: thread_id.into(),
            agent_id: agent_id.into(),
            call_id: String::new(),
        }
    }

    /// The same key for one call's own sandbox; an empty id gives the
    /// conversation's key.
    #[must_use]
    pub fn with_call(mut self, call_id: impl Into<String>) -> Self {
        self.call_id = call_id.into();
        self
    }

    /// Whether it names one call's own sandbox.
    #[must_use]
    pub fn is_per_call(&self) -> bool {
        !self.call_id.is_empty()
    }

    /// Whether it names a call of that agent in that conversation.
    #[must_use]
    pub fn is_call_of(&self, conversation: &Self) -> bool {
        self.is_per_call()
            && self.scope == conversation.scope
            && self.thread_id == conversation.thread_id
            && self.agent_id == conversation.agent_id
            && !conversation.is_per_call()
    }
}

/// The parts that are not empty, joined by `/`; for people, not unambiguous.
impl fmt::Display for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.scope, &self.thread_id, &self.agent_id, &self.call_id];
        let shown: Vec<String> = parts
            .iter()
            .filter(|part| !part.is_empty())
            .map(|part| excerpt(part))
            .collect();
        f.write_str(&shown.join("/"))
    }
}

impl CallId {
    /// An id that no other call has: 64 bits drawn once per process, and a count.
    pub(crate) fn unique() -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // The standard library seeds its hashers from the system's random source.
        let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{process:016x}-{count:x}"))
    }
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, asked, rule } = self;
        write!(f, "{what} `{asked}` is not valid: use {rule}")
    }
}

impl std::error::Error for InvalidName {}

macro_rules! name {
    ($name:ident, $what:literal, $rule:literal, $valid:expr) => {
        impl $name {
            /// The name of this text.
            ///
            /// # Errors
            ///
            /// [`InvalidName`] when it does not keep the rule of the type.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                let valid: fn(&str) -> bool = $valid;
                if valid(&text) {
                    Ok(Self(text))
                } else {
                    Err(InvalidName {
                        what: $what,
                        asked: excerpt(&text),
                        rule: $rule,
                    })
                }
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    };
}

name!(
    Kind,
    "kind",
    "1 to 128 bytes without control characters, not surrounded by spaces",
    |text| is_plain(text, 128) && text.trim() == text
);
name!(
    InstanceId,
    "instance id",
    "1 to 256 bytes without control characters",
    |text| is_plain(text, 256)
);
name!(
    BackendName,
    "backend name",
    "1 to 64 lower-case letters, digits and inner hyphens",
    |text| is_plain(text, 64)
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
);
name!(
    CallId,
    "call id",
    "1 to 128 bytes without control characters",
    |text| is_plain(text, 128)
);

fn is_plain(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.len() <= longest && !text.chars().any(char::is_control)
}
