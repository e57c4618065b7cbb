//! Taking away everything of an owner.

use stockade::disposal::RemovalFailure;
use stockade::vocabulary::DisposalCode;
use stockade::{Call, Operation, Result};

use super::stock::{Stock, Thing};
use super::{PrunedItem, PrunedKind, prune};
use crate::backend::{DockerBackend, Inner};
use crate::dispose;
use crate::names::Role;

/// What tearing down did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use = "tearing down may have failures"]
pub struct TornDown {
    /// Sandboxes that were removed.
    pub sandboxes: u64,
    /// Everything else that was removed.
    pub items: Vec<PrunedItem>,
    /// What could not be removed.
    pub failures: Vec<RemovalFailure>,
}

impl TornDown {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }
}

impl DockerBackend {
    /// Removes everything of this owner: its sandboxes, in use or not, with
    /// their work directories, what dead hosts left, images that were built
    /// from directories, and runtime volumes that no container uses.
    ///
    /// Pulled images stay: they have no owner.
    ///
    /// # Errors
    ///
    /// The inventory cannot be had, or the call is over; nothing was removed
    /// then. A removal that fails is in the answer.
    ///
    /// Cancel safety: what was asked to be removed goes all the same.
    pub async fn tear_down(&self, call: &Call) -> Result<TornDown> {
        let inner = &self.inner;
        let engine = &inner.engine;
        // Looked at before anything is removed, and once more when nothing
        // holds it: a sandbox takes its volume along.
        Stock::take(inner, call, Operation::TearDown).await?;
        let found = engine.find(call, &[]).await?;
        let described = engine.describe(call, found).await?;
        let targets = described
            .into_iter()
            .filter_map(|described| dispose::target(engine.owner(), described));
        let (guests, parts): (Vec<_>, Vec<_>) =
            targets.partition(|target| target.role == Role::Guest);
        let mut torn_down = TornDown::default();
        let removed = dispose::remove(inner, call, guests).await;
        torn_down.sandboxes = removed.count;
        torn_down.failures = removed.failures;
        for part in parts {
            let name = part.id.clone();
            let removed = dispose::remove(inner, call, vec![part]).await;
            if removed.is_clean() {
                torn_down.items.push(PrunedItem {
                    what: PrunedKind::Leftover,
                    name,
                    bytes: None,
                });
            }
            torn_down.failures.extend(removed.failures);
        }
        inner.images.forget_all();
        match Stock::take(inner, call, Operation::TearDown).await {
            Ok(stock) => torn_down.remove_rest(inner, call, stock).await,
            Err(error) => {
                let what = "the list of images and volumes";
                let failure = RemovalFailure::new(DisposalCode::Unlisted, what, error.to_string());
                torn_down.failures.push(failure);
            }
        }
        Ok(torn_down)
    }
}

impl TornDown {
    /// Removes what no container holds any more.
    async fn remove_rest(&mut self, inner: &Inner, call: &Call, stock: Stock) {
        let runtimes = stock.runtimes.into_iter().filter(|volume| !volume.is_used);
        let rest = stock.work_dirs.into_iter().chain(stock.images);
        let gone = prune::remove(inner, call, rest.chain(runtimes).collect()).await;
        self.items.extend(gone.items);
        self.failures.extend(gone.failures);
        let held = gone.kept.iter();
        self.failures.extend(held.filter_map(still_held));
    }
}

/// What is the owner's and stays, since something else holds it. A runtime
/// volume that somebody has begun to use is none.
fn still_held(thing: &Thing) -> Option<RemovalFailure> {
    let detail =
        "something that is not this owner's uses it: a container, another image, or a second name";
    (thing.what != PrunedKind::Runtime)
        .then(|| RemovalFailure::new(DisposalCode::Refused, &thing.name, detail))
}
