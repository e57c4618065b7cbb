//! The program as a person and a script use it, on a real engine.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests start the program itself"
)]

mod conformance;
mod crash;
mod files;
mod interrupt;
mod named;
mod operate;
mod run;
mod tool;
