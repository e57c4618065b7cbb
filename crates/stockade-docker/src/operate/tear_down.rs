//! Taking away everything of an owner.

use stockade::disposal::RemovalFailure;
use stockade::{Call, Result};

use super::PrunedItem;
use crate::backend::DockerBackend;

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
        let _ = call;
        Err(super::unready())
    }
}
