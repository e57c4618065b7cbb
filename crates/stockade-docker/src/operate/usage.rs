//! What everything of ours takes of the engine's disk.

use stockade::{Call, Operation, Result};

use super::stock::{Stock, Thing};
use crate::backend::DockerBackend;

/// What an owner's things, and the runtime volumes that all owners share, take
/// of the engine's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Sandboxes: what is written in their own roots. Work directories are
    /// counted apart.
    pub sandboxes: Amount,
    /// Work directories: on disk, or in memory, which takes no disk.
    pub work_dirs: Amount,
    /// Images that were built from directories. Layers that they share with
    /// other images are not counted.
    pub images: Amount,
    /// Containers of a moment (looks into images, fills of volumes, holders of
    /// work directories), of which a host that died can leave some.
    pub leftovers: Amount,
    /// Volumes with the guest runtime, of every version and for all owners.
    pub runtimes: Amount,
}

/// How many of one sort there are, and what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of them that [`DockerBackend::prune`] would free by default.
    pub freeable: u64,
}

impl Usage {
    /// All of it together.
    #[must_use]
    pub fn total(&self) -> Amount {
        let all = [
            self.sandboxes,
            self.work_dirs,
            self.images,
            self.leftovers,
            self.runtimes,
        ];
        all.into_iter().fold(Amount::default(), |sum, one| Amount {
            count: sum.count.saturating_add(one.count),
            bytes: sum.bytes.saturating_add(one.bytes),
            freeable: sum.freeable.saturating_add(one.freeable),
        })
    }
}

impl DockerBackend {
    /// What this owner's things take of the engine's disk: some ten docker
    /// commands. A large engine takes seconds to add it up, and prints three
    /// or four digits of each size.
    ///
    /// # Errors
    ///
    /// The engine does not answer, or the call is over.
    ///
    /// Cancel safe: nothing is changed.
    pub async fn usage(&self, call: &Call) -> Result<Usage> {
        let stock = Stock::take(&self.inner, call, Operation::Inspect).await?;
        let freeable: Vec<&Thing> = stock.idle().filter(|thing| !thing.is_current).collect();
        let amount = |things: &[Thing]| Amount {
            count: things.len() as u64,
            bytes: bytes(things.iter()),
            freeable: bytes(things.iter().filter(|thing| freeable.contains(thing))),
        };
        Ok(Usage {
            sandboxes: amount(&stock.sandboxes),
            work_dirs: amount(&stock.work_dirs),
            images: amount(&stock.images),
            leftovers: amount(&stock.leftovers),
            runtimes: amount(&stock.runtimes),
        })
    }
}

fn bytes<'a>(things: impl Iterator<Item = &'a Thing>) -> u64 {
    let bytes = things.filter_map(|thing| thing.bytes);
    bytes.fold(0, u64::saturating_add)
}
