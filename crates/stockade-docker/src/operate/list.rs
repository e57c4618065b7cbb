//! The sandboxes of an engine.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use docker_driver::{ContainerFacts, ImageRow};
use stockade::{Call, InstanceId, Kind, Operation, Phase, Result, SandboxKey};

use crate::backend::DockerBackend;
use crate::names::{self, Role, label};

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
    /// A name that the image has now, of several any; `None` when it has none,
    /// or is gone.
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
    /// The sandboxes that meet a filter, oldest first: one docker command when
    /// there is none, and otherwise three, and one more for each hundred.
    ///
    /// Sandboxes of every version are listed; what the labels of an older one
    /// do not say is `None`. One that goes while it is looked at is left out;
    /// of a list of every owner's also one about which the engine says nothing
    /// for 10 s, so that nobody else's trouble is in the way.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or the call is over.
    ///
    /// Cancel safe: nothing is changed.
    pub async fn sandboxes(&self, call: &Call, filter: &SandboxFilter) -> Result<Vec<SandboxInfo>> {
        let _phase = call.enter(Phase::Observe);
        let engine = self.engine();
        let owner = (!filter.any_owner).then(|| engine.owner());
        let containers =
            engine.containers(call, Operation::Inspect, owner, names::may_be_a_sandbox);
        let containers = containers.await?;
        let mut found: Vec<_> = containers
            .into_iter()
            .filter_map(Sandbox::of)
            .filter(|sandbox| filter.picks(&sandbox.key))
            .collect();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let (now, images) = tokio::try_join!(
            engine.now(call, Operation::Inspect),
            engine.images(call, Operation::Inspect),
        )?;
        found.sort_by(|one, other| one.age_and_name().cmp(&other.age_and_name()));
        let shown = found
            .into_iter()
            .filter_map(|sandbox| sandbox.shown(now, &images));
        Ok(shown.collect())
    }
}

/// A container that is a sandbox, by the name that its labels lead to.
struct Sandbox {
    owner: String,
    key: SandboxKey,
    kind: Kind,
    facts: ContainerFacts,
}

impl Sandbox {
    fn of(facts: ContainerFacts) -> Option<Self> {
        let label = |key: &str| facts.labels.get(key);
        let owner = label(label::OWNER)?.clone();
        let key = names::key_of(label(label::KEY)?)?;
        let kind = label(label::KIND)?.parse().ok()?;
        let role = names::role(&owner, &facts.name, &facts.labels);
        (role == Some(Role::Guest)).then_some(Self {
            owner,
            key,
            kind,
            facts,
        })
    }

    fn age_and_name(&self) -> (Option<SystemTime>, &str) {
        (self.facts.created, &self.facts.name)
    }

    /// As it is told; an id that the contract cannot take is none of docker's.
    fn shown(self, now: SystemTime, images: &[ImageRow]) -> Option<SandboxInfo> {
        let facts = self.facts;
        let since = |time: SystemTime| now.duration_since(time).unwrap_or_default();
        let label = |key: &str| facts.labels.get(key).cloned();
        let labels = facts.labels.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(label::CALLERS)?;
            Some((key.to_owned(), value.clone()))
        });
        let image = images.iter().find(|row| row.id.as_str() == facts.image);
        let state = SandboxState::of(&facts);
        Some(SandboxInfo {
            id: InstanceId::new(facts.id.as_str()).ok()?,
            owner: self.owner,
            key: self.key,
            kind: self.kind,
            state,
            created: facts.created,
            age: facts.created.map(since),
            running_for: facts
                .state
                .started_at
                .filter(|_| state.is_alive())
                .map(since),
            image_name: image.and_then(|row| row.tags.first().cloned()),
            labels: labels.collect(),
            protocol: label(label::PROTOCOL).and_then(|text| text.parse().ok()),
            definition: label(label::DIGEST),
            run: label(label::RUN),
            image_id: facts.image,
            name: facts.name,
        })
    }
}

impl SandboxFilter {
    fn picks(&self, key: &SandboxKey) -> bool {
        let wanted = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        wanted(&self.scope, &key.scope) && wanted(&self.thread, &key.thread_id)
    }
}

impl SandboxState {
    fn of(facts: &ContainerFacts) -> Self {
        match facts.state.status.as_str() {
            "running" => Self::Running,
            "paused" => Self::Paused,
            "created" => Self::Unstarted,
            "removing" | "restarting" => Self::Changing,
            "exited" if !facts.remove_at_end => Self::Stopped,
            _ => Self::Lost,
        }
    }
}
