//! The contract of a sandbox for untrusted code: keys, specs, refusals,
//! backends and their handles.
//!
//! A caller says what a sandbox must be ([`SandboxSpec`]) and whose it is
//! ([`SandboxKey`]); a [`Backend`] serves exactly that or refuses with a typed
//! reason ([`Refusal`]) before anything exists, and answers with a
//! [`Sandbox`], in which commands run ([`ExecRequest`], [`ExecOutcome`],
//! [`Process`]) and files are written and read ([`FileWrite`],
//! [`ReadRequest`]). Everything happens under a [`Call`], which has one deadline.
//!
//! What a guest's program does is a value ([`ExecStatus`]); an [`Error`] means
//! that the sandbox could not do its job, and says whether trying again can
//! help and what, if anything, was left behind.
//!
//! There is no docker, no process and no network in this crate. Backends
//! implement [`Backend`] and [`Instance`]; [`memory`] has one for tests:
//!
//! ```
//! use std::time::Duration;
//! use stockade::memory::MemoryBackend;
//! use stockade::{Backend, Call, ExecRequest, Image, SandboxKey, SandboxSpec, Stdin};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), stockade::Error> {
//! let backend = MemoryBackend::new().with_program("shout", async |mut guest| {
//!     let text = guest.read_to_end().await;
//!     guest.print(text.to_ascii_uppercase()).await;
//!     0
//! });
//! let spec = SandboxSpec::builder("example").image(Image::reference("any")).build()?;
//! let key = SandboxKey::new("tenant", "conversation", "agent");
//!
//! let call = Call::with_timeout(Duration::from_secs(30));
//! let sandbox = backend.acquire(&call, &key, &spec).await?;
//! assert!(sandbox.freshly_created());
//!
//! let request = ExecRequest::argv(["shout"]).stdin(Stdin::bytes("hello")).build()?;
//! let outcome = sandbox.exec(&call, request).await?;
//! assert!(outcome.success());
//! assert_eq!(outcome.stdout_text(), "HELLO");
//! # Ok(())
//! # }
//! ```
//!
//! The types of other crates that are part of this API: `bytes::Bytes`,
//! tokio's `AsyncRead` and `AsyncWrite`, and `Stream` of `futures-core`.

#![forbid(unsafe_code)]

pub mod admit;
pub mod backend;
pub mod call;
pub mod declarations;
pub mod disposal;
mod encoded;
pub mod error;
pub mod exec;
mod fault;
pub mod files;
pub mod instance;
pub mod key;
pub mod limits;
pub mod memory;
pub mod refusal;
pub mod spec;
mod text;
pub mod vocabulary;
mod words;

pub use stockade_policy as policy;

pub use self::admit::{admit, admit_key};
pub use self::backend::{Backend, BoxFuture};
pub use self::call::{Call, Interruption, Phase, PhaseTime};
pub use self::declarations::Declarations;
pub use self::disposal::{ReapFilter, Reaped, Removed, Which};
pub use self::error::{Error, ErrorKind, LeftBehind, Operation, Result, Retry};
pub use self::exec::{ExecOutcome, ExecRequest, ExecStatus, Process, Stdin};
pub use self::fault::{Fault, SpecErrors};
pub use self::files::{
    Content, FileRead, FileStat, FileWrite, GuestPath, ListRequest, ReadRequest,
};
pub use self::instance::{Instance, Sandbox};
pub use self::key::{BackendName, CallId, InstanceId, InvalidName, Kind, SandboxKey};
pub use self::limits::{BothTransferLimits, ResourceLimits, TransferLimits};
pub use self::policy::{EgressPolicy, EgressRule};
pub use self::refusal::{FileRefusal, Refusal};
pub use self::spec::{Egress, Image, SandboxSpec, SpecBuilder};
pub use self::vocabulary::{Capabilities, Capability, Feature, Isolation, IsolationScope};
pub use self::words::{UnknownWord, Word, Words};
