//! The contract of a sandbox for untrusted code: keys, specs, refusals, backends and their handles.

#![forbid(unsafe_code)]

pub mod admit;
pub mod backend;
pub mod call;
pub mod declarations;
pub mod disposal;
pub mod error;
pub mod exec;
mod fault;
pub mod instance;
pub mod key;
pub mod limits;
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
pub use self::instance::{Instance, Sandbox};
pub use self::key::{BackendName, CallId, InstanceId, InvalidName, Kind, SandboxKey};
pub use self::limits::{BothTransferLimits, ResourceLimits, TransferLimits};
pub use self::policy::{EgressPolicy, EgressRule};
pub use self::refusal::Refusal;
pub use self::spec::{Egress, Image, SandboxSpec, SpecBuilder};
pub use self::vocabulary::{Capabilities, Capability, Feature, Isolation, IsolationScope};
pub use self::words::{UnknownWord, Word, Words};
