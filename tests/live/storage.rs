//! Where the work directory is kept: whose it is, what of it survives, and
//! that nothing of it is left.

use std::sync::Arc;
use std::time::Duration;

use stockade::spec::{Hardening, Image, SpecBuilder, Storage};
use stockade::{
    Backend as _, Error, ExecRequest, ReapFilter, Refusal, Sandbox, SandboxKey, SandboxSpec, Which,
};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::engine::{Host, PYTHON, call, docker, docker_ok, left_of, remaps_ids, unique};
use stockade_tests::faulty::{self, Fault};

const UID_12345: &str = "stockade-test/uid-12345:1";
const VOLUME: &str = "stockade-test/volume:1";
const WORKDIR_CONTENT: &str = "stockade-test/workdir-content:1";

/// Commands that bind a backend and learn of an image, before any sandbox is made.
const BEFORE: u32 = 5;

/// Commands that make a sandbox with its work directory on disk.
const ON_DISK: u32 = 4;

/// A conversation's sandbox.
fn conversation(image: &str, storage: Storage) -> SpecBuilder {
    let builder = SandboxSpec::builder("test")
        .image(Image::reference(image))
        .storage(storage);
    match storage {
        Storage::Root => builder.hardening(Hardening::AsImage),
        _ => builder,
    }
}

fn key() -> SandboxKey {
    SandboxKey::new("tests", unique("storage"), "agent")
}

async fn acquire(host: &Host, key: &SandboxKey, spec: SpecBuilder) -> Result<Sandbox, Error> {
    let spec = spec.build().expect("the spec is valid");
    host.backend.acquire(&call(), key, &spec).await
}

async fn sh(sandbox: &Sandbox, line: &str) -> String {
    let request = ExecRequest::shell(line).build().expect("a request");
    let outcome = sandbox.exec(&call(), request).await.expect("it runs");
    format!("{}{}", outcome.stdout_text(), outcome.stderr_text())
}

/// Removes what a key has, and says how many sandboxes that were.
async fn remove(backend: &DockerBackend, key: &SandboxKey) -> u64 {
    let removed = backend.dispose(&call(), key, Which::All).await;
    let removed = removed.expect("it is disposed of");
    assert!(removed.is_clean(), "{:?}", removed.failures);
    removed.count
}

async fn dispose(host: Host, key: &SandboxKey) {
    remove(&host.backend, key).await;
    host.finish().await;
}

async fn close(backend: &DockerBackend) {
    let closed = backend.close(&call()).await.expect("it closes");
    assert!(closed.is_clean(), "{:?}", closed.failures);
}

/// Ends a container as an engine or its host might, and waits until it has.
fn stop(sandbox: &Sandbox) {
    docker_ok(["kill", sandbox.id().as_str()]);
    // One that is gone cannot be waited for.
    let _ = docker(["wait", sandbox.id().as_str()]);
}

fn refusal(result: Result<Sandbox, Error>) -> Refusal {
    let error = result.expect_err("it is not served");
    error.refusal().expect("it is refused").clone()
}

#[tokio::test]
async fn a_work_directory_on_disk_is_the_guests_own_and_survives_a_stop() {
    let (host, key) = (Host::new().await, key());
    let spec = || conversation(PYTHON, Storage::Disk).work_dir("/srv/app/work");
    let sandbox = acquire(&host, &key, spec()).await.unwrap();
    assert!(sandbox.freshly_created());
    let seen = sh(&sandbox, "pwd; stat -c '%u:%g %a' .; ls -A; git init -q . && echo kept > f; touch /tmp/t; df . | tail -1 | cut -c1-5").await;
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("/srv/app/work"));
    assert_eq!(lines.next(), Some("65534:65534 700"));
    assert_ne!(lines.next(), Some("tmpfs"), "{seen}");
    stop(&sandbox);

    let again = acquire(&host, &key, spec()).await.unwrap();
    assert!(!again.freshly_created());
    assert_eq!(again.id(), sandbox.id());
    let seen = sh(
        &again,
        "cat f; git status -s; ls -A /tmp; stat -c '%u:%g %a' .; touch more && echo ok",
    )
    .await;
    assert_eq!(seen, "kept\n?? f\n65534:65534 700\nok\n");
    dispose(host, &key).await;
}

#[tokio::test]
async fn the_images_own_directory_keeps_its_content_and_survives_a_stop() {
    let (host, key) = (Host::new().await, key());
    let spec = || conversation(WORKDIR_CONTENT, Storage::Root);
    let sandbox = acquire(&host, &key, spec()).await.unwrap();
    assert!(sandbox.freshly_created());
    assert_eq!(sh(&sandbox, "ls; echo mine > f").await, "kept.txt\n");
    stop(&sandbox);
    // Another process knows nothing of it but what the engine says.
    let owner = host.owner.clone();
    let other = DockerBackend::connect(&call(), DockerConfig::new(&owner))
        .await
        .unwrap();
    let other = Host {
        backend: other,
        owner,
    };
    let again = acquire(&other, &key, spec()).await.unwrap();
    assert!(!again.freshly_created());
    assert_eq!(sh(&again, "ls; cat f").await, "f\nkept.txt\nmine\n");
    dispose(host, &key).await;
}

#[tokio::test]
async fn an_idle_end_keeps_what_is_kept_and_takes_what_is_in_memory() {
    for storage in [Storage::Disk, Storage::Root, Storage::Tmpfs] {
        let (host, key) = (Host::new().await, key());
        let dir = if storage == Storage::Root {
            "/srv"
        } else {
            "/work"
        };
        let spec = || {
            conversation(PYTHON, storage)
                .work_dir(dir)
                .idle_limit(Duration::from_secs(2))
        };
        let sandbox = acquire(&host, &key, spec()).await.unwrap();
        sh(&sandbox, "echo kept > f").await;
        let id = sandbox.id().clone();
        drop(sandbox);
        let _ = docker(["wait", id.as_str()]);
        let again = acquire(&host, &key, spec()).await.unwrap();
        let kept = storage != Storage::Tmpfs;
        assert_eq!(again.freshly_created(), !kept, "{storage}");
        assert_eq!(*again.id() == id, kept, "{storage}");
        let seen = sh(&again, "cat f 2>/dev/null || echo gone").await;
        assert_eq!(seen, if kept { "kept\n" } else { "gone\n" }, "{storage}");
        dispose(host, &key).await;
    }
}

#[tokio::test]
async fn a_calls_own_sandbox_takes_its_disk_along_when_it_ends() {
    let (host, key) = (Host::new().await, key().with_call("1"));
    let spec = conversation(PYTHON, Storage::Disk).isolation_scope(stockade::IsolationScope::Call);
    let sandbox = acquire(&host, &key, spec).await.unwrap();
    assert_eq!(host.left().len(), 2, "a container and its volume");
    stop(&sandbox);
    // The engine says that it has ended before it removes it.
    let gone = async {
        while !host.left().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    assert!(gone.is_ok(), "left behind: {:?}", host.left());
}

#[tokio::test]
async fn another_storage_is_drift_while_it_runs_and_a_new_start_afterwards() {
    let (host, key) = (Host::new().await, key());
    let kept = |storage| conversation(PYTHON, storage).hardening(Hardening::AsImage);
    let disk = acquire(&host, &key, kept(Storage::Disk)).await.unwrap();
    sh(&disk, "echo old > f").await;
    for storage in [Storage::Tmpfs, Storage::Root] {
        let spec = kept(storage).work_dir("/srv");
        let Refusal::Drifted { fields } = refusal(acquire(&host, &key, spec).await) else {
            panic!("{storage} was not refused as drift");
        };
        assert_eq!(fields, ["storage", "work_dir"], "{storage}");
    }
    stop(&disk);
    let tmpfs = acquire(&host, &key, kept(Storage::Tmpfs)).await.unwrap();
    assert!(tmpfs.freshly_created());
    assert_eq!(sh(&tmpfs, "ls -A").await, "");
    assert_eq!(host.left().len(), 2, "nothing of the old one");
    dispose(host, &key).await;
}

#[tokio::test]
async fn content_of_the_image_is_never_hidden() {
    let (host, key) = (Host::new().await, key());
    for storage in [Storage::Tmpfs, Storage::Disk] {
        let refused = refusal(acquire(&host, &key, conversation(WORKDIR_CONTENT, storage)).await);
        assert_eq!(refused.code(), "work_dir_hides_content", "{storage}");
    }
    host.finish().await;
}

#[tokio::test]
async fn a_directory_that_the_guest_could_not_use_is_refused_before_anything_is_made() {
    let host = Host::new().await;
    let rows = [
        (PYTHON, "/absent", "work_dir_not_directory"),
        (PYTHON, "/etc/passwd", "work_dir_not_directory"),
        (PYTHON, "/bin", "work_dir_not_directory"),
        (UID_12345, "/srv", "storage_mismatch"),
        (UID_12345, "/root", "storage_mismatch"),
        (VOLUME, "/data", "storage_mismatch"),
    ];
    for (image, dir, code) in rows {
        let spec = conversation(image, Storage::Root).work_dir(dir);
        let refused = refusal(acquire(&host, &key(), spec).await);
        assert_eq!(refused.code(), code, "{image} {dir}: {refused}");
    }
    host.finish().await;
}

#[tokio::test]
async fn a_directory_that_is_open_to_the_images_user_only_is_that_users_to_work_in() {
    let image =
        Committed::new("mkdir -m 700 /own && echo kept > /own/f && chown -R 12345:12345 /own");
    let (host, key) = (Host::new().await, key());
    let spec = |storage| conversation(&image.0, storage).work_dir("/own");
    let refused = refusal(acquire(&host, &key, spec(Storage::Tmpfs)).await);
    assert_eq!(refused.code(), "work_dir_hides_content", "{refused}");
    let sandbox = acquire(&host, &key, spec(Storage::Root)).await.unwrap();
    assert_eq!(
        sh(&sandbox, "cat f; id -u; touch g && ls").await,
        "kept\n12345\nf\ng\n"
    );
    dispose(host, &key).await;
}

/// An image of the Python image's content and what a shell line made of it,
/// whose user is 12345.
struct Committed(String);

impl Committed {
    fn new(line: &str) -> Self {
        let name = unique("stockade-test-committed").to_lowercase();
        docker_ok([
            "run",
            "--name",
            &name,
            "--network=none",
            "--user=0",
            PYTHON,
            "/bin/sh",
            "-c",
            line,
        ]);
        let user = ["commit", "--change=USER 12345", &name, &name];
        docker_ok(user);
        docker_ok(["rm", &name]);
        Self(name)
    }
}

impl Drop for Committed {
    fn drop(&mut self) {
        docker(["rmi", "--force", &self.0]);
    }
}

#[tokio::test]
async fn a_volume_that_outlived_its_container_goes_with_dispose_and_with_reap() {
    for by_reap in [false, true] {
        let (host, key) = (Host::new().await, key());
        let sandbox = acquire(&host, &key, conversation(PYTHON, Storage::Disk))
            .await
            .unwrap();
        docker_ok(["rm", "--force", sandbox.id().as_str()]);
        assert_eq!(host.left().len(), 1, "a volume");
        if by_reap {
            let reaped = host
                .backend
                .reap(&call(), &ReapFilter::everything())
                .await
                .unwrap();
            assert_eq!(
                (reaped.sandboxes, reaped.others),
                (0, 1),
                "{:?}",
                reaped.failures
            );
            host.finish().await;
        } else {
            dispose(host, &key).await;
        }
    }
}

#[tokio::test]
async fn reap_and_the_disposal_of_a_conversation_take_stopped_sandboxes_with_their_volumes() {
    for by_reap in [false, true] {
        let host = Host::new().await;
        let thread = unique("thread");
        for (agent, storage) in [
            ("a", Storage::Disk),
            ("b", Storage::Root),
            ("c", Storage::Tmpfs),
        ] {
            let key = SandboxKey::new("tests", &thread, agent);
            let dir = if storage == Storage::Root {
                "/srv"
            } else {
                "/work"
            };
            let sandbox = acquire(&host, &key, conversation(PYTHON, storage).work_dir(dir))
                .await
                .unwrap();
            if storage != Storage::Tmpfs {
                stop(&sandbox);
            }
        }
        let (count, clean) = if by_reap {
            let reaped = host
                .backend
                .reap(&call(), &ReapFilter::everything())
                .await
                .unwrap();
            (reaped.sandboxes, reaped.failures.is_empty())
        } else {
            let removed = host
                .backend
                .dispose_scope(&call(), "tests", &thread)
                .await
                .unwrap();
            (removed.count, removed.is_clean())
        };
        assert!(clean);
        assert_eq!(count, 3);
        host.finish().await;
    }
}

#[tokio::test]
async fn each_storage_costs_what_is_promised() {
    let host = Host::new().await;
    let spent = |before: u64| host.backend.invocations() - before;
    let conversation_of = |storage| conversation(PYTHON, storage).work_dir("/srv");
    for (storage, scope, making) in [
        (Storage::Tmpfs, "conversation", 1),
        (Storage::Root, "conversation", 1),
        (Storage::Disk, "conversation", 5),
        (Storage::Disk, "call", 4),
    ] {
        let is_call = scope == "call";
        let key = if is_call { key().with_call("1") } else { key() };
        let spec = || match is_call {
            true => conversation_of(storage).isolation_scope(stockade::IsolationScope::Call),
            false => conversation_of(storage),
        };
        // The image is known from here on.
        drop(acquire(&host, &key, spec()).await.unwrap());
        remove(&host.backend, &key).await;

        let before = host.backend.invocations();
        let sandbox = acquire(&host, &key, spec()).await.unwrap();
        assert_eq!(spent(before), making, "{storage} {scope}: made");
        let before = host.backend.invocations();
        acquire(&host, &key, spec()).await.unwrap();
        assert_eq!(spent(before), 1, "{storage} {scope}: found running");
        if storage != Storage::Tmpfs && !is_call {
            stop(&sandbox);
            let before = host.backend.invocations();
            acquire(&host, &key, spec()).await.unwrap();
            assert_eq!(spent(before), 2, "{storage} {scope}: started again");
        }
        let before = host.backend.invocations();
        remove(&host.backend, &key).await;
        assert!(spent(before) <= 2, "{storage} {scope}: disposed of");
    }
    host.finish().await;
}

#[tokio::test]
async fn acquires_at_once_from_several_backends_share_one_disk() {
    let first = Host::new().await;
    let key = key();
    let spec = conversation(PYTHON, Storage::Disk).build().unwrap();
    // The runtime is there when they begin.
    let warm_up = SandboxKey::new("tests", unique("warm-up"), "agent");
    drop(
        first
            .backend
            .acquire(&call(), &warm_up, &spec)
            .await
            .unwrap(),
    );
    remove(&first.backend, &warm_up).await;
    let acquires = (0..4).map(async |_| {
        let config = DockerConfig::new(&first.owner);
        let backend = DockerBackend::connect(&call(), config).await.unwrap();
        let sandbox = backend.acquire(&call(), &key, &spec).await.unwrap();
        sh(&sandbox, "echo x >> f").await;
        (sandbox.id().clone(), sandbox.freshly_created())
    });
    let acquired = futures_util::future::join_all(acquires).await;
    assert!(
        acquired.iter().all(|(id, _)| *id == acquired[0].0),
        "{acquired:?}"
    );
    assert_eq!(
        acquired.iter().filter(|(_, fresh)| *fresh).count(),
        1,
        "{acquired:?}"
    );
    let sandbox = first.backend.acquire(&call(), &key, &spec).await.unwrap();
    assert_eq!(sh(&sandbox, "wc -l < f").await, "4\n");
    dispose(first, &key).await;
}

/// A backend whose client misbehaves at one of its commands.
async fn faulty_at(owner: &str, folder: &std::path::Path, at: u32, fault: Fault) -> DockerBackend {
    let config = DockerConfig::new(owner)
        .docker_path(faulty::client(folder, at, fault))
        .command_timeout(Duration::from_secs(4));
    let bound = DockerBackend::connect(&call(), config).await;
    bound.expect("the commands before it work")
}

/// A call's own sandbox on disk: nothing is looked for before it is made.
fn on_disk() -> Arc<SandboxSpec> {
    conversation(PYTHON, Storage::Disk)
        .isolation_scope(stockade::IsolationScope::Call)
        .build()
        .expect("the spec is valid")
}

#[tokio::test]
async fn a_step_that_fails_on_the_way_to_a_disk_leaves_nothing() {
    drop(warm().await);
    for fault in [Fault::Fails, Fault::HalfWay, Fault::Killed, Fault::Hangs] {
        for at in BEFORE + 1..=BEFORE + ON_DISK {
            let folder = tempfile::tempdir().unwrap();
            let owner = unique("storage");
            let backend = faulty_at(&owner, folder.path(), at, fault).await;
            let key = key().with_call("1");
            let result = backend.acquire(&call(), &key, &on_disk()).await;
            assert!(
                faulty::starts(folder.path()) >= at as usize,
                "{fault:?} at {at}"
            );
            // The last command removes the holder, which is tried again.
            let is_last = at == BEFORE + ON_DISK;
            assert_eq!(result.is_ok(), is_last, "{fault:?} at {at}: {result:?}");
            if is_last {
                assert_eq!(remove(&backend, &key).await, 1, "{fault:?} at {at}");
            }
            close(&backend).await;
            assert_eq!(left_of(&owner), Vec::<String>::new(), "{fault:?} at {at}");
        }
    }
}

#[tokio::test]
async fn a_caller_who_leaves_on_the_way_to_a_disk_leaves_nothing() {
    drop(warm().await);
    for at in BEFORE + 1..=BEFORE + ON_DISK {
        let folder = tempfile::tempdir().unwrap();
        let owner = unique("storage");
        let backend = faulty_at(&owner, folder.path(), at, Fault::Late).await;
        let (key, spec, call_) = (key().with_call("1"), on_disk(), call());
        {
            let acquire = backend.acquire(&call_, &key, &spec);
            tokio::select! {
                made = acquire => panic!("made before it was left, at {at}: {made:?}"),
                () = started(folder.path(), at) => {}
            }
        }
        close(&backend).await;
        assert_eq!(left_of(&owner), Vec::<String>::new(), "at {at}");
    }
}

#[tokio::test]
async fn what_a_dead_host_left_half_made_goes_with_the_disposal_of_its_key() {
    drop(warm().await);
    let folder = tempfile::tempdir().unwrap();
    let owner = unique("storage");
    // It stands still between the volume and the sandbox, as if it were dead.
    let at = BEFORE + 2;
    let backend = faulty_at(&owner, folder.path(), at, Fault::Hangs).await;
    let (key, spec, call_) = (key().with_call("1"), on_disk(), call());
    let acquire = backend.acquire(&call_, &key, &spec);
    let other = async {
        started(folder.path(), at).await;
        assert_eq!(left_of(&owner).len(), 2, "a holder and its volume");
        let config = DockerConfig::new(&owner);
        let other = DockerBackend::connect(&call(), config).await.unwrap();
        assert_eq!(remove(&other, &key).await, 0, "a holder is no sandbox");
        assert_eq!(left_of(&owner), Vec::<String>::new());
    };
    let (acquired, ()) = tokio::join!(acquire, other);
    assert!(acquired.is_err(), "{acquired:?}");
    close(&backend).await;
    assert_eq!(left_of(&owner), Vec::<String>::new());
}

/// An engine that has the guest runtime.
async fn warm() -> Host {
    let (host, key) = (Host::new().await, key().with_call("1"));
    drop(
        host.backend
            .acquire(&call(), &key, &on_disk())
            .await
            .expect("a sandbox is acquired"),
    );
    remove(&host.backend, &key).await;
    host
}

/// Waits until the client of a folder was started that often.
async fn started(folder: &std::path::Path, at: u32) {
    while faulty::starts(folder) < at as usize {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_work_directory_is_the_guests_own_also_where_ids_are_remapped() {
    let remapped = remaps_ids();
    for storage in [Storage::Tmpfs, Storage::Disk] {
        let (host, key) = (Host::new().await, key());
        let sandbox = acquire(&host, &key, conversation(PYTHON, storage))
            .await
            .unwrap();
        let expected = if remapped && storage == Storage::Tmpfs {
            // The mount's ids are the engine's own there, so it has no owner.
            "1777"
        } else {
            "65534:65534 700"
        };
        let seen = sh(
            &sandbox,
            "stat -c '%u:%g %a' .; echo it > f && cat f && mkdir d && rm -r f d && id -u",
        )
        .await;
        let (stat, rest) = seen.split_once('\n').unwrap();
        assert!(stat.ends_with(expected), "{storage}: {seen}");
        assert_eq!(rest, "it\n65534\n", "{storage}");
        dispose(host, &key).await;
    }
}
