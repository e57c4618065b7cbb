//! Docker's English texts, where text is all there is. The one place that
//! reads them.

#[cfg(test)]
mod tests;

use crate::error::CallErrorKind as Kind;
use crate::verb::{Exit, Output};

/// What docker prints before it asks for the credentials of a registry.
pub(crate) const LOGIN_PROMPT: &str = "Login prior to pull:";

/// What it means when one line has all of these, in lower case. They are
/// tried in this order: what is said of the connection first, and narrower
/// texts before wider ones.
const PHRASES: &[(Kind, &[&str])] = &[
    (
        Kind::PermissionDenied,
        &["permission denied while trying to connect"],
    ),
    (
        Kind::DaemonUnreachable,
        &["cannot connect to the docker daemon"],
    ),
    (
        Kind::DaemonUnreachable,
        &["failed to connect to the docker api"],
    ),
    (Kind::ConnectionLost, &["error during connect"]),
    (Kind::ConnectionLost, &["unexpected eof"]),
    (Kind::NoSuchContext, &["context \"", "context not found"]),
    (Kind::NoSuchContext, &["context \"", "does not exist"]),
    (Kind::OptionUnknown, &["unknown flag: "]),
    (Kind::OptionUnknown, &["unknown command: "]),
    (Kind::OptionUnknown, &["is not a docker command"]),
    (
        Kind::NameConflict,
        &["the container name", "is already in use by container"],
    ),
    (
        Kind::PlatformMismatch,
        &["does not match the specified platform"],
    ),
    (
        Kind::PlatformMismatch,
        &["does not provide the specified platform"],
    ),
    (Kind::PlatformMismatch, &["no matching manifest for"]),
    (Kind::NoSuchImage, &["no such image"]),
    (Kind::NotInRegistry, &["manifest unknown"]),
    (Kind::NotInRegistry, &["manifest for", "not found"]),
    (Kind::NotInRegistry, &["pull access denied"]),
    (
        Kind::NotInRegistry,
        &["failed to resolve reference", ": not found"],
    ),
    (
        Kind::RegistryDenied,
        &["error response from daemon: denied"],
    ),
    (Kind::RegistryDenied, &["unauthorized"]),
    (Kind::RegistryDenied, &["no basic auth credentials"]),
    (
        Kind::RegistryDenied,
        &["cannot perform an interactive login"],
    ),
    (Kind::RegistryDenied, &["error getting credentials"]),
    (Kind::DiskFull, &["no space left on device"]),
    (Kind::RegistryUnreachable, &["get \"http", "dial tcp"]),
    (
        Kind::RegistryUnreachable,
        &["get \"http", "client.timeout exceeded"],
    ),
    (Kind::RegistryUnreachable, &["failed to resolve reference"]),
    (Kind::UserNotFound, &["unable to find user"]),
    (Kind::UserNotFound, &["unable to find group"]),
    (
        Kind::ProgramNotExecutable,
        &["exec: \"", "permission denied"],
    ),
    (Kind::ProgramNotExecutable, &["exec format error"]),
    (
        Kind::ProgramNotFound,
        &["exec: \"", "executable file not found"],
    ),
    (
        Kind::ProgramNotFound,
        &["exec: \"", "no such file or directory"],
    ),
    (Kind::ProgramNotFound, &["exec: \"", "not a directory"]),
    (
        Kind::BeingRemoved,
        &["removal of container", "is already in progress"],
    ),
    (Kind::BeingRemoved, &["container is marked for removal"]),
    (Kind::NotPaused, &["is not paused"]),
    (Kind::AlreadyPaused, &["is already paused"]),
    (Kind::PauseUnsupported, &["cannot toggle freezer"]),
    (Kind::PauseUnsupported, &["freezer not supported"]),
    (
        Kind::PauseUnsupported,
        &["cannot pause the container without a cgroup"],
    ),
    (Kind::Paused, &["is paused"]),
    (Kind::NotRunning, &["is not running"]),
    (Kind::ImageInUse, &["conflict: unable to delete"]),
    (
        Kind::ImageInUse,
        &["conflict: unable to remove repository reference"],
    ),
    (Kind::VolumeInUse, &["volume is in use"]),
    (Kind::NoSuchVolume, &["no such volume"]),
    (Kind::NoSuchContainer, &["no such container"]),
    (Kind::NoSuchContainer, &["no such object"]),
];

/// The same for copies, of which more can be said; tried before the others.
/// The flag says whether the container is known to exist then.
const OF_COPIES: &[(Kind, bool, &[&str])] = &[
    (Kind::NoSuchPath, true, &["could not find the file"]),
    // Old clients say so of a container as well.
    (Kind::NoSuchPath, false, &["no such container:path"]),
    (Kind::DiskFull, true, &["no space left on device"]),
    (Kind::DiskFull, true, &["disk quota exceeded"]),
    (Kind::ReadOnly, true, &["is marked read-only"]),
    (Kind::ReadOnly, true, &["read-only file system"]),
    // The client says so whatever it was that kept it from looking.
    (
        Kind::NotADirectory,
        false,
        &["destination \"", "must be a directory"],
    ),
    (
        Kind::NotADirectory,
        true,
        &["extraction point is not a directory"],
    ),
    (Kind::TarRefused, true, &["error processing tar file"]),
    (Kind::TarRefused, true, &["archive/tar: "]),
    (
        Kind::NoSuchPath,
        true,
        &["error response from daemon", "no such file or directory"],
    ),
    (
        Kind::NoSuchPath,
        true,
        &["error response from daemon", "not a directory"],
    ),
];

/// The same for builds, tried before the others: a line of docker's own that
/// holds words of a step is of that step.
const OF_BUILDS: &[(Kind, &[&str])] = &[
    (
        Kind::BuildFailed,
        &["the command '", "returned a non-zero code"],
    ),
    (
        Kind::BuildFailed,
        &["process \"", "did not complete successfully"],
    ),
    (
        Kind::NoDockerfile,
        &["unable to evaluate symlinks in dockerfile path"],
    ),
    (Kind::NoDockerfile, &["cannot locate specified dockerfile"]),
    (Kind::NoDockerfile, &["failed to read dockerfile"]),
    (Kind::NoDockerfile, &["unable to prepare context: path"]),
    (
        Kind::NotInRegistry,
        &["failed to resolve source metadata for", ": not found"],
    ),
    (
        Kind::RegistryUnreachable,
        &["failed to do request: ", "dial tcp"],
    ),
];

/// What docker says to an `unpause` of a container that cannot be frozen: it
/// is not, or it does not run. Patterns of a shell.
pub(crate) const NOT_FROZEN: [&str; 3] =
    ["is not paused", "is not running", "[Nn]o such container"];

/// What docker says to be wrong.
pub(crate) fn classify(output: &Output) -> Kind {
    let text = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let said = PHRASES.iter().find(|(_, parts)| says(&text, parts));
    said.map_or(Kind::Other, |(kind, _)| *kind)
}

/// What docker says to be wrong with a copy, and whether the container is
/// known to exist.
pub(crate) fn classify_copy(output: &Output) -> (Kind, bool) {
    let text = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let said = OF_COPIES.iter().find(|(_, _, parts)| says(&text, parts));
    said.map_or_else(
        || (classify(output), false),
        |(kind, exists, _)| (*kind, *exists),
    )
}

/// What docker says to be wrong with a build. It says it last; all before may
/// be words of the build's own steps.
pub(crate) fn classify_build(output: &Output) -> Kind {
    let text = String::from_utf8_lossy(&output.stderr).to_lowercase();
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    // BuildKit may say afterwards where its details are.
    let own = |line: &&str| line.starts_with("error: ");
    let Some(last) = lines().rfind(own).or_else(|| lines().next_back()) else {
        return Kind::Other;
    };
    let mut all = OF_BUILDS.iter().chain(PHRASES);
    if let Some((kind, _)) = all.find(|(_, parts)| says(last, parts)) {
        return *kind;
    }
    // Of its own options it complains first, and explains last.
    match classify(output) {
        kind if kind != Kind::Other && output.exit == Exit::Code(125) => kind,
        _ => Kind::BuildFailed,
    }
}

/// Whether a `docker run` that ended like this failed itself, and not the
/// program that it ran: a program can end with the same codes.
pub(crate) fn is_dockers_own(output: &Output) -> bool {
    let mut lines = output.stderr.split(|byte| *byte == b'\n');
    let is_code = matches!(output.exit, Exit::Code(125..=127));
    is_code && lines.any(|line| line.starts_with(b"docker: "))
}

fn says(text: &str, parts: &[&str]) -> bool {
    text.lines()
        .any(|line| parts.iter().all(|part| line.contains(part)))
}
