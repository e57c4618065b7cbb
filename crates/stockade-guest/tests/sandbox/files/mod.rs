//! File operations in a sandbox.

mod faults;
mod races;
mod removal;
mod transfer;
