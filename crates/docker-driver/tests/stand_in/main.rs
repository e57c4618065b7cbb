//! The driver against a docker client that does everything wrong.

#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot unwrap has failed it"
)]

mod binding;
mod building;
mod copies;
mod each_verb;
mod environment;
mod follow_ups;
mod guard;
mod holds;
mod many;
mod pulling;
mod queue;
mod streams;
mod support;
mod undoing;
mod verbs;
