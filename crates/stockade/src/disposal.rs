//! What removing did.

use std::fmt;
use std::time::Duration;

use crate::key::{InstanceId, Kind};
use crate::vocabulary::DisposalCode;

/// Which sandboxes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// Of every kind.
    All,
    /// Of every kind, and those of every call of the same agent in the same
    /// conversation. The same as [`Which::All`] for the key of a call.
    AllWithCalls,
    /// Of one kind.
    Kind(Kind),
    /// One physical sandbox.
    Instance(InstanceId),
}

/// What a removal did. A failure of one never keeps the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use = "a removal may have failures"]
pub struct Removed {
    /// Sandboxes that are gone because of this removal. One that was gone
    /// before does not count, and is no failure.
    pub count: u64,
    /// What could not be removed.
    pub failures: Vec<RemovalFailure>,
}

/// One thing that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovalFailure {
    /// Why.
    pub code: DisposalCode,
    /// What: a name or an id.
    pub what: String,
    /// More about it, shortened; for people.
    pub detail: String,
}

/// Which sandboxes to reap; every condition that is set must hold.
///
/// The default has no condition and leaves alone what is in use: what has a
/// host attached, a command alive, or is being made right now. Ages are by the
/// clock of what holds the sandboxes, such as the engine's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReapFilter {
    /// Made longer ago than this.
    pub older_than: Option<Duration>,
    /// Without a command, channel or call for longer than this.
    pub idle_for: Option<Duration>,
    /// Of this scope.
    pub scope: Option<String>,
    /// Also what is in use, whose commands end as
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost).
    pub in_use: bool,
}

/// What reaping did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use = "reaping may have failures"]
pub struct Reaped {
    /// Sandboxes that were removed.
    pub sandboxes: u64,
    /// Other things that were removed: volumes, networks, services, proxies.
    pub others: u64,
    /// Sandboxes of that age and scope that stay because they are in use, or
    /// were used within [`ReapFilter::idle_for`].
    pub kept: u64,
    /// What could not be removed.
    pub failures: Vec<RemovalFailure>,
}

impl Removed {
    /// So many, without a failure.
    pub fn new(count: u64) -> Self {
        Self {
            count,
            failures: Vec::new(),
        }
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    /// Adds another removal's count and failures.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.failures.extend(other.failures);
    }

    /// The failures as one: the first code of [`DisposalCode`]'s order, and
    /// the details joined by `; `.
    #[must_use]
    pub fn folded(&self) -> Option<RemovalFailure> {
        RemovalFailure::fold(&self.failures)
    }
}

impl RemovalFailure {
    /// A failure to remove `what`.
    pub fn new(code: DisposalCode, what: impl Into<String>, detail: impl AsRef<str>) -> Self {
        Self {
            code,
            what: what.into(),
            detail: crate::text::excerpt(detail.as_ref()),
        }
    }

    /// Several failures as one: the first code of [`DisposalCode`]'s order,
    /// and names and details joined.
    #[must_use]
    pub fn fold(failures: &[Self]) -> Option<Self> {
        let codes = DisposalCode::ALL.iter().copied();
        let code = codes
            .into_iter()
            .find(|code| failures.iter().any(|failure| failure.code == *code))?;
        let joined = |part: fn(&Self) -> &str, by: &str| {
            let parts: Vec<&str> = failures.iter().map(part).collect();
            parts.join(by)
        };
        Some(Self {
            code,
            what: joined(|failure| &failure.what, ", "),
            detail: joined(|failure| &failure.detail, "; "),
        })
    }
}

impl fmt::Display for RemovalFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, what, detail } = self;
        write!(f, "{what} could not be removed ({code}): {detail}")
    }
}

impl ReapFilter {
    /// Everything that is ours, in use or not.
    #[must_use]
    pub fn everything() -> Self {
        Self::default().including_in_use()
    }

    /// Also what is in use.
    #[must_use]
    pub fn including_in_use(mut self) -> Self {
        self.in_use = true;
        self
    }

    /// Only what was made longer ago than this.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Only what was idle for longer than this.
    #[must_use]
    pub fn idle_for(mut self, idle: Duration) -> Self {
        self.idle_for = Some(idle);
        self
    }

    /// Only what is of this scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }
}

impl Reaped {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }
}
