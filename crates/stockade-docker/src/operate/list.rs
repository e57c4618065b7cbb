//! The sandboxes of an engine.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use stockade::{Call, InstanceId, Kind, Result, SandboxKey};

use crate::backend::DockerBackend;

/// Which sandboxes to list; every condition that is set must hold. The default
/// is every sandbox of the backend's own owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SandboxFilter {
    /// Also sandboxes of other owners on the same engine.
    pub any_owner: bool,
    /// Of this scope.
    pub scope: Option<String>,
    /// Of this thread.
    pub thread: Option<String>,
}

/// One sandbox, as the engine shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxInfo {
    /// The engine's full id.
    pub id: InstanceId,
    /// The container's name.
    pub name: String,
    /// The installation that it belongs to.
    pub owner: String,
    /// Its key, as it was acquired with.
    pub key: SandboxKey,
    /// Its kind.
    pub kind: Kind,
    /// What it is doing, as the engine sees it.
    pub state: SandboxState,
    /// When it was made, by the engine's clock; `None` when the engine's
    /// answer is no time.
    pub created: Option<SystemTime>,
    /// How long ago that was; `None` with it.
    pub age: Option<Duration>,
    /// How long ago it was started, if it runs.
    pub running_for: Option<Duration>,
    /// The id of its image, `sha256:…`.
    pub image_id: String,
    /// A name that the image has now; `None` when it has none, or is gone.
    pub image_name: Option<String>,
    /// The caller's own labels.
    pub labels: BTreeMap<String, String>,
    /// The newest protocol version that its guest runtime speaks; `None` when
    /// its labels do not say.
    pub protocol: Option<u32>,
    /// Digest of everything that defines it; `None` when its labels do not
    /// say.
    pub definition: Option<String>,
    /// The backend object that made it; `None` when its labels do not say.
    pub run: Option<String>,
}

/// What the engine says that a sandbox is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SandboxState {
    /// Made and never started: somebody is making it, or died doing so.
    Unstarted,
    /// Running.
    Running,
    /// Frozen, for instance while its files are copied.
    Paused,
    /// Ended, with its content kept: the next acquire starts it.
    Stopped,
    /// Being removed or restarted.
    Changing,
    /// Ended, and of no use.
    Lost,
}

impl SandboxFilter {
    /// Also sandboxes of other owners on the same engine.
    #[must_use]
    pub fn any_owner(mut self) -> Self {
        self.any_owner = true;
        self
    }

    /// Only those of this scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Only those of this thread.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }
}

impl SandboxState {
    /// One lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unstarted => "unstarted",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Changing => "changing",
            Self::Lost => "lost",
        }
    }

    /// Whether its processes exist, frozen or not.
    #[must_use]
    pub const fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl DockerBackend {
    /// The sandboxes that meet a filter, oldest first: four docker commands at
    /// most, however many there are, and one when there is none.
    ///
    /// Sandboxes of every version are listed; what the labels of an older one
    /// do not say is `None`. One that goes while it is looked at is left out.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or the call is over.
    ///
    /// Cancel safe: nothing is changed.
    pub async fn sandboxes(&self, call: &Call, filter: &SandboxFilter) -> Result<Vec<SandboxInfo>> {
        let _ = (call, filter);
        Err(super::unready())
    }
}
