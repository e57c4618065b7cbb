//! Docker's English texts, where text is all there is. The one place that
//! reads them.

use crate::error::CallErrorKind;
use crate::verb::{Exit, Output};

/// A text that means something, in lower case.
struct Phrase {
    /// All of these are in one line.
    parts: &'static [&'static str],
    kind: CallErrorKind,
}

const fn phrase(kind: CallErrorKind, parts: &'static [&'static str]) -> Phrase {
    Phrase { parts, kind }
}

/// In the order in which they are tried: what is said of the connection first,
/// and narrower texts before wider ones.
const PHRASES: &[Phrase] = &[
    phrase(
        CallErrorKind::PermissionDenied,
        &["permission denied while trying to connect"],
    ),
    phrase(
        CallErrorKind::DaemonUnreachable,
        &["cannot connect to the docker daemon"],
    ),
    phrase(
        CallErrorKind::DaemonUnreachable,
        &["failed to connect to the docker api"],
    ),
    phrase(CallErrorKind::ConnectionLost, &["error during connect"]),
    phrase(
        CallErrorKind::ConnectionLost,
        &["error waiting for container", "eof"],
    ),
    phrase(CallErrorKind::ConnectionLost, &["unexpected eof"]),
    phrase(
        CallErrorKind::NoSuchContext,
        &["context", "context not found"],
    ),
    phrase(CallErrorKind::OptionUnknown, &["unknown flag: "]),
    phrase(CallErrorKind::OptionUnknown, &["unknown command: "]),
    phrase(
        CallErrorKind::NameConflict,
        &["the container name", "is already in use by container"],
    ),
    phrase(
        CallErrorKind::PlatformMismatch,
        &["does not match the specified platform"],
    ),
    phrase(
        CallErrorKind::PlatformMismatch,
        &["does not provide the specified platform"],
    ),
    phrase(
        CallErrorKind::PlatformMismatch,
        &["no matching manifest for"],
    ),
    phrase(CallErrorKind::NoSuchImage, &["no such image"]),
    phrase(CallErrorKind::NotInRegistry, &["manifest", "not found"]),
    phrase(CallErrorKind::NotInRegistry, &["manifest unknown"]),
    phrase(CallErrorKind::NotInRegistry, &["pull access denied"]),
    phrase(CallErrorKind::RegistryDenied, &["unauthorized"]),
    phrase(
        CallErrorKind::RegistryDenied,
        &["no basic auth credentials"],
    ),
    phrase(
        CallErrorKind::RegistryDenied,
        &["error getting credentials"],
    ),
    phrase(CallErrorKind::DiskFull, &["no space left on device"]),
    phrase(
        CallErrorKind::RegistryUnreachable,
        &["get \"http", "dial tcp"],
    ),
    phrase(
        CallErrorKind::RegistryUnreachable,
        &["failed to do request"],
    ),
    phrase(
        CallErrorKind::RegistryUnreachable,
        &["failed to resolve reference"],
    ),
    phrase(
        CallErrorKind::RegistryUnreachable,
        &["client.timeout exceeded"],
    ),
    phrase(CallErrorKind::UserNotFound, &["unable to find user"]),
    phrase(CallErrorKind::UserNotFound, &["unable to find group"]),
    phrase(
        CallErrorKind::ProgramNotExecutable,
        &["exec", "permission denied"],
    ),
    phrase(CallErrorKind::ProgramNotExecutable, &["exec format error"]),
    phrase(
        CallErrorKind::ProgramNotExecutable,
        &["exec", "is a directory"],
    ),
    phrase(
        CallErrorKind::ProgramNotFound,
        &["exec", "executable file not found"],
    ),
    phrase(
        CallErrorKind::ProgramNotFound,
        &["exec", "no such file or directory"],
    ),
    phrase(CallErrorKind::ProgramNotFound, &["exec", "not a directory"]),
    phrase(
        CallErrorKind::BeingRemoved,
        &["removal of container", "is already in progress"],
    ),
    phrase(
        CallErrorKind::BeingRemoved,
        &["container is marked for removal"],
    ),
    phrase(CallErrorKind::NotPaused, &["is not paused"]),
    phrase(CallErrorKind::Paused, &["is already paused"]),
    phrase(CallErrorKind::Paused, &["is paused"]),
    phrase(CallErrorKind::NotRunning, &["is not running"]),
    phrase(CallErrorKind::VolumeInUse, &["remove ", "volume is in use"]),
    phrase(CallErrorKind::NoSuchVolume, &["no such volume"]),
    phrase(CallErrorKind::NoSuchContainer, &["no such container"]),
    phrase(CallErrorKind::NoSuchContainer, &["no such object"]),
];

/// What docker says to be wrong.
pub(crate) fn classify(output: &Output) -> CallErrorKind {
    let text = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let says = |phrase: &&Phrase| {
        text.lines()
            .any(|line| phrase.parts.iter().all(|part| line.contains(part)))
    };
    PHRASES
        .iter()
        .find(says)
        .map_or(CallErrorKind::Other, |phrase| phrase.kind)
}

/// Whether a `docker run` that ended like this failed itself, and not the
/// program that it ran: a program can end with the same codes.
pub(crate) fn is_dockers_own(output: &Output) -> bool {
    let said = |line: &[u8]| line.starts_with(b"docker: ") || line.starts_with(b"unknown flag: ");
    matches!(output.exit, Exit::Code(1 | 125..=127))
        && output.stderr.split(|byte| *byte == b'\n').any(said)
}
