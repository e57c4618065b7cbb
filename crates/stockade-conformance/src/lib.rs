//! The suites that any backend can be run against.
//!
//! A backend declares what it can do; a [`Conformance`] run attacks each claim
//! and says in a [`Report`] what held. The rules of the harness:
//!
//! - every probe runs, whatever became of the ones before it, a panic
//!   included; what a probe raises is that probe's failure;
//! - a suite whose capability the backend does not declare is refused, and a
//!   run with a refused suite is not green: a green run that attacked nothing
//!   must not exist;
//! - inside a suite, a probe that needs another undeclared capability, or
//!   something that the guest at hand cannot do, is reported as skipped, and
//!   never as passed;
//! - a probe of a refusal demands exactly that refusal: any other error fails
//!   it as success does;
//! - everything that a run acquires has keys of a scope of its own, and is
//!   disposed of at its end, also after failures and when the run is dropped.
//!
//! What a probe needs from inside the sandbox (a link planted, a file looked
//! at) is done by a [`Subject`]: [`PosixSubject`] does it with `sh` and the
//! usual tools, [`MemorySubject`] for the backend in memory.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use stockade::memory::MemoryBackend;
//! use stockade::{Call, Image, SandboxSpec};
//! use stockade_conformance::{Conformance, MemorySubject, Suite};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), stockade::Error> {
//! let backend = MemorySubject::programs(MemoryBackend::new());
//! let subject = MemorySubject::new(backend.clone());
//! let spec = SandboxSpec::builder("conformance").image(Image::reference("any")).build()?;
//! let report = Conformance::new(Arc::new(backend), spec)
//!     .subject(Arc::new(subject))
//!     .suites([Suite::Reclaim])
//!     .run(&Call::with_timeout(Duration::from_secs(60)))
//!     .await;
//! report.assert_green();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod conformance;
mod memory;
mod posix;
mod probe;
mod report;
mod site;
mod subject;
mod suite;
mod suites;

pub use self::conformance::{Conformance, PROBE_TIMEOUT};
pub use self::memory::MemorySubject;
pub use self::posix::PosixSubject;
pub use self::report::{Outcome, ProbeReport, Report, SuiteReport};
pub use self::subject::{At, Doing, GuestAction, Seen, Subject, SubjectError};
pub use self::suite::Suite;
