//! Removing what nobody uses any more.

use std::fmt;

use futures_util::future::join_all;
use stockade::disposal::RemovalFailure;
use stockade::{Call, Operation, Phase, Result};

use super::stock::{Stock, Thing};
use crate::backend::{DockerBackend, Inner};
use crate::dispose::failure;

/// What to prune. The default leaves what a next sandbox will need: the
/// runtime volume of this build, and the newest image of each build directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PruneFilter {
    /// Also the runtime volumes of this build, unless a container uses them.
    /// The next acquire fills one again.
    pub all_runtimes: bool,
    /// Also the newest image of each build directory, unless a container uses
    /// it. The next acquire builds it again.
    pub all_images: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What pruning did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use = "pruning may have failures"]
pub struct Pruned {
    /// What is gone, or would be.
    pub items: Vec<PrunedItem>,
    /// What could not be removed.
    pub failures: Vec<RemovalFailure>,
    /// Whether nothing was touched, since only the question was asked.
    pub dry_run: bool,
}

/// One thing that was pruned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunedItem {
    /// What it was.
    pub what: PrunedKind,
    /// Its name or id.
    pub name: String,
    /// What it took of the engine's disk, in bytes; `None` when the engine
    /// does not say.
    pub bytes: Option<u64>,
}

/// The sorts of things that are pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PrunedKind {
    /// A container of a moment that a dead host left.
    Leftover,
    /// A work directory whose sandbox is gone.
    WorkDir,
    /// An image that was built from a directory.
    Image,
    /// A volume with a guest runtime.
    Runtime,
}

impl PruneFilter {
    /// Also the runtime volumes of this build.
    #[must_use]
    pub fn all_runtimes(mut self) -> Self {
        self.all_runtimes = true;
        self
    }

    /// Also the newest image of each build directory.
    #[must_use]
    pub fn all_images(mut self) -> Self {
        self.all_images = true;
        self
    }

    /// Everything that no container uses.
    #[must_use]
    pub fn all(self) -> Self {
        self.all_runtimes().all_images()
    }

    /// Only say what would go.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

impl Pruned {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    /// Bytes that were freed, or would be, as far as the engine says.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = self.items.iter().filter_map(|item| item.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

impl PrunedKind {
    /// One lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leftover => "leftover",
            Self::WorkDir => "work_dir",
            Self::Image => "image",
            Self::Runtime => "runtime",
        }
    }
}

impl fmt::Display for PrunedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl DockerBackend {
    /// Removes what nobody uses: runtime volumes of other builds, built images
    /// that are not the newest of their directory, work directories whose
    /// sandbox is gone, and containers of a moment that a dead host left.
    ///
    /// Nothing that a container uses goes, whoever's it is, and nothing of
    /// another owner's. The guest runtime's volumes are everybody's, so that
    /// an unused one goes whoever filled it: an acquire that finds it gone
    /// fills it again.
    ///
    /// An inventory that cannot be read whole removes nothing. Some ten docker
    /// commands, and one for each removal.
    ///
    /// An image that was built again under the same name, by
    /// [`PullPolicy::Always`](stockade::spec::PullPolicy::Always) on a base that
    /// had changed, leaves its predecessor without a name. It cannot be told
    /// from an image of somebody else's any more; `docker image prune` removes
    /// it.
    ///
    /// # Errors
    ///
    /// The inventory cannot be had, or the call is over; a removal that fails
    /// is in the answer.
    ///
    /// Cancel safety: what was asked to be removed goes all the same.
    pub async fn prune(&self, call: &Call, filter: &PruneFilter) -> Result<Pruned> {
        let inner = &self.inner;
        let stock = Stock::take(inner, call, Operation::Prune).await?;
        let picked = stock.idle().filter(|thing| filter.picks(thing)).cloned();
        let mut pruned = Pruned {
            dry_run: filter.dry_run,
            ..Pruned::default()
        };
        if filter.dry_run {
            pruned.items = picked.map(PrunedItem::from).collect();
            return Ok(pruned);
        }
        let removed = remove(inner, call, picked.collect()).await;
        pruned.items = removed.items;
        pruned.failures = removed.failures;
        Ok(pruned)
    }
}

/// What a removal of many things did.
#[derive(Default)]
pub(super) struct Gone {
    pub(super) items: Vec<PrunedItem>,
    /// What something uses.
    pub(super) kept: Vec<Thing>,
    pub(super) failures: Vec<RemovalFailure>,
}

/// Removes things, those of one sort at once and in the order of sorts.
pub(super) async fn remove(inner: &Inner, call: &Call, things: Vec<Thing>) -> Gone {
    let _phase = call.enter(Phase::Dispose);
    let mut gone = Gone::default();
    for what in [
        PrunedKind::Leftover,
        PrunedKind::WorkDir,
        PrunedKind::Image,
        PrunedKind::Runtime,
    ] {
        let ofs = things.iter().filter(|thing| thing.what == what).cloned();
        let removals = ofs.map(async |thing| {
            let removed = remove_one(inner, call, &thing).await;
            (thing, removed)
        });
        for (thing, removed) in join_all(removals).await {
            match removed {
                Ok(true) => gone.items.push(thing.into()),
                Ok(false) => gone.kept.push(thing),
                Err(error) => gone.failures.push(failure(&thing.name, &error)),
            }
        }
    }
    gone
}

/// False when something uses it.
async fn remove_one(inner: &Inner, call: &Call, thing: &Thing) -> Result<bool> {
    let engine = &inner.engine;
    match thing.what {
        PrunedKind::Leftover => engine
            .remove(call, Operation::Prune, &thing.id)
            .await
            .map(|()| true),
        PrunedKind::WorkDir | PrunedKind::Runtime => {
            engine
                .remove_volume(call, Operation::Prune, &thing.id)
                .await
        }
        PrunedKind::Image => {
            let removed = engine.remove_image(call, Operation::Prune, &thing.id).await;
            inner.images.forget(&thing.id);
            removed
        }
    }
}

impl PruneFilter {
    fn picks(&self, thing: &Thing) -> bool {
        match thing.what {
            PrunedKind::Runtime => self.all_runtimes || !thing.is_current,
            PrunedKind::Image => self.all_images || !thing.is_current,
            PrunedKind::Leftover | PrunedKind::WorkDir => true,
        }
    }
}

impl From<Thing> for PrunedItem {
    fn from(thing: Thing) -> Self {
        Self {
            what: thing.what,
            name: thing.name,
            bytes: thing.bytes,
        }
    }
}
