//! What an operator sees and does: lists, activity, history and death reasons,
//! usage, pruning, setting up and tearing down.

use std::sync::Arc;
use std::time::Duration;

use stockade::exec::Background;
use stockade::{
    Backend as _, ErrorKind, ExecRequest, ExecStatus, Image, InstanceId, IsolationScope, Kind,
    Sandbox, SandboxKey, SandboxSpec, SpecBuilder, Which,
};
use stockade_docker::operate::{
    Activity, Death, Happening, History, HistoryOf, PruneFilter, PrunedKind, SandboxFilter,
    SandboxState,
};
use stockade_tests::engine::{Host, PYTHON, call, docker, docker_ok, unique};

fn conversation() -> SpecBuilder {
    SandboxSpec::builder("operated")
        .image(Image::reference(PYTHON))
        .isolation_scope(IsolationScope::Conversation)
}

fn key() -> SandboxKey {
    SandboxKey::new(unique("scope"), unique("thread"), "agent")
}

async fn acquire(host: &Host, key: &SandboxKey, spec: SpecBuilder) -> Sandbox {
    let spec: Arc<SandboxSpec> = spec.build().expect("the spec is valid");
    let acquired = host.backend.acquire(&call(), key, &spec).await;
    acquired.expect("a sandbox is acquired")
}

async fn sh(sandbox: &Sandbox, line: &str) -> ExecStatus {
    let request = ExecRequest::shell(line).build().expect("it is valid");
    let outcome = sandbox.exec(&call(), request).await;
    outcome.expect("the sandbox does its job").status
}

async fn dispose(host: &Host, key: &SandboxKey) {
    let removed = host.backend.dispose(&call(), key, Which::All).await;
    assert!(removed.expect("it is disposed of").is_clean());
}

async fn activity(host: &Host, sandbox: &Sandbox) -> Option<Activity> {
    let activity = host.backend.activity(&call(), sandbox.id()).await;
    activity.expect("the engine answers")
}

async fn history(host: &Host, of: HistoryOf) -> History {
    let history = host.backend.history(&call(), &of).await;
    history.expect("the engine answers")
}

/// Waits until the engine has removed a container.
async fn gone(id: &InstanceId) {
    for _ in 0..400 {
        let found = docker_ok(["ps", "-aq", "--filter", &format!("id={id}")]);
        if found.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{id} is still there");
}

#[tokio::test]
async fn sandboxes_are_listed_with_all_that_their_labels_and_the_engine_say() {
    let (host, other) = (Host::new().await, Host::new().await);
    let none = host
        .backend
        .sandboxes(&call(), &SandboxFilter::default())
        .await;
    assert_eq!(none.expect("the engine answers"), []);
    let (key, second) = (key(), key());
    let labelled = conversation().labels([("team", "a=b, c")]);
    let sandbox = acquire(&host, &key, labelled).await;
    let _second = acquire(&host, &second, conversation()).await;
    let before = host.backend.invocations();
    let all = host
        .backend
        .sandboxes(&call(), &SandboxFilter::default())
        .await
        .expect("the engine answers");
    assert_eq!(host.backend.invocations() - before, 4);
    assert_eq!(all.len(), 2);
    let info = all.iter().find(|info| info.id == *sandbox.id());
    let info = info.expect("it is listed");
    assert_eq!((&info.owner, &info.key), (&host.owner, &key));
    assert_eq!(info.kind.as_str(), "operated");
    assert_eq!(info.state, SandboxState::Running);
    // Other tests give the same image names of their own.
    assert!(info.image_name.is_some());
    let id = docker_ok(["image", "inspect", "--format", "{{.Id}}", PYTHON]);
    assert_eq!(info.image_id, id);
    assert_eq!(info.labels["team"], "a=b, c");
    assert_eq!(info.labels.len(), 1);
    assert!(info.created.is_some() && info.protocol.is_some());
    assert!(info.definition.is_some() && info.run.is_some());
    let (age, running) = (info.age.unwrap(), info.running_for.unwrap());
    assert!(running <= age && age < Duration::from_secs(600), "{age:?}");
    let picks = [
        (SandboxFilter::default().scope(&key.scope), 1),
        (SandboxFilter::default().thread(&second.thread_id), 1),
        (
            SandboxFilter::default()
                .scope(&key.scope)
                .thread(&second.thread_id),
            0,
        ),
    ];
    for (filter, count) in picks {
        let found = host.backend.sandboxes(&call(), &filter).await;
        assert_eq!(found.expect("it answers").len(), count, "{filter:?}");
    }
    // Another owner sees its own, unless it asks for everybody's.
    let theirs = other
        .backend
        .sandboxes(&call(), &SandboxFilter::default())
        .await;
    assert_eq!(theirs.expect("it answers"), []);
    let everybodys = SandboxFilter::default().any_owner().scope(&key.scope);
    let found = other.backend.sandboxes(&call(), &everybodys).await;
    assert_eq!(found.expect("it answers")[0].id, *sandbox.id());
    dispose(&host, &key).await;
    dispose(&host, &second).await;
    host.finish().await;
    other.finish().await;
}

#[tokio::test]
async fn what_was_made_of_a_sandbox_is_a_strangers_and_stays_whatever_its_labels_say() {
    let host = Host::new().await;
    let key = key();
    let sandbox = acquire(&host, &key, conversation()).await;
    let (image, name) = (unique("stranger"), unique("stranger"));
    docker_ok(["commit", sandbox.id().as_str(), &image]);
    let stranger = docker_ok(["create", "--name", &name, "--network", "none", &image]);
    let owner = docker_ok([
        "inspect",
        "--format",
        "{{index .Config.Labels \"dev.stockade.owner\"}}",
        &name,
    ]);
    assert_eq!(owner, host.owner, "it has the labels");
    for filter in [
        SandboxFilter::default(),
        SandboxFilter::default().any_owner(),
    ] {
        let listed = host.backend.sandboxes(&call(), &filter).await;
        let listed = listed.expect("the engine answers");
        assert!(listed.iter().all(|info| info.id.as_str() != stranger));
        assert!(listed.iter().any(|info| info.id == *sandbox.id()));
    }
    let usage = host.backend.usage(&call()).await.expect("it answers");
    assert_eq!((usage.sandboxes.count, usage.images.count), (1, 0));
    let id = InstanceId::new(&stranger).expect("an id");
    let seen = history(&host, HistoryOf::instance(id)).await;
    assert_eq!((seen.events, seen.exists), (vec![], false));
    let pruned = host.backend.prune(&call(), &PruneFilter::default()).await;
    let pruned = pruned.expect("it prunes");
    assert!(pruned.items.iter().all(|item| item.name != name));
    let torn_down = host.backend.tear_down(&call()).await;
    let torn_down = torn_down.expect("it tears down");
    assert!(torn_down.is_clean(), "{:?}", torn_down.failures);
    assert_eq!(torn_down.sandboxes, 1);
    assert_eq!(
        docker_ok([
            "ps",
            "-aq",
            "--no-trunc",
            "--filter",
            &format!("id={stranger}")
        ]),
        stranger
    );
    docker_ok(["rm", "--volumes", &stranger]);
    docker_ok(["image", "rm", &image]);
    host.finish().await;
}

#[tokio::test]
async fn what_a_sandbox_does_is_told_without_using_it() {
    let host = Host::new().await;
    let key = key();
    let sandbox = acquire(&host, &key, conversation()).await;
    let request = ExecRequest::argv(["sleep", "600"])
        .background(Background::Keep)
        .build()
        .expect("it is valid");
    let process = sandbox.spawn(&call(), request).await.expect("it starts");
    let Some(Activity::Answered(doing)) = activity(&host, &sandbox).await else {
        panic!("it does not answer");
    };
    assert_eq!((doing.channels, doing.commands.len()), (1, 1));
    let command = &doing.commands[0];
    assert_eq!(
        (command.program.as_str(), command.background),
        ("sleep", true)
    );
    assert!(command.processes >= 1 && command.pid.is_some());
    assert!(doing.memory > Some(0) && doing.memory_limit > doing.memory);
    let work_dir = doing.work_dir.expect("it has a work directory");
    assert!(!work_dir.shared && work_dir.size >= 256 * 1024 * 1024);
    assert_eq!(doing.idle, Duration::ZERO);
    assert!(doing.max_age > doing.age);
    docker_ok(["pause", sandbox.id().as_str()]);
    assert_eq!(activity(&host, &sandbox).await, Some(Activity::Paused));
    let listed = host
        .backend
        .sandboxes(&call(), &SandboxFilter::default())
        .await;
    assert_eq!(listed.expect("it answers")[0].state, SandboxState::Paused);
    docker_ok(["unpause", sandbox.id().as_str()]);
    drop(process);
    dispose(&host, &key).await;
    assert_eq!(activity(&host, &sandbox).await, None);
    let nobody = InstanceId::new("no container has this id").expect("an id");
    let asked = host.backend.activity(&call(), &nobody).await;
    assert_eq!(asked.expect("it answers"), None);
    host.finish().await;
}

#[tokio::test]
async fn a_container_that_cannot_be_asked_is_silent_and_no_error() {
    let host = Host::new().await;
    let name = unique("stranger");
    let id = docker_ok([
        "run",
        "--detach",
        "--name",
        &name,
        "--network",
        "none",
        PYTHON,
        "sleep",
        "600",
    ]);
    let id = InstanceId::new(id).expect("an id");
    let asked = host.backend.activity(&call(), &id).await;
    let Some(Activity::Silent { why }) = asked.expect("the engine answers") else {
        panic!("it has no guest runtime");
    };
    assert!(!why.is_empty());
    docker_ok(["rm", "--force", &name]);
    host.finish().await;
}

#[tokio::test]
async fn a_history_tells_what_the_sandbox_and_the_engine_saw_in_the_order_of_time() {
    let host = Host::new().await;
    let key = key();
    let sandbox = acquire(&host, &key, conversation()).await;
    assert_eq!(sh(&sandbox, "exit 3").await, ExecStatus::Exited(3));
    docker_ok(["pause", sandbox.id().as_str()]);
    docker_ok(["unpause", sandbox.id().as_str()]);
    let seen = history(&host, HistoryOf::instance(sandbox.id().clone())).await;
    assert!(seen.exists && seen.death.is_none());
    assert!(seen.events.is_sorted_by_key(|event| event.at));
    let at = |wanted: &dyn Fn(&Happening) -> bool| {
        let found = seen.events.iter().position(|event| wanted(&event.what));
        found.unwrap_or_else(|| panic!("not in {:#?}", seen.events))
    };
    let order = [
        at(&|what| *what == Happening::Created),
        at(&|what| *what == Happening::Started),
        at(&|what| matches!(what, Happening::Attached { .. })),
        at(&|what| matches!(what, Happening::CommandStarted { program, .. } if program == "sh -c")),
        at(
            &|what| matches!(what, Happening::CommandEnded(end) if end.status == Some(ExecStatus::Exited(3))),
        ),
        at(&|what| *what == Happening::Paused),
        at(&|what| *what == Happening::Thawed),
    ];
    assert!(order.is_sorted(), "{order:?} of {:#?}", seen.events);
    assert!(!seen.engine_forgot);
    dispose(&host, &key).await;
    let kind: Kind = "operated".parse().expect("a kind");
    let seen = history(&host, HistoryOf::sandbox(key.clone(), kind.clone())).await;
    assert!(!seen.exists);
    assert_eq!(seen.death, Some(Death::Removed));
    // The next one of the key is told apart from the first.
    let next = acquire(&host, &key, conversation()).await;
    let seen = history(&host, HistoryOf::sandbox(key.clone(), kind)).await;
    assert!(seen.exists && seen.death.is_none());
    let of = |id: &InstanceId| {
        seen.events
            .iter()
            .filter(|event| event.instance == *id)
            .count()
    };
    assert!(of(sandbox.id()) > 0 && of(next.id()) > 0);
    dispose(&host, &key).await;
    host.finish().await;
}

#[tokio::test]
async fn every_end_has_its_reason() {
    let host = Host::new().await;
    type End = fn(&str);
    let kill: End = |id| drop(docker_ok(["kill", id]));
    let remove: End = |id| drop(docker_ok(["rm", "--force", "--volumes", id]));
    let stop: End = |id| drop(docker_ok(["stop", id]));
    let wait: End = |_| {};
    let short = Duration::from_secs(2);
    let idle = || conversation().idle_limit(short);
    let old = || conversation().idle_limit(short).max_age(short);
    let rows = [
        ("kill", kill, conversation(), vec![Death::Removed]),
        ("remove", remove, conversation(), vec![Death::Removed]),
        ("stop", stop, conversation(), vec![Death::Stopped]),
        ("idle", wait, idle(), vec![Death::IdleLimit]),
        (
            "old",
            wait,
            old(),
            vec![Death::MaximumAge, Death::IdleLimit],
        ),
    ];
    for (name, end, spec, deaths) in rows {
        let key = key();
        let sandbox = acquire(&host, &key, spec).await;
        end(sandbox.id().as_str());
        gone(sandbox.id()).await;
        let seen = history(&host, HistoryOf::instance(sandbox.id().clone())).await;
        let death = seen.death.expect("it has ended");
        assert!(deaths.contains(&death), "{name}: {death:?}");
        assert!(!seen.exists);
    }
    host.finish().await;
}

#[tokio::test]
async fn one_that_ended_and_is_kept_tells_why_even_when_the_engine_has_forgotten() {
    let host = Host::new().await;
    let key = key();
    let kept = conversation().storage(stockade::spec::Storage::Disk);
    let sandbox = acquire(&host, &key, kept).await;
    docker_ok(["kill", sandbox.id().as_str()]);
    let seen = history(&host, HistoryOf::instance(sandbox.id().clone())).await;
    assert!(seen.exists);
    let death = seen.death.expect("it has ended");
    assert_eq!(death.as_str(), "killed");
    let listed = host
        .backend
        .sandboxes(&call(), &SandboxFilter::default())
        .await;
    let listed = listed.expect("it answers");
    assert_eq!(listed[0].state, SandboxState::Stopped);
    assert_eq!(listed[0].running_for, None);
    assert_eq!(activity(&host, &sandbox).await, None);
    dispose(&host, &key).await;
    host.finish().await;
}

#[tokio::test]
async fn of_what_never_was_nothing_is_known_and_that_is_said() {
    let host = Host::new().await;
    let nobody = InstanceId::new("0".repeat(64)).expect("an id");
    let seen = history(&host, HistoryOf::instance(nobody)).await;
    assert_eq!((seen.events, seen.death), (vec![], None));
    assert!(!seen.exists && seen.engine_forgot);
    host.finish().await;
}

#[tokio::test]
async fn usage_moves_with_what_a_sandbox_writes() {
    let host = Host::new().await;
    let before = host.backend.usage(&call()).await.expect("it answers");
    assert_eq!((before.sandboxes.count, before.work_dirs.count), (0, 0));
    let key = key();
    let kept = conversation().storage(stockade::spec::Storage::Disk);
    let sandbox = acquire(&host, &key, kept).await;
    let written = sh(&sandbox, "head -c 20000000 /dev/urandom > data").await;
    assert_eq!(written, ExecStatus::Exited(0));
    let after = host.backend.usage(&call()).await.expect("it answers");
    assert_eq!((after.sandboxes.count, after.work_dirs.count), (1, 1));
    assert!(after.work_dirs.bytes >= 19_000_000, "{after:?}");
    assert_eq!((after.work_dirs.freeable, after.sandboxes.freeable), (0, 0));
    assert!(after.runtimes.count >= 1 && after.runtimes.bytes > 500_000);
    dispose(&host, &key).await;
    host.finish().await;
}

#[tokio::test]
async fn a_prune_takes_the_runtimes_of_other_builds_and_leaves_what_is_used_or_a_strangers() {
    let host = Host::new().await;
    let key = key();
    let sandbox = acquire(&host, &key, conversation()).await;
    let ours = runtime_of(&sandbox);
    let digits = &format!("{:012x}", std::process::id());
    let old = format!("stockade-runtime-{digits}-linux-amd64");
    let used = format!("{old}-1");
    let foreign = unique("stockade-test-volume");
    let role = "dev.stockade.role=runtime";
    for volume in [&old, &used] {
        docker_ok(["volume", "create", "--label", role, volume]);
    }
    docker_ok(["volume", "create", "--label", role, &foreign]);
    let unlabelled = format!("{old}-2");
    docker_ok(["volume", "create", &unlabelled]);
    let holder = unique("holder");
    let mount = format!("{used}:/x");
    docker_ok(["create", "--name", &holder, "--volume", &mount, PYTHON]);
    let dry = host
        .backend
        .prune(&call(), &PruneFilter::default().all().dry_run())
        .await
        .expect("it tells");
    let named = |items: &[stockade_docker::operate::PrunedItem], name: &str| {
        items
            .iter()
            .any(|item| item.name == name && item.what == PrunedKind::Runtime)
    };
    assert!(dry.dry_run && named(&dry.items, &old));
    assert!(!named(&dry.items, &used) && !named(&dry.items, &ours));
    docker_ok(["volume", "inspect", &old]);
    let pruned = host.backend.prune(&call(), &PruneFilter::default()).await;
    let pruned = pruned.expect("it prunes");
    assert!(pruned.is_clean(), "{:?}", pruned.failures);
    assert!(named(&pruned.items, &old) || !docker(["volume", "inspect", &old]).status.success());
    assert!(!docker(["volume", "inspect", &old]).status.success());
    for kept in [&used, &foreign, &unlabelled, &ours] {
        docker_ok(["volume", "inspect", kept]);
    }
    docker_ok(["rm", "--force", &holder]);
    docker_ok(["volume", "rm", &used, &foreign]);
    docker_ok(["volume", "rm", &unlabelled]);
    dispose(&host, &key).await;
    host.finish().await;
}

/// The runtime volume that a sandbox has.
fn runtime_of(sandbox: &Sandbox) -> String {
    let mounts = docker_ok([
        "inspect",
        "--format",
        "{{range .Mounts}}{{if eq .Destination \"/.stockade\"}}{{.Name}}{{end}}{{end}}",
        sandbox.id().as_str(),
    ]);
    assert!(mounts.starts_with("stockade-runtime-"), "{mounts}");
    mounts
}

#[tokio::test]
async fn what_is_set_up_costs_the_first_acquire_of_another_host_nothing_more() {
    let host = Host::new().await;
    let none = host.backend.set_up(&call(), &[]).await;
    assert_eq!(
        none.expect_err("of what?").kind(),
        ErrorKind::InvalidRequest
    );
    for _ in 0..2 {
        let set_up = host
            .backend
            .set_up(&call(), &[Image::reference(PYTHON)])
            .await;
        let set_up = set_up.expect("it sets up");
        assert!(set_up.runtime_volume.starts_with("stockade-runtime-"));
        docker_ok(["volume", "inspect", &set_up.runtime_volume]);
        let [image] = &set_up.images[..] else {
            panic!("{set_up:?}");
        };
        assert_eq!(
            (image.asked.as_str(), image.origin.as_str()),
            (PYTHON, "present")
        );
    }
    // Of its own, too: what it has seen, it knows.
    let before = host.backend.invocations();
    let key = key();
    let _sandbox = acquire(&host, &key, conversation()).await;
    assert_eq!(host.backend.invocations() - before, 1);
    dispose(&host, &key).await;
    host.finish().await;
}

#[tokio::test]
async fn a_tear_down_takes_what_is_in_use_and_leaves_nothing_of_the_owner() {
    let (host, other) = (Host::new().await, Host::new().await);
    let (key, theirs) = (key(), key());
    let sandbox = acquire(&host, &key, conversation()).await;
    let kept = conversation().storage(stockade::spec::Storage::Disk);
    let _kept = acquire(&host, &self::key(), kept).await;
    let their_sandbox = acquire(&other, &theirs, conversation()).await;
    let request = ExecRequest::argv(["sleep", "600"]).build().expect("valid");
    let mut process = sandbox.spawn(&call(), request).await.expect("it starts");
    let torn_down = host.backend.tear_down(&call()).await.expect("it does");
    assert!(torn_down.is_clean(), "{:?}", torn_down.failures);
    assert_eq!(torn_down.sandboxes, 2);
    assert_eq!(host.left(), Vec::<String>::new());
    let lost = process.wait().await.expect_err("it is gone");
    assert_eq!(lost.kind(), ErrorKind::Lost);
    assert_eq!(sh(&their_sandbox, "true").await, ExecStatus::Exited(0));
    // And it begins anew.
    let _again = acquire(&host, &key, conversation()).await;
    dispose(&host, &key).await;
    dispose(&other, &theirs).await;
    host.finish().await;
    other.finish().await;
}
