//! What an operator asks of a backend: which sandboxes there are and what they
//! do, why one ended, what all of it takes, and what of it can go.
//!
//! Everything here is about what stands on the engine, whoever made it: this
//! process, another one of the same owner, or one that is dead. What belongs
//! to somebody else is neither shown nor touched; labels alone prove nothing,
//! since an image that was made of a sandbox hands them on, so a container
//! counts only when its name is the one that its labels lead to.
//!
//! All times are the engine's: how old something is does not depend on the
//! clock of the host that asks.

mod activity;
mod death;
pub(crate) mod history;
mod list;
mod prune;
mod set_up;
mod stock;
mod tear_down;
mod usage;

pub use activity::{Activity, CommandActivity, DiskUse, Doing};
pub(crate) use history::death_of;
pub use history::{CommandEnd, Death, Event, Happening, History, HistoryOf};
pub use list::{SandboxFilter, SandboxInfo, SandboxState};
pub use prune::{PruneFilter, Pruned, PrunedItem, PrunedKind};
pub use set_up::{ImageOrigin, ImageReady, SetUp};
pub use tear_down::TornDown;
pub use usage::{Amount, Usage};
