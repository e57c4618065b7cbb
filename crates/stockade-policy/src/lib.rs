//! Egress rules as values: their grammar and what they may hold.
