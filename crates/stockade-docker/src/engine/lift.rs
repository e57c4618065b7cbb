//! From the driver's errors to the contract's. The one place where the two
//! vocabularies meet.

use docker_driver::{Aftermath, BindError, CallError, CallErrorKind, Undo};
use stockade::error::{LeftBehindKind, Removal};
use stockade::vocabulary::DisposalCode;
use stockade::{Error, ErrorKind, LeftBehind, Operation, Phase, Refusal, Retry};

/// Why no engine was bound. The driver's sentence says what to do.
pub(super) fn bind(error: BindError) -> Error {
    let refusal = match &error {
        BindError::TooOld { engine, needed, .. } => Some(Refusal::EngineTooOld {
            found: engine.clone(),
            needed: needed.to_string(),
            for_what: "any sandbox".to_owned(),
        }),
        _ => None,
    };
    if let Some(refusal) = refusal {
        return Error::refused(Operation::Bind, refusal);
    }
    let retry = match &error {
        BindError::NoDaemon { .. } | BindError::Call(_) => Retry::Later,
        _ => Retry::Never,
    };
    let detail = match &error {
        BindError::Call(call)
        | BindError::NoDaemon {
            source: Some(call), ..
        } => call.detail().to_owned(),
        _ => String::new(),
    };
    Error::new(ErrorKind::Unavailable, Operation::Bind)
        .message(error.to_string())
        .phase(Phase::Bind)
        .retry(retry)
        .detail(detail)
        .source(error)
        .build()
}

/// A docker command that did not answer.
pub(crate) fn call(operation: Operation, phase: Phase, error: CallError) -> Error {
    let mut builder = Error::new(kind(operation, error.kind()), operation)
        .message(error.to_string())
        .phase(phase)
        .detail(error.detail());
    if let Some(left) = left_behind(error.aftermath()) {
        builder = builder.left_behind(left);
    }
    builder.source(error).build()
}

/// A sandbox that is of no use any more.
pub(crate) fn lost(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::Lost, Operation::Exec)
        .message(format!("sandbox {name} is gone: {why}; acquire it again"))
        .phase(Phase::Channel)
        .build()
}

/// Why a removal failed, in the contract's five words.
pub(crate) fn disposal_code(error: &Error) -> DisposalCode {
    match error.kind() {
        ErrorKind::Unavailable => DisposalCode::Unreachable,
        ErrorKind::TimedOut | ErrorKind::Cancelled => DisposalCode::Timeout,
        ErrorKind::Refused | ErrorKind::Conflict => DisposalCode::Refused,
        _ => DisposalCode::Unknown,
    }
}

fn kind(operation: Operation, kind: CallErrorKind) -> ErrorKind {
    let gone = matches!(
        kind,
        CallErrorKind::NoSuchContainer | CallErrorKind::NotRunning
    );
    // Whoever makes or removes a sandbox may find none; whoever uses one has
    // lost it.
    let looks_for_one = matches!(
        operation,
        Operation::Acquire | Operation::Dispose | Operation::Reap
    );
    if gone && !looks_for_one {
        return ErrorKind::Lost;
    }
    match kind {
        CallErrorKind::NameConflict => ErrorKind::Conflict,
        CallErrorKind::NoSuchContainer
        | CallErrorKind::NoSuchVolume
        | CallErrorKind::NoSuchImage
        | CallErrorKind::NotInRegistry => ErrorKind::NotFound,
        CallErrorKind::DiskFull | CallErrorKind::OutputTooLarge => ErrorKind::LimitExceeded,
        CallErrorKind::ArgumentsTooLong => ErrorKind::InvalidRequest,
        CallErrorKind::DeadlinePassed => ErrorKind::TimedOut,
        CallErrorKind::Cancelled => ErrorKind::Cancelled,
        CallErrorKind::UnexpectedAnswer | CallErrorKind::OptionUnknown => ErrorKind::Internal,
        _ => ErrorKind::Unavailable,
    }
}

/// A command that may still do its work, and would not be undone, leaves
/// nothing of ours.
fn left_behind(aftermath: &Aftermath) -> Option<LeftBehind> {
    let (undo, name, removal) = match aftermath {
        Aftermath::Pending(undo) => (undo, undo.to_string(), Removal::Scheduled),
        Aftermath::Left { undo, why } => (undo, format!("{undo} ({why})"), Removal::ByReap),
        _ => return None,
    };
    let kind = match undo {
        Undo::Nothing => return None,
        Undo::RemoveMarkedVolume(..) => LeftBehindKind::Volume,
        _ => LeftBehindKind::Container,
    };
    Some(LeftBehind::new(kind, name, removal))
}
