//! What of an owner's things nobody uses, and what it takes. Pure, but for the
//! look at the engine.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use docker_driver::EngineUsage;
use stockade::{Call, Operation, Result};

use super::PrunedKind;
use crate::backend::Inner;
use crate::engine::Inventory;
use crate::names::{Role, label};
use crate::reap::MAKING;

/// What stands on an engine, with what it takes.
pub(super) struct Stock {
    now: SystemTime,
    pub(super) sandboxes: Vec<Thing>,
    pub(super) leftovers: Vec<Thing>,
    pub(super) work_dirs: Vec<Thing>,
    pub(super) images: Vec<Thing>,
    pub(super) runtimes: Vec<Thing>,
}

/// One thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) what: PrunedKind,
    /// What the engine removes it by.
    pub(super) id: String,
    /// What people know it by.
    pub(super) name: String,
    pub(super) bytes: Option<u64>,
    created: Option<SystemTime>,
    /// Whether a container has it.
    pub(super) is_used: bool,
    /// Whether a next sandbox will want it.
    pub(super) is_current: bool,
}

impl Stock {
    /// Takes stock, whole or not at all: some ten docker commands, one of
    /// which has the engine walk its files.
    pub(super) async fn take(inner: &Inner, call: &Call, operation: Operation) -> Result<Self> {
        let engine = &inner.engine;
        let (inventory, disk) = tokio::try_join!(
            engine.inventory(call, operation),
            engine.disk_usage(call, operation),
        )?;
        Ok(Self::of(inventory, &Sizes::of(disk), |volume| {
            inner.runtime.is_of_this_build(volume)
        }))
    }

    fn of(inventory: Inventory, sizes: &Sizes, is_current: impl Fn(&str) -> bool) -> Self {
        let (mut sandboxes, mut leftovers) = (Vec::new(), Vec::new());
        for owned in inventory.containers {
            let thing = Thing {
                what: PrunedKind::Leftover,
                bytes: sizes
                    .containers
                    .get(owned.facts.id.as_str())
                    .copied()
                    .flatten(),
                id: owned.facts.id.to_string(),
                name: owned.facts.name,
                created: owned.facts.created,
                is_used: owned.role == Role::Guest,
                is_current: false,
            };
            match owned.role {
                Role::Guest => sandboxes.push(thing),
                _ => leftovers.push(thing),
            }
        }
        let work_dirs = inventory.work_dirs.into_iter().map(|volume| {
            let (bytes, is_used) = sizes.volume(&volume.name);
            let is_in_memory = volume
                .options
                .get("type")
                .is_some_and(|kind| kind == "tmpfs");
            Thing {
                what: PrunedKind::WorkDir,
                id: volume.name.clone(),
                name: volume.name,
                bytes: if is_in_memory { Some(0) } else { bytes },
                created: volume.created,
                is_used,
                is_current: false,
            }
        });
        let runtimes = inventory.runtimes.into_iter().map(|name| {
            let (bytes, is_used) = sizes.volume(&name);
            Thing {
                what: PrunedKind::Runtime,
                is_current: is_current(&name),
                id: name.clone(),
                name,
                bytes,
                created: None,
                is_used,
            }
        });
        Self {
            now: inventory.now,
            sandboxes,
            leftovers,
            work_dirs: work_dirs.collect(),
            images: images(inventory.images, sizes),
            runtimes: runtimes.collect(),
        }
    }

    /// What nobody uses and nobody is making, in the order in which it can be
    /// removed.
    pub(super) fn idle(&self) -> impl Iterator<Item = &Thing> {
        let leftovers = self.leftovers.iter().chain(&self.work_dirs);
        let leftovers = leftovers.filter(|thing| self.age(thing) >= MAKING);
        let lasting = self.images.iter().chain(&self.runtimes);
        leftovers.chain(lasting).filter(|thing| !thing.is_used)
    }

    /// Zero for what claims to be made in the future, or does not tell.
    fn age(&self, thing: &Thing) -> Duration {
        let since = thing
            .created
            .map(|created| self.now.duration_since(created));
        since.and_then(Result::ok).unwrap_or_default()
    }
}

/// The newest image of each directory is the one that is wanted next.
fn images(built: Vec<docker_driver::ImageFacts>, sizes: &Sizes) -> Vec<Thing> {
    let mut newest: BTreeMap<String, (Option<SystemTime>, String)> = BTreeMap::new();
    for image in &built {
        let directory = image.labels.get(label::DIRECTORY).cloned();
        let one = (image.created, image.id.clone());
        let best = newest.entry(directory.unwrap_or_default()).or_default();
        if one > *best {
            *best = one;
        }
    }
    let is_newest = |id: &str| newest.values().any(|(_, newest)| newest == id);
    let things = built.into_iter().map(|image| {
        let known = sizes.images.get(&image.id).copied();
        Thing {
            what: PrunedKind::Image,
            is_current: is_newest(&image.id),
            name: image.tags.first().unwrap_or(&image.id).clone(),
            bytes: known.and_then(|(bytes, _)| bytes),
            is_used: known.is_some_and(|(_, is_used)| is_used),
            created: image.created,
            id: image.id,
        }
    });
    things.collect()
}

/// What the engine says that things take, and whether a container has them.
/// What it does not say is left to it: it removes nothing that is in use.
#[derive(Default)]
struct Sizes {
    containers: BTreeMap<String, Option<u64>>,
    volumes: BTreeMap<String, (Option<u64>, bool)>,
    images: BTreeMap<String, (Option<u64>, bool)>,
}

impl Sizes {
    fn of(usage: EngineUsage) -> Self {
        let is_used = |count: Option<u64>| count.is_some_and(|count| count > 0);
        let containers = usage.containers.into_iter();
        let volumes = usage.volumes.into_iter();
        let images = usage.images.into_iter();
        Self {
            containers: containers
                .map(|one| (one.id.to_string(), one.written))
                .collect(),
            volumes: volumes
                .map(|one| (one.name, (one.size, is_used(one.links))))
                .collect(),
            images: images
                .map(|one| (one.id.to_string(), (one.unique, is_used(one.containers))))
                .collect(),
        }
    }

    fn volume(&self, name: &str) -> (Option<u64>, bool) {
        self.volumes.get(name).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn thing(what: PrunedKind, name: &str, age: Option<Duration>, is_used: bool) -> Thing {
        Thing {
            what,
            id: name.to_owned(),
            name: name.to_owned(),
            bytes: Some(1),
            created: age.map(|age| NOW + Duration::from_secs(1_000_000) - age),
            is_used,
            is_current: false,
        }
    }

    #[test]
    fn what_is_idle_is_used_by_nobody_and_not_being_made() {
        use PrunedKind::{Image, Leftover, Runtime, WorkDir};
        let (young, old) = (Some(Duration::ZERO), Some(MAKING));
        let stock = Stock {
            now: NOW + Duration::from_secs(1_000_000),
            sandboxes: vec![thing(Leftover, "sandbox", old, true)],
            leftovers: vec![
                thing(Leftover, "made", young, false),
                thing(Leftover, "left", old, false),
                thing(Leftover, "ageless", None, false),
            ],
            work_dirs: vec![
                thing(WorkDir, "orphan", old, false),
                thing(WorkDir, "held", old, true),
                thing(WorkDir, "new", young, false),
            ],
            images: vec![
                thing(Image, "unused", young, false),
                thing(Image, "used", old, true),
            ],
            runtimes: vec![
                thing(Runtime, "empty", None, false),
                thing(Runtime, "mounted", None, true),
            ],
        };
        let idle: Vec<_> = stock.idle().map(|thing| thing.name.as_str()).collect();
        assert_eq!(idle, ["left", "orphan", "unused", "empty"]);
    }
}
