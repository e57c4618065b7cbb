//! Tests against a real engine.
