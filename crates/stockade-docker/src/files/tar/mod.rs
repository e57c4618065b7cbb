//! The tar plane: copies of tar streams while the sandbox is paused.
//!
//! What decides is what the engine shows while nobody in the sandbox can
//! change it; what the guest says before is a courtesy to the caller, and
//! helps to plan.

mod aftermath;
mod check;
mod plan;
mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;

use docker_driver::{CallError, CallErrorKind};
use stockade::{Error, ErrorKind, Operation, Phase};

use crate::engine::lift_call;
use crate::files::Files;
use check::Rights;

impl Files {
    /// Who the guest is, as it was planned and verified.
    fn rights(&self) -> Rights {
        let (uid, gid) = self.session.owner();
        Rights { uid, gid }
    }
}

/// Whether the guest could not be asked, or was not let answer: what it would
/// have said is a courtesy only.
fn says_nothing(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::LimitExceeded | ErrorKind::Unavailable
    )
}

/// What docker says of a copy, as an error of the operation.
fn copy_failed(operation: Operation, error: CallError) -> Error {
    match error.kind() {
        CallErrorKind::HoldEnded => Error::new(ErrorKind::Unavailable, operation)
            .message(
                "the copy took longer than a sandbox may be paused, or what kept it paused was \
                 ended; move less at once, or use the guest plane",
            )
            .phase(Phase::Transfer)
            .source(error)
            .build(),
        _ => lift_call(operation, Phase::Transfer, error),
    }
}

/// An engine that does not speak tar as it should.
fn strange(operation: Operation, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, operation)
        .message(format!(
            "the engine sent a copy that cannot be read: {what}"
        ))
        .phase(Phase::Transfer)
        .build()
}
