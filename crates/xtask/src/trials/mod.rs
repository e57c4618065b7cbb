//! Trials: what takes too long for a test and needs an engine: many hosts that race on one key,
//! and a soak under kills.
//!
//! The hosts are processes of `stockade-test-host` (see its source for what it can be told to do).
//!
//! | module | knows |
//! |---|---|
//! | `hosts` | how such processes are started, and how all of them are undone at the end |
//! | `events` | what they say |
//! | `verdict` | what must hold at the end of a trial |
//! | `race` | many hosts on one key |
//! | `soak` | many sandboxes under kills |

mod events;
mod hosts;
pub(crate) mod race;
#[cfg(target_os = "linux")]
pub(crate) mod soak;
mod verdict;
