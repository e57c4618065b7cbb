//! Every verb against a real engine.

#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot unwrap has failed it"
)]

mod bindings;
mod building;
mod containers;
mod engine;
mod holders;
mod holds;
mod images;
mod support;
mod undoing;
