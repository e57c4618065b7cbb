//! What the tiers of tests share.

pub mod fuzzed;
