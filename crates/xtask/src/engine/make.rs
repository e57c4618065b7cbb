//! The makes of engine that xtask provisions, each in a home of its own.

use std::fmt::{self, Display, Formatter};

use clap::ValueEnum;
use serde::Serialize;

use super::OLDEST_MAJOR;

/// What an engine is made of and how it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Make {
    /// The newest that the distribution has: the one that demo and tests run against
    New,
    /// The oldest that is bound
    Old,
    /// The newest, with ids of containers that are others than its own
    Userns,
    /// The newest, run by a user without privileges
    Rootless,
    /// The newest once more, whose daemon nobody else relies on
    Soak,
}

impl Make {
    /// Every one but the default, which is found or provisioned by what the machine has.
    pub(crate) const OTHERS: [Self; 4] = [Self::Old, Self::Userns, Self::Rootless, Self::Soak];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Old => "old",
            Self::Userns => "userns",
            Self::Rootless => "rootless",
            Self::Soak => "soak",
        }
    }

    /// The major versions that are of this make.
    pub(super) const fn accepts(self, major: u32) -> bool {
        match self {
            Self::Old => major == 20,
            _ => major >= OLDEST_MAJOR,
        }
    }

    /// Whether the user ids of its containers are others than the daemon's from the first start.
    #[cfg(target_os = "linux")]
    pub(super) const fn remaps(self) -> bool {
        matches!(self, Self::Userns)
    }
}

impl Display for Make {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
