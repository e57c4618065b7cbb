//! Which suites there are.

use std::fmt;
use std::str::FromStr;

use stockade::Capability;

/// A group of probes that attack one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Suite {
    /// Paths: the work directory, what is outside of it, and that all
    /// operations mean the same by one path.
    StorageBase,
    /// Commands: arguments, streams, codes, timeouts.
    Exec,
    /// Files written.
    FilesIn,
    /// Files read.
    FilesOut,
    /// Directories listed.
    List,
    /// Files removed.
    Delete,
    /// Directories of the host's own removed.
    Reclaim,
    /// That nothing is changed which the guest could not have changed, and
    /// that the guest owns what it is given.
    Reach,
    /// What an acquire says of the sandbox that it returns.
    FreshAcquire,
    /// That what is removed is gone, and nothing else.
    InstanceDisposal,
}

impl Suite {
    /// Every suite, in the order in which they run.
    pub const ALL: &'static [Self] = &[
        Self::StorageBase,
        Self::Exec,
        Self::FilesIn,
        Self::FilesOut,
        Self::List,
        Self::Delete,
        Self::Reclaim,
        Self::Reach,
        Self::FreshAcquire,
        Self::InstanceDisposal,
    ];

    /// The fixed spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StorageBase => "storage_base",
            Self::Exec => "exec",
            Self::FilesIn => "files_in",
            Self::FilesOut => "files_out",
            Self::List => "list",
            Self::Delete => "delete",
            Self::Reclaim => "reclaim",
            Self::Reach => "reach",
            Self::FreshAcquire => "fresh_acquire",
            Self::InstanceDisposal => "instance_disposal",
        }
    }

    /// The capability without which the suite is refused; nothing for the
    /// suites that hold for every backend.
    #[must_use]
    pub const fn capability(self) -> Option<Capability> {
        match self {
            Self::Exec => Some(Capability::Exec),
            Self::FilesIn => Some(Capability::FilesIn),
            Self::FilesOut => Some(Capability::FilesOut),
            Self::List => Some(Capability::FilesList),
            Self::Delete => Some(Capability::FilesDelete),
            Self::Reclaim => Some(Capability::Reclaim),
            Self::StorageBase | Self::Reach | Self::FreshAcquire | Self::InstanceDisposal => None,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Suite {
    type Err = String;

    /// The suite of this spelling, or what is wrong and what to do.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied();
        known
            .clone()
            .find(|suite| suite.as_str() == text)
            .ok_or_else(|| {
                let known: Vec<&str> = known.map(Self::as_str).collect();
                format!("suite `{text}` is unknown; use one of {}", known.join(", "))
            })
    }
}
