//! Each bad input is its own refusal, error or outcome, and leaves nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use stockade::{Backend as _, ErrorKind, ExecRequest, Refusal, ResourceLimits, SandboxKey};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::engine::{Fixture, Host, PYTHON, call, spec, unique};

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut variables = BTreeMap::from([("PATH".into(), path)]);
    variables.extend(
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    variables
}

async fn binding_fails(config: DockerConfig) -> String {
    let error = DockerBackend::connect(&call(), config)
        .await
        .expect_err("it cannot be bound");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_missing_client_daemon_context_and_permission_are_told_apart() {
    let missing = DockerConfig::new("t").docker_path("/no/such/docker");
    let client = binding_fails(missing).await;
    assert!(client.contains("/no/such/docker"), "{client}");

    let nowhere = environment(&[("DOCKER_HOST", "unix:///no/such/socket")]);
    let daemon = binding_fails(DockerConfig::new("t").environment(nowhere)).await;
    assert!(daemon.contains("/no/such/socket"), "{daemon}");

    let context = environment(&[
        ("DOCKER_CONTEXT", "no-such-context"),
        ("HOME", "/nonexistent"),
    ]);
    let context = binding_fails(DockerConfig::new("t").environment(context)).await;
    assert!(context.contains("no-such-context"), "{context}");

    let messages = [&client, &daemon, &context];
    for (at, one) in messages.iter().enumerate() {
        assert!(messages.iter().skip(at + 1).all(|other| other != one));
    }
}

#[tokio::test]
async fn another_products_client_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("docker");
    let script = "#!/bin/sh\ncase \"$*\" in *version*) echo '{\"Client\":{\"APIVersion\":\"5.4.0\",\"Version\":\"5.4.0\",\"BuiltTime\":\"x\",\"OsArch\":\"linux/amd64\"}}';; *) echo podman version 5.4.0;; esac\n";
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let message = binding_fails(DockerConfig::new("t").docker_path(&path)).await;
    assert!(message.to_lowercase().contains("docker"), "{message}");
}

#[tokio::test]
async fn requests_that_no_kernel_would_take_are_refused_with_every_fault() {
    let long = "x".repeat(2 << 20);
    let faults = [
        ExecRequest::argv(["echo", long.as_str()]).build(),
        ExecRequest::argv(["echo", "a\0b"]).build(),
        ExecRequest::argv(Vec::<&str>::new()).build(),
        ExecRequest::argv(["true"]).env("A=B", "c").build(),
        ExecRequest::argv(["true"]).env("", "c").build(),
        ExecRequest::argv(["true"]).env("A", "c\0").build(),
        ExecRequest::argv(["true"]).timeout(Duration::ZERO).build(),
        ExecRequest::argv(["true"]).cwd("a\0b").build(),
        ExecRequest::shell("echo \0").build(),
    ];
    for fault in faults {
        let error = fault.expect_err("it is not valid");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        assert!(!error.faults().is_empty() && !error.to_string().is_empty());
    }
}

#[tokio::test]
async fn arguments_up_to_the_kernels_own_limit_work() {
    let fixture = Fixture::python().await;
    let long = "x".repeat(131_071);
    let outcome = fixture
        .exec(ExecRequest::argv(["printf", "%s", &long]))
        .await;
    assert_eq!(outcome.stdout.len(), 131_071);
    let strange = b"\xff\xfe\n\t\"' $(x)";
    let program = "import os, sys; sys.stdout.buffer.write(os.fsencode(sys.argv[1]))";
    let words: [&[u8]; 4] = [b"python3", b"-c", program.as_bytes(), strange];
    assert_eq!(
        fixture.exec(ExecRequest::argv(words)).await.stdout,
        &strange[..]
    );
    fixture.close().await;
}

#[tokio::test]
async fn limits_that_cannot_be_had_or_cannot_work_are_refused_by_name() {
    type Change = fn(&mut ResourceLimits);
    let changes: [(&str, Change); 5] = [
        ("milli_cpus", |limits| limits.milli_cpus = 1_000_000),
        ("memory", |limits| limits.memory = 1 << 50),
        ("pids", |limits| limits.pids = 2),
        ("milli_cpus", |limits| limits.milli_cpus = 1),
        ("open_files_soft", |limits| limits.open_files_soft = 3),
    ];
    for (name, change) in changes {
        let mut limits = ResourceLimits::default();
        change(&mut limits);
        match spec(PYTHON).limits(limits).build() {
            Err(errors) => assert!(errors.to_string().contains(name), "{name}: {errors}"),
            Ok(spec) => {
                let host = Host::new().await;
                let key = SandboxKey::new("tests", unique("limits"), "agent").with_call("1");
                let error = host
                    .backend
                    .acquire(&call(), &key, &spec)
                    .await
                    .unwrap_err();
                let refusal = error
                    .refusal()
                    .unwrap_or_else(|| panic!("{name}: {error:?}"));
                let found = match refusal {
                    Refusal::LimitAboveEngine { limit, .. }
                    | Refusal::LimitBelowFloor { limit, .. } => *limit,
                    other => panic!("{name}: {other:?}"),
                };
                assert_eq!(found, name);
                host.finish().await;
            }
        }
    }
}

#[tokio::test]
async fn a_memory_limit_below_what_the_directories_may_take_is_refused_with_the_sum() {
    let mut limits = ResourceLimits::default();
    limits.memory = 300 << 20;
    let errors = spec(PYTHON).limits(limits).build().unwrap_err();
    assert!(errors.to_string().contains("memory"), "{errors}");
}

#[tokio::test]
async fn names_with_line_breaks_quotes_and_nothing_are_keys_like_others() {
    for part in ["", "a\nb", "\"'", "--rm", "ü€", "a b", "%s{{.}}"] {
        let host = Host::new().await;
        let spec = spec(PYTHON).build().unwrap();
        let key = SandboxKey::new(part, unique("key"), part).with_call("1");
        let sandbox = host.backend.acquire(&call(), &key, &spec).await.unwrap();
        drop(sandbox);
        let removed = host
            .backend
            .dispose(&call(), &key, stockade::Which::All)
            .await
            .unwrap();
        assert_eq!(removed.count, 1, "{part:?}");
        host.finish().await;
    }
}
