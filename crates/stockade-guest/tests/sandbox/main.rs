//! The guest runtime as PID 1 of real namespaces, driven by a real relay.
//!
//! Needs root and util-linux (`unshare`, `nsenter`, `setpriv`, `prlimit`); elsewhere each
//! test says that it was skipped and why. The programs in the sandbox are the
//! machine's own, run as a user that nobody else is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod exec;
mod files;
mod flow;
mod hostile;
mod input;
mod inquiries;
mod lifetime;
mod oneshot;
mod retiring;
mod start;
mod support;
mod terminal;
mod trees;
