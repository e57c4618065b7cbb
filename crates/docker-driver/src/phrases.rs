//! Docker's English texts, where text is all there is. The one place that
//! reads them.

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
    let said = all.find(|(_, parts)| says(last, parts));
    said.map_or(Kind::BuildFailed, |(kind, _)| *kind)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What was seen, by the versions of client and engine. Each begins with
    /// `== Kind: what was done` and `exit code`; standard error follows.
    const SEEN: [(&str, &str); 4] = [
        (
            "28.2.2 on 28.5.2",
            include_str!("../tests/golden/phrases/client-28.2.2-engine-28.5.2.txt"),
        ),
        (
            "28.2.2 on 20.10.24",
            include_str!("../tests/golden/phrases/client-28.2.2-engine-20.10.24.txt"),
        ),
        (
            "20.10.24 on 28.5.2",
            include_str!("../tests/golden/phrases/client-20.10.24-engine-28.5.2.txt"),
        ),
        (
            "20.10.24 on 20.10.24",
            include_str!("../tests/golden/phrases/client-20.10.24-engine-20.10.24.txt"),
        ),
    ];

    /// What needs a full disk, a race, a public registry or another version,
    /// as the sources of the client and the engine have it.
    const FROM_SOURCES: &[(Kind, &str)] = &[
        (
            Kind::PauseUnsupported,
            "Error response from daemon: cannot pause container abc: OCI runtime pause failed: cannot toggle freezer: cgroups not configured for container: unknown",
        ),
        (
            Kind::PauseUnsupported,
            "Error response from daemon: Cannot pause container abc: OCI runtime pause failed: freezer not supported: open /sys/fs/cgroup/abc/cgroup.freeze: no such file or directory: unknown",
        ),
        (
            Kind::PauseUnsupported,
            "Error response from daemon: cannot pause container abc: OCI runtime pause failed: cannot pause the container without a cgroup: unknown",
        ),
        (
            Kind::DaemonUnreachable,
            "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory",
        ),
        (
            Kind::PermissionDenied,
            "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
        ),
        (Kind::ConnectionLost, "docker: unexpected EOF"),
        (
            Kind::PlatformMismatch,
            "Error response from daemon: image with reference example/image:1 was found but does not provide the specified platform (linux/arm64)",
        ),
        (
            Kind::PlatformMismatch,
            "Error response from daemon: no matching manifest for linux/arm64/v8 in the manifest list entries: not found",
        ),
        (
            Kind::NotInRegistry,
            "Error response from daemon: manifest for example/image:2 not found: manifest unknown: manifest unknown",
        ),
        (
            Kind::NotInRegistry,
            "Error response from daemon: manifest for example/image:2 not found",
        ),
        (
            Kind::NotInRegistry,
            "Error response from daemon: pull access denied for example/image, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
        ),
        (
            Kind::NotInRegistry,
            "Error response from daemon: failed to resolve reference \"registry.example/image:2\": registry.example/image:2: not found",
        ),
        (
            Kind::RegistryUnreachable,
            "Error response from daemon: failed to resolve reference \"registry.example/image:1\": failed to do request: Head \"https://registry.example/v2/\": dial tcp: lookup registry.example: no such host",
        ),
        (
            Kind::RegistryUnreachable,
            "Error response from daemon: Get \"https://registry.example/v2/\": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)",
        ),
        (
            Kind::RegistryDenied,
            "Error response from daemon: Head \"https://registry.example/v2/image/manifests/1\": no basic auth credentials",
        ),
        (
            Kind::RegistryDenied,
            "error getting credentials - err: exec: \"docker-credential-pass\": executable file not found in $PATH, out: ``",
        ),
        (
            Kind::DiskFull,
            "docker: Error response from daemon: mkdir /var/lib/docker/overlay2/abc: no space left on device.",
        ),
        (
            Kind::BeingRemoved,
            "Error response from daemon: removal of container abc is already in progress",
        ),
        (
            Kind::BeingRemoved,
            "Error response from daemon: container is marked for removal and cannot be started",
        ),
        (
            Kind::ProgramNotExecutable,
            "docker: Error response from daemon: exec format error: unknown.",
        ),
        (
            Kind::ProgramNotFound,
            "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"/a/b\": stat /a/b: not a directory: unknown.",
        ),
    ];

    /// What is said of copies, and whether the container exists then: seen
    /// with clients and engines of versions 20.10.24 and 28, or of sources.
    const OF_COPIES_SEEN: &[(Kind, bool, &str)] = &[
        (
            Kind::NoSuchPath,
            true,
            "Error response from daemon: Could not find the file /nope in container abc",
        ),
        (
            Kind::NoSuchPath,
            false,
            "Error: No such container:path: abc:/nope",
        ),
        (
            Kind::NoSuchPath,
            true,
            "Error response from daemon: lstat /var/lib/docker/overlay2/abc/merged/nope: no such file or directory",
        ),
        (
            Kind::NoSuchPath,
            true,
            "Error response from daemon: lstat /etc/passwd/x: not a directory",
        ),
        (
            Kind::NotADirectory,
            false,
            "destination \"abc:/nope\" must be a directory",
        ),
        (
            Kind::NotADirectory,
            true,
            "Error response from daemon: extraction point is not a directory",
        ),
        (
            Kind::ReadOnly,
            true,
            "Error response from daemon: container rootfs is marked read-only",
        ),
        (
            Kind::ReadOnly,
            true,
            "Error response from daemon: mkdir /x: read-only file system",
        ),
        (
            Kind::DiskFull,
            true,
            "Error response from daemon: Error processing tar file(exit status 1): write /a: no space left on device",
        ),
        (
            Kind::DiskFull,
            true,
            "Error response from daemon: Error processing tar file(exit status 1): write /a: disk quota exceeded",
        ),
        (
            Kind::TarRefused,
            true,
            "Error response from daemon: Error processing tar file(exit status 1): unexpected EOF",
        ),
        (
            Kind::TarRefused,
            true,
            "Error response from daemon: archive/tar: invalid tar header",
        ),
        (
            Kind::NoSuchContainer,
            false,
            "Error response from daemon: No such container: abc",
        ),
        (
            Kind::DaemonUnreachable,
            false,
            "failed to connect to the docker API at unix:///nope.sock; check if the path is correct and if the daemon is running: dial unix /nope.sock: connect: no such file or directory",
        ),
        (Kind::ConnectionLost, false, "unexpected EOF"),
        (Kind::Other, false, "stat /nope: no such file or directory"),
    ];

    #[test]
    fn what_is_said_of_a_copy_is_told_by_its_kind() {
        for (kind, exists, text) in OF_COPIES_SEEN {
            assert_eq!(classify_copy(&failed(text, 1)), (*kind, *exists), "{text}");
        }
    }

    #[test]
    fn every_phrase_of_copies_is_the_one_that_tells_some_text() {
        let tells = |text: &str| {
            let text = text.to_lowercase();
            OF_COPIES
                .iter()
                .position(|(_, _, parts)| says(&text, parts))
        };
        let telling: BTreeSet<_> = OF_COPIES_SEEN
            .iter()
            .filter_map(|(_, _, text)| tells(text))
            .collect();
        assert_eq!(telling, (0..OF_COPIES.len()).collect());
    }

    #[test]
    fn a_pattern_of_what_is_not_frozen_is_in_the_words_of_its_kind() {
        for (kind, pattern) in [
            (Kind::NotPaused, NOT_FROZEN[0]),
            (Kind::NotRunning, NOT_FROZEN[1]),
            (Kind::NoSuchContainer, NOT_FROZEN[2]),
        ] {
            let pattern = pattern.replace("[Nn]", "N");
            for (_, text) in SEEN {
                let told = format!("{kind:?}");
                let mut of_kind = sections(text)
                    .into_iter()
                    .filter(|(kind, done, _)| *kind == told && *done == "unpause");
                let says = |output: &Output| {
                    output
                        .stderr
                        .windows(pattern.len())
                        .any(|part| part == pattern.as_bytes())
                };
                assert!(of_kind.all(|(_, _, output)| says(&output)), "{pattern}");
            }
        }
    }

    fn failed(stderr: &str, code: i32) -> Output {
        Output {
            exit: Exit::Code(code),
            stdout: bytes::Bytes::new(),
            stderr: stderr.as_bytes().to_vec().into(),
            made: None,
            built: None,
        }
    }

    /// Kind, what was done, and how it ended.
    fn sections(text: &str) -> Vec<(&str, &str, Output)> {
        let section = |section| {
            let (title, rest): (&str, &str) = str::split_once(section, '\n').unwrap();
            let (kind, done) = title.split_once(": ").unwrap();
            let (exit, stderr) = rest.split_once('\n').unwrap();
            let code = exit.strip_prefix("exit ").unwrap().parse().unwrap();
            (kind, done, failed(stderr, code))
        };
        text.split("== ").skip(1).map(section).collect()
    }

    #[test]
    fn every_text_that_was_seen_is_told_by_its_kind() {
        for (versions, text) in SEEN {
            let sections = sections(text);
            assert!(sections.len() > 40, "{versions}: {}", sections.len());
            for (kind, done, output) in sections {
                let told = format!("{:?}", classify(&output));
                assert_eq!(told, kind, "{versions}, {done}: {output:?}");
            }
        }
    }

    #[test]
    fn every_text_of_the_sources_is_told_by_its_kind() {
        for (kind, text) in FROM_SOURCES {
            assert_eq!(classify(&failed(text, 1)), *kind, "{text}");
        }
    }

    #[test]
    fn every_phrase_is_the_one_that_tells_some_text() {
        let mut telling = BTreeSet::new();
        let mut tell = |text: &str| {
            let text = text.to_lowercase();
            telling.extend(PHRASES.iter().position(|(_, parts)| says(&text, parts)));
        };
        for (_, text) in SEEN {
            for (_, _, output) in sections(text) {
                tell(&String::from_utf8_lossy(&output.stderr));
            }
        }
        FROM_SOURCES.iter().for_each(|(_, text)| tell(text));
        let idle: Vec<_> = (0..PHRASES.len())
            .filter(|at| !telling.contains(at))
            .map(|at| PHRASES[at])
            .collect();
        assert!(idle.is_empty(), "{idle:?}");
    }

    #[test]
    fn a_run_that_docker_itself_failed_at_is_told_from_a_program_that_ended_the_same() {
        for (versions, text) in SEEN {
            for (kind, done, output) in sections(text) {
                if done.starts_with("run") {
                    assert!(is_dockers_own(&output), "{versions}, {kind}: {output:?}");
                }
            }
        }
        for (stderr, code) in [
            ("", 125),
            ("docker is great\n", 126),
            ("docker: no such thing\n", 1),
        ] {
            assert!(!is_dockers_own(&failed(stderr, code)), "{stderr:?} {code}");
        }
    }

    #[test]
    fn a_text_that_nobody_knows_is_other() {
        for text in [
            "",
            "\u{fffd}",
            "Error response from daemon: the engine has hiccups",
        ] {
            assert_eq!(classify(&failed(text, 1)), Kind::Other);
        }
    }
}
