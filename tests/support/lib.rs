//! What the tiers of tests share.
