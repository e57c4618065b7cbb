//! Every text that was seen is told by its kind, and every phrase tells one.

use std::collections::BTreeSet;

use super::*;

/// What was seen, by the versions of client and engine. Each begins with
/// `== Kind: what was done` and `exit code`; standard error follows.
const SEEN: [(&str, &str); 4] = [
    (
        "28.2.2 on 28.5.2",
        include_str!("../../tests/golden/phrases/client-28.2.2-engine-28.5.2.txt"),
    ),
    (
        "28.2.2 on 20.10.24",
        include_str!("../../tests/golden/phrases/client-28.2.2-engine-20.10.24.txt"),
    ),
    (
        "20.10.24 on 28.5.2",
        include_str!("../../tests/golden/phrases/client-20.10.24-engine-28.5.2.txt"),
    ),
    (
        "20.10.24 on 20.10.24",
        include_str!("../../tests/golden/phrases/client-20.10.24-engine-20.10.24.txt"),
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
        Kind::ImageInUse,
        "Error response from daemon: conflict: unable to delete 618389caa662 (must be forced) - image is being used by stopped container abc",
    ),
    (
        Kind::ImageInUse,
        "Error response from daemon: conflict: unable to remove repository reference \"example/image:1\" (must force) - container abc is using its referenced image 618389caa662",
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

/// What is said at the end of builds: seen with a client of version 28.2.2
/// without BuildKit and an engine of version 28.5.2, or with BuildKit, as
/// its sources and those of buildx have it.
const OF_BUILDS_SEEN: &[(Kind, i32, &str)] = &[
    (
        Kind::BuildFailed,
        1,
        "The command '/bin/sh -c echo \"no space left on device\" >&2; false' returned a non-zero code: 1",
    ),
    (
        Kind::BuildFailed,
        1,
        "Error response from daemon: dockerfile parse error on line 1: unknown instruction: FRUM (did you mean FROM?)",
    ),
    (
        Kind::BuildFailed,
        1,
        "no such container\nCOPY failed: file not found in build context or excluded by .dockerignore: stat nothere: file does not exist",
    ),
    (
        Kind::BuildFailed,
        1,
        "#5 0.2 no space left on device\nERROR: failed to solve: process \"/bin/sh -c echo unauthorized; false\" did not complete successfully: exit code: 1\n\nView build details: docker-desktop://dashboard/build",
    ),
    (
        Kind::BuildFailed,
        1,
        "ERROR: failed to solve: failed to compute cache key: failed to calculate checksum of ref abc::def: \"/nothere\": not found",
    ),
    (
        Kind::NoDockerfile,
        1,
        "unable to prepare context: unable to evaluate symlinks in Dockerfile path: lstat /folder/Dockerfile: no such file or directory",
    ),
    (
        Kind::NoDockerfile,
        1,
        "unable to prepare context: path \"/missing\" not found",
    ),
    (
        Kind::NoDockerfile,
        1,
        "Error response from daemon: Cannot locate specified Dockerfile: Dockerfile",
    ),
    (
        Kind::NoDockerfile,
        1,
        "ERROR: failed to solve: failed to read dockerfile: open Dockerfile: no such file or directory",
    ),
    (
        Kind::RegistryUnreachable,
        1,
        "Get \"https://example.invalid/v2/\": dial tcp: lookup example.invalid on [::1]:53: read udp [::1]:36930->[::1]:53: read: connection refused",
    ),
    (
        Kind::RegistryUnreachable,
        1,
        "ERROR: failed to solve: example.invalid/a:1: failed to resolve source metadata for example.invalid/a:1: failed to do request: Head \"https://example.invalid/v2/a/manifests/1\": dial tcp: lookup example.invalid: no such host",
    ),
    (
        Kind::NotInRegistry,
        1,
        "pull access denied for example/image, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
    ),
    (
        Kind::NotInRegistry,
        1,
        "ERROR: failed to solve: debian:no: failed to resolve source metadata for docker.io/library/debian:no: docker.io/library/debian:no: not found",
    ),
    (
        Kind::DiskFull,
        1,
        "write /var/lib/docker/tmp/docker-builder1/a: no space left on device",
    ),
    (
        Kind::DaemonUnreachable,
        1,
        "Cannot connect to the Docker daemon at unix:///nope.sock. Is the docker daemon running?",
    ),
    (
        Kind::OptionUnknown,
        125,
        "unknown flag: --iidfile\n\nUsage:  docker build [OPTIONS] PATH | URL | -\n\nRun 'docker build --help' for more information",
    ),
    (Kind::BuildFailed, 1, ""),
];

#[test]
fn what_is_said_of_a_build_is_told_by_its_kind() {
    for (kind, code, text) in OF_BUILDS_SEEN {
        // It is said first, whatever comes then.
        let text = format!("DEPRECATED: The legacy builder is deprecated\n\n{text}\n");
        assert_eq!(classify_build(&failed(&text, *code)), *kind, "{text}");
    }
}

#[test]
fn every_phrase_of_builds_is_the_one_that_tells_some_text() {
    let tells = |text: &str| {
        let text = text.to_lowercase();
        OF_BUILDS.iter().position(|(_, parts)| says(&text, parts))
    };
    let telling: BTreeSet<_> = OF_BUILDS_SEEN
        .iter()
        .filter_map(|(_, _, text)| tells(text))
        .collect();
    assert_eq!(telling, (0..OF_BUILDS.len()).collect());
}

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
