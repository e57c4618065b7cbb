//! What the tiers of tests share.

pub mod client;
pub mod engine;
pub mod faulty;
pub mod files;
pub mod frames;
pub mod fuzzed;
