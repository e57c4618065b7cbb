//! Sandboxes that several hosts find, use, replace, reap and remove.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stockade::exec::Background;
use stockade::spec::Storage;
use stockade::vocabulary::DisposalCode;
use stockade::{
    Backend as _, ErrorKind, ExecRequest, Image, IsolationScope, ReapFilter, Refusal, Sandbox,
    SandboxKey, SandboxSpec, SpecBuilder, Which,
};
use stockade_docker::{DockerBackend, DockerConfig, RuntimeSource};
use stockade_tests::engine::{Host, PYTHON, call, docker, docker_ok, spec, unique};

fn builder() -> SpecBuilder {
    SandboxSpec::builder("test")
        .image(Image::reference(PYTHON))
        .isolation_scope(IsolationScope::Conversation)
}

fn plain() -> Arc<SandboxSpec> {
    builder().build().expect("the spec is valid")
}

/// The same sandbox with another variable.
fn changed() -> Arc<SandboxSpec> {
    let changed = builder().env([("CHANGED", "1")]).build();
    changed.expect("the spec is valid")
}

fn key() -> SandboxKey {
    SandboxKey::new("tests", unique("thread"), "agent")
}

/// Another host of the same owner.
async fn beside(host: &Host) -> DockerBackend {
    let connected = DockerBackend::connect(&call(), DockerConfig::new(&host.owner)).await;
    connected.expect("the engine is there")
}

async fn acquire(
    backend: &DockerBackend,
    key: &SandboxKey,
    spec: &Arc<SandboxSpec>,
) -> Result<Sandbox, stockade::Error> {
    backend.acquire(&call(), key, spec).await
}

async fn sh(sandbox: &Sandbox, line: &str) -> String {
    let request = ExecRequest::shell(line).build();
    let request = request.expect("the request is valid");
    let outcome = sandbox.exec(&call(), request).await;
    let outcome = outcome.expect("it does its job");
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

async fn dispose(host: Host, key: &SandboxKey) {
    let removed = host.backend.dispose(&call(), key, Which::All).await;
    assert!(removed.expect("it answers").is_clean());
    host.finish().await;
}

/// What a refusal as drifted names.
fn drifted(refused: Result<Sandbox, stockade::Error>) -> Vec<String> {
    match refused.expect_err("it is refused").refusal() {
        Some(Refusal::Drifted { fields }) => fields.clone(),
        other => panic!("refused for another reason: {other:?}"),
    }
}

#[tokio::test]
async fn two_hosts_share_the_sandbox_of_a_key() {
    let host = Host::new().await;
    let (other, key) = (beside(&host).await, key());
    let first = acquire(&host.backend, &key, &plain()).await.unwrap();
    let second = acquire(&other, &key, &plain()).await.unwrap();
    assert_eq!(first.id(), second.id());
    assert!(first.freshly_created() && !second.freshly_created());
    sh(&first, "echo here > file").await;
    assert_eq!(sh(&second, "cat file").await, "here\n");
    dispose(host, &key).await;
}

#[tokio::test]
async fn a_drifted_sandbox_that_nobody_uses_is_replaced_by_whoever_finds_it() {
    let host = Host::new().await;
    let (other, key) = (beside(&host).await, key());
    let first = acquire(&host.backend, &key, &plain()).await.unwrap();
    sh(&first, "echo old > file").await;
    let old = first.id().clone();
    // The channel closes with its last handle.
    drop(first);
    let replaced = acquire_idle(&other, &key, &changed()).await;
    assert!(replaced.freshly_created());
    assert_ne!(*replaced.id(), old);
    assert_eq!(sh(&replaced, "echo $CHANGED; ls").await, "1\n");
    dispose(host, &key).await;
}

/// Acquires, once the channel that its test has just dropped is closed.
async fn acquire_idle(
    backend: &DockerBackend,
    key: &SandboxKey,
    spec: &Arc<SandboxSpec>,
) -> Sandbox {
    for _ in 0..100 {
        match acquire(backend, key, spec).await {
            Err(error) if matches!(error.refusal(), Some(Refusal::Drifted { .. })) => {
                tokio::task::yield_now().await;
            }
            acquired => return acquired.expect("it is acquired"),
        }
    }
    panic!("a channel that was dropped stays");
}

#[tokio::test]
async fn a_drifted_sandbox_in_use_is_refused_with_its_fields_and_works_on() {
    let host = Host::new().await;
    let (other, key) = (beside(&host).await, key());
    let first = acquire(&host.backend, &key, &plain()).await.unwrap();
    sh(&first, "echo mine > file").await;
    for backend in [&other, &host.backend] {
        let refused = acquire(backend, &key, &changed()).await;
        assert_eq!(drifted(refused), ["env"]);
    }
    assert_eq!(sh(&first, "cat file").await, "mine\n");
    dispose(host, &key).await;
}

#[tokio::test]
async fn a_command_that_outlives_its_host_keeps_its_sandbox() {
    let host = Host::new().await;
    let (other, key) = (beside(&host).await, key());
    let first = acquire(&host.backend, &key, &plain()).await.unwrap();
    let request = ExecRequest::shell("sleep 1000")
        .background(Background::Keep)
        .timeout(Duration::from_secs(1000))
        .build()
        .unwrap();
    let process = first.spawn(&call(), request).await.unwrap();
    process.detach();
    drop(first);
    for _ in 0..3 {
        let refused = acquire(&other, &key, &changed()).await;
        assert_eq!(drifted(refused), ["env"]);
    }
    let reaped = other.reap(&call(), &ReapFilter::default()).await.unwrap();
    assert_eq!((reaped.sandboxes, reaped.kept), (0, 1));
    dispose(host, &key).await;
}

#[tokio::test]
async fn what_others_pruned_from_the_engine_is_brought_back_by_the_next_acquire() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = own_runtime(folder.path());
    let host = Host::with(|config| config.runtime(RuntimeSource::File(runtime))).await;
    let spec = spec(PYTHON).build().unwrap();
    let first = SandboxKey::new("tests", unique("thread"), "agent").with_call("1");
    let sandbox = acquire(&host.backend, &first, &spec).await.unwrap();
    let volume = runtime_volume(sandbox.id().as_str());
    let removed = host.backend.dispose(&call(), &first, Which::All).await;
    assert!(removed.unwrap().is_clean());
    docker_ok(["volume", "rm", &volume]);

    let second = first.clone().with_call("2");
    let sandbox = acquire(&host.backend, &second, &spec).await.unwrap();
    assert_eq!(sh(&sandbox, "echo on").await, "on\n");
    let removed = host.backend.dispose(&call(), &second, Which::All).await;
    assert!(removed.unwrap().is_clean());
    docker_ok(["volume", "rm", &volume]);
    host.finish().await;
}

/// The guest runtime as another build, so that nobody else has its volume.
fn own_runtime(folder: &Path) -> PathBuf {
    let arch = docker_ok(["version", "--format", "{{.Server.Arch}}"]);
    let carried = stockade_runtime::for_platform("linux", &arch).expect("it is carried");
    let mut bytes = carried.bytes.to_vec();
    bytes.extend(unique("build").bytes());
    let path = folder.join("guest");
    std::fs::write(&path, bytes).expect("it can be written");
    path
}

fn runtime_volume(container: &str) -> String {
    let format = r#"{{range .Mounts}}{{if eq .Destination "/.stockade"}}{{.Name}}{{end}}{{end}}"#;
    docker_ok(["inspect", "--format", format, container])
}

#[tokio::test]
async fn a_stranger_whose_image_has_our_labels_is_nobody_we_touch() {
    let host = Host::new().await;
    let key = key();
    let sandbox = acquire(&host.backend, &key, &plain()).await.unwrap();
    let image = unique("stranger").to_lowercase();
    docker_ok(["commit", sandbox.id().as_str(), &image]);
    let stranger = docker_ok([
        "create",
        "--entrypoint",
        "/bin/true",
        "--name",
        &unique("stranger"),
        &image,
    ]);
    let labels = docker_ok(["inspect", "--format", "{{json .Config.Labels}}", &stranger]);
    assert!(labels.contains(&host.owner), "it has our labels: {labels}");

    let reaped = host.backend.reap(&call(), &ReapFilter::everything()).await;
    let reaped = reaped.unwrap();
    assert_eq!((reaped.sandboxes, reaped.others), (1, 0));
    assert!(reaped.is_clean());
    for which in [Which::All, Which::Kind("test".parse().unwrap())] {
        let removed = host.backend.dispose(&call(), &key, which).await.unwrap();
        assert_eq!((removed.count, removed.is_clean()), (0, true));
    }
    let scope = call();
    let scope = host
        .backend
        .dispose_scope(&scope, &key.scope, &key.thread_id);
    assert_eq!(scope.await.unwrap().count, 0);
    docker_ok(["rm", &stranger]);
    docker_ok(["rmi", &image]);
    host.finish().await;
}

#[tokio::test]
async fn a_volume_that_somebody_has_named_is_not_ours_whatever_its_labels_say() {
    let host = Host::new().await;
    let key = key();
    let name = unique("precious");
    let label = |name: &str, value: &str| format!("--label=dev.stockade.{name}={value}");
    let json = serde_json::json!([key.scope, key.thread_id, key.agent_id, key.call_id]);
    docker_ok([
        "volume",
        "create",
        &label("owner", &host.owner),
        &label("role", "work"),
        &label("key", &json.to_string()),
        &label("kind", "test"),
        &name,
    ]);
    let reaped = host.backend.reap(&call(), &ReapFilter::everything()).await;
    assert_eq!(reaped.unwrap().others, 0);
    let removed = host.backend.dispose(&call(), &key, Which::All).await;
    assert!(removed.unwrap().is_clean());
    docker_ok(["volume", "rm", &name]);
    host.finish().await;
}

#[tokio::test]
async fn a_reaper_takes_what_is_idle_and_never_what_is_in_use() {
    let host = Host::new().await;
    let (other, used, idle) = (beside(&host).await, key(), key());
    let sandbox = acquire(&host.backend, &used, &plain()).await.unwrap();
    assert_eq!(sh(&sandbox, "echo on").await, "on\n");
    drop(acquire(&host.backend, &idle, &plain()).await.unwrap());
    let reap = async |filter: ReapFilter| {
        let reaped = other.reap(&call(), &filter).await.unwrap();
        assert!(reaped.is_clean(), "{reaped:?}");
        (reaped.sandboxes, reaped.kept)
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(reap(ReapFilter::default().older_than(hour)).await, (0, 0));
    assert_eq!(reap(ReapFilter::default().idle_for(hour)).await, (0, 2));
    assert_eq!(reap(ReapFilter::default().scope("nobody")).await, (0, 0));
    assert_eq!(reap(ReapFilter::default()).await, (1, 1));
    for _ in 0..5 {
        assert_eq!(reap(ReapFilter::default()).await, (0, 1));
        assert_eq!(sh(&sandbox, "echo on").await, "on\n");
    }
    assert_eq!(reap(ReapFilter::everything()).await, (1, 0));
    let request = ExecRequest::argv(["true"]).build().unwrap();
    let lost = sandbox.exec(&call(), request).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
    host.finish().await;
}

#[tokio::test]
async fn a_disposal_reaches_what_another_process_made_and_nothing_beside_it() {
    let host = Host::new().await;
    let (other, conversation, neighbour) = (beside(&host).await, key(), key());
    let first = acquire(&host.backend, &conversation, &plain())
        .await
        .unwrap();
    let second = acquire(&host.backend, &neighbour, &plain()).await.unwrap();
    let instance = Which::Instance(first.id().clone());
    let removed = other.dispose(&call(), &neighbour, instance.clone()).await;
    assert_eq!(removed.unwrap().count, 0, "it is of another key");
    let removed = other.dispose(&call(), &conversation, instance).await;
    assert_eq!(removed.unwrap().count, 1);
    assert_eq!(sh(&second, "echo on").await, "on\n");
    let conversation = (neighbour.scope.as_str(), neighbour.thread_id.as_str());
    let removed = other
        .dispose_scope(&call(), conversation.0, conversation.1)
        .await;
    assert_eq!(removed.unwrap().count, 1);
    host.finish().await;
}

#[tokio::test]
async fn a_conversations_calls_go_with_it_only_when_asked_for() {
    let host = Host::new().await;
    let (conversation, per_call) = (key(), spec(PYTHON).build().unwrap());
    let of_call = conversation.clone().with_call("1");
    let dispose = async |which: Which| {
        let removed = host.backend.dispose(&call(), &conversation, which).await;
        let removed = removed.unwrap();
        assert!(removed.is_clean());
        removed.count
    };
    acquire(&host.backend, &conversation, &plain())
        .await
        .unwrap();
    let running = acquire(&host.backend, &of_call, &per_call).await.unwrap();
    assert_eq!(dispose(Which::All).await, 1);
    assert_eq!(sh(&running, "echo on").await, "on\n");
    acquire(&host.backend, &conversation, &plain())
        .await
        .unwrap();
    assert_eq!(dispose(Which::AllWithCalls).await, 2);
    host.finish().await;
}

#[tokio::test]
async fn what_is_known_goes_even_when_the_engine_gives_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let client = failing(folder.path(), "ps", "true");
    let host = Host::with(|config| config.docker_path(client)).await;
    let key = key();
    drop(acquire(&host.backend, &key, &plain()).await.unwrap());
    let removed = host.backend.dispose(&call(), &key, Which::All).await;
    let removed = removed.unwrap();
    assert_eq!(removed.count, 1);
    let codes: Vec<_> = removed
        .failures
        .iter()
        .map(|failure| failure.code)
        .collect();
    assert_eq!(codes, [DisposalCode::Unlisted]);
    host.finish().await;
}

#[tokio::test]
async fn an_inventory_that_cannot_be_had_reaps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["ps", "container inspect", "volume ls", "info"] {
        let client = failing(folder.path(), verb, "[ -e \"$0.bound\" ]");
        let host = Host::with(|config| config.docker_path(&client)).await;
        std::fs::write(format!("{}.bound", client.display()), "").unwrap();
        let (whole, key) = (beside(&host).await, key());
        drop(acquire(&whole, &key, &plain()).await.unwrap());
        let reaped = host.backend.reap(&call(), &ReapFilter::everything()).await;
        assert!(reaped.is_err(), "without {verb}: {reaped:?}");
        assert_eq!(host.left().len(), 2, "without {verb}");
        std::fs::remove_file(format!("{}.bound", client.display())).unwrap();
        dispose(host, &key).await;
    }
}

#[tokio::test]
async fn a_removal_that_failed_is_tried_again_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let once = "[ ! -e \"$0.failed\" ] && touch \"$0.failed\"";
    let client = failing(folder.path(), "rm", once);
    let host = Host::with(|config| config.docker_path(client)).await;
    let key = key();
    drop(acquire(&host.backend, &key, &plain()).await.unwrap());
    let removed = host.backend.dispose(&call(), &key, Which::All).await;
    let removed = removed.unwrap();
    assert_eq!((removed.count, removed.failures.len()), (0, 1));
    let closed = host.backend.close(&call()).await.unwrap();
    assert_eq!((closed.count, closed.is_clean()), (1, true));
    host.finish().await;
}

#[tokio::test]
async fn what_is_acquired_again_is_not_owed_a_removal_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let once = "[ ! -e \"$0.failed\" ] && touch \"$0.failed\"";
    let client = failing(folder.path(), "rm", once);
    let host = Host::with(|config| config.docker_path(client)).await;
    let key = key();
    drop(acquire(&host.backend, &key, &plain()).await.unwrap());
    let removed = host.backend.dispose(&call(), &key, Which::All).await;
    assert_eq!(removed.unwrap().failures.len(), 1);
    let again = acquire(&host.backend, &key, &plain()).await.unwrap();
    assert!(!again.freshly_created());
    let closed = host.backend.close(&call()).await.unwrap();
    assert_eq!((closed.count, closed.is_clean()), (0, true));
    assert_eq!(sh(&again, "echo on").await, "on\n");
    dispose(host, &key).await;
}

#[tokio::test]
async fn one_that_was_started_again_since_it_retired_is_not_reaped() {
    let folder = tempfile::tempdir().unwrap();
    let client = waiting(folder.path(), "rm");
    let host = Host::new().await;
    let config = DockerConfig::new(&host.owner).docker_path(&client);
    let reaper = DockerBackend::connect(&call(), config).await.unwrap();
    let key = key();
    let kept = builder().storage(Storage::Disk).build().unwrap();
    let first = acquire(&host.backend, &key, &kept).await.unwrap();
    sh(&first, "echo precious > file").await;
    let id = first.id().as_str().to_owned();
    drop(first);
    let reaping =
        tokio::spawn(async move { reaper.reap(&call(), &ReapFilter::default()).await.unwrap() });
    let ended = tokio::task::spawn_blocking(move || docker_ok(["wait", &id]));
    assert_eq!(ended.await.unwrap(), "82", "it has retired");

    let again = acquire(&host.backend, &key, &kept).await.unwrap();
    assert_eq!(sh(&again, "cat file").await, "precious\n");
    std::fs::write(format!("{}.go", client.display()), "").unwrap();
    let reaped = reaping.await.unwrap();
    assert_eq!((reaped.sandboxes, reaped.kept), (0, 1), "{reaped:?}");
    assert_eq!(sh(&again, "cat file").await, "precious\n");
    dispose(host, &key).await;
}

/// A client of which one command waits until it is let go.
fn waiting(folder: &Path, verb: &str) -> PathBuf {
    let until = "while [ ! -e \"$0.go\" ]; do sleep 0.05; done; false";
    failing(folder, verb, until)
}

/// A client that fails one command while a condition of the shell's holds.
fn failing(folder: &Path, verb: &str, condition: &str) -> PathBuf {
    let path = folder.join(format!("docker-{}", verb.replace(' ', "-")));
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n{verb:?}*) if {condition}; then echo 'it went wrong' >&2; exit 1; fi;;\nesac\nexec docker \"$@\"\n",
    );
    std::fs::write(&path, script).expect("it can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("it becomes executable");
    path
}

#[tokio::test]
async fn ages_are_told_by_the_engines_clock() {
    let host = Host::new().await;
    let key = key();
    drop(acquire(&host.backend, &key, &plain()).await.unwrap());
    let day = Duration::from_secs(24 * 3600);
    let reap = async |age: Duration| {
        let filter = ReapFilter::default().older_than(age);
        host.backend.reap(&call(), &filter).await.unwrap().sandboxes
    };
    assert_eq!(reap(day).await, 0);
    assert_eq!(reap(Duration::ZERO).await, 1);
    host.finish().await;
}

#[tokio::test]
async fn a_sandbox_in_any_state_of_the_engine_is_decided_by_the_table() {
    let host = Host::new().await;
    let key = key();
    let first = acquire(&host.backend, &key, &plain()).await.unwrap();
    let id = first.id().as_str().to_owned();
    let name = docker_ok(["inspect", "--format", "{{.Name}}", &id]);
    let name = name.trim_start_matches('/').to_owned();
    drop(first);

    // Paused by hand: it is thawed, or waited for.
    docker_ok(["pause", &id]);
    let (unpaused, thawed) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            docker(["unpause", &id]).status.success()
        },
        async { acquire(&host.backend, &key, &plain()).await }
    );
    assert!(unpaused);
    assert_eq!(thawed.unwrap().id().as_str(), id);

    // Killed from outside: the engine removes it, and it is made anew.
    docker_ok(["kill", &id]);
    let second = acquire(&host.backend, &key, &plain()).await.unwrap();
    assert!(second.freshly_created());
    drop(second);

    // A stranger under our name is refused, whatever it does.
    docker_ok(["rm", "-f", &name]);
    for state in ["created", "running", "paused", "exited"] {
        docker_ok(["create", "--name", &name, PYTHON, "sleep", "1000"]);
        if state != "created" {
            docker_ok(["start", &name]);
        }
        match state {
            "paused" => drop(docker_ok(["pause", &name])),
            "exited" => drop(docker_ok(["kill", &name])),
            _ => {}
        }
        let refused = acquire(&host.backend, &key, &plain()).await.unwrap_err();
        assert!(
            matches!(refused.refusal(), Some(Refusal::Foreign { .. })),
            "{state}: {refused:?}"
        );
        docker_ok(["rm", "-f", &name]);
    }
    dispose(host, &key).await;
}

/// Hosts that race; each is a backend of its own, as another process is.
const HOSTS: u32 = 6;

/// What each of them does, times the rounds that were asked for.
const STEPS: u32 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_race_on_one_key_end_with_one_sandbox_or_none() {
    let host = Host::new().await;
    let key = key();
    let mut racing = tokio::task::JoinSet::new();
    for number in 0..HOSTS {
        let (backend, key) = (beside(&host).await, key.clone());
        racing.spawn(async move {
            for step in 0..STEPS * rounds() {
                race(&backend, &key, number, step).await;
            }
            let closed = backend.close(&call()).await.expect("it closes");
            assert!(closed.is_clean(), "{:?}", closed.failures);
        });
    }
    while let Some(raced) = racing.join_next().await {
        raced.expect("only errors with a name");
    }
    let filter = format!("label=dev.stockade.owner={}", host.owner);
    let left = docker_ok(["ps", "-a", "-q", "--filter", &filter]);
    assert!(left.lines().count() <= 1, "{left}");
    let last = acquire_idle(&host.backend, &key, &plain()).await;
    assert_eq!(sh(&last, "echo on").await, "on\n");
    dispose(host, &key).await;
}

/// One step of a host: mostly uses, now and then removals, in an order that
/// differs from host to host.
async fn race(backend: &DockerBackend, key: &SandboxKey, number: u32, step: u32) {
    let error = match (step * 7 + number * 5) % 10 {
        0 => {
            let removed = backend.dispose(&call(), key, Which::All).await;
            let removed = removed.expect("a disposal answers");
            assert!(removed.is_clean(), "{:?}", removed.failures);
            return;
        }
        1 => {
            let reaped = backend.reap(&call(), &ReapFilter::default()).await;
            let reaped = reaped.expect("a reap answers");
            assert!(reaped.is_clean(), "{:?}", reaped.failures);
            return;
        }
        pick => {
            let spec = if pick < 4 { changed() } else { plain() };
            match acquire(backend, key, &spec).await {
                Ok(sandbox) => {
                    let request = ExecRequest::shell("echo $CHANGED")
                        .build()
                        .expect("the request is valid");
                    match sandbox.exec(&call(), request).await {
                        Ok(outcome) => {
                            // Killed with its sandbox, or the right one.
                            let said = if pick < 4 { "1\n" } else { "\n" };
                            assert!(!outcome.success() || outcome.stdout == said);
                            return;
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            }
        }
    };
    let named = matches!(error.kind(), ErrorKind::Lost | ErrorKind::Conflict)
        || matches!(error.refusal(), Some(Refusal::Drifted { .. }));
    assert!(named, "host {number}, step {step}: {error:?}");
}

fn rounds() -> u32 {
    let rounds = std::env::var("STOCKADE_TEST_ROUNDS");
    rounds.map_or(1, |rounds| rounds.parse().expect("a number of rounds"))
}
