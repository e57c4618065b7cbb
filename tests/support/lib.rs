//! What the tiers of tests share.

pub mod engine;
pub mod faulty;
pub mod files;
pub mod fuzzed;
