//! Egress rules as values: their grammar and what they may hold.
//!
//! An [`EgressPolicy`] is a non-empty list of [`EgressRule`]s, each of which
//! names a host, the ports on it, and optionally the methods, the paths and
//! the credential that go with it. Everything here is pure, and a value that
//! exists is well formed: it was parsed, not filled in and checked later.
//!
//! What is **not** here yet: the decision whether a request may pass, and the
//! versioned wire form. Both come with the egress proxy, which is the first
//! to need them.

#![forbid(unsafe_code)]

mod host;
mod method;
mod path;
mod policy;
mod port;
mod rule;

pub use host::{Host, HostFault};
pub use method::{Method, MethodFault};
pub use path::{PathFault, PathPattern};
pub use policy::{EgressPolicy, PolicyError, PolicyErrors};
pub use port::{HTTPS, PortFault, Ports};
pub use rule::{Audience, AudienceFault, EgressRule, RuleError};
