//! Directories as images: built once, found again, seen to change, and refused
//! with the reason.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stockade::spec::PullPolicy;
use stockade::{
    Backend as _, Call, Error, ErrorKind, ExecRequest, Image, IsolationScope, Refusal, Sandbox,
    SandboxKey, SandboxSpec, Which,
};
use stockade_docker::operate::{ImageOrigin, PruneFilter, PrunedKind};
use stockade_docker::{DockerBackend, DockerConfig, Progress};
use stockade_tests::engine::{Host, PYTHON, call, docker, docker_ok, unique};
use tempfile::TempDir;
use tokio::time::Instant;

/// A build directory whose image says what its file says.
fn recipe(says: &str) -> TempDir {
    let folder = TempDir::new().expect("there is room");
    let steps = format!("FROM {PYTHON}\nCOPY says /says\nRUN chmod 644 /says\n");
    fs::write(folder.path().join("Dockerfile"), steps).expect("it is written");
    fs::write(folder.path().join("says"), says).expect("it is written");
    folder
}

fn dockerfile(steps: &str) -> TempDir {
    let folder = TempDir::new().expect("there is room");
    fs::write(folder.path().join("Dockerfile"), steps).expect("it is written");
    folder
}

fn spec(image: Image) -> Arc<SandboxSpec> {
    SandboxSpec::builder("built")
        .image(image)
        .isolation_scope(IsolationScope::Conversation)
        .build()
        .expect("the spec is valid")
}

fn key() -> SandboxKey {
    SandboxKey::new("builds", unique("thread"), "agent")
}

async fn acquire(backend: &DockerBackend, image: Image) -> Result<(SandboxKey, Sandbox), Error> {
    let key = key();
    let sandbox = backend.acquire(&call(), &key, &spec(image)).await?;
    Ok((key, sandbox))
}

async fn says(sandbox: &Sandbox) -> String {
    let request = ExecRequest::argv(["cat", "/says"]).build().expect("valid");
    let outcome = sandbox.exec(&call(), request).await.expect("it runs");
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

async fn refused(image: Image) -> Error {
    let host = Host::new().await;
    let error = acquire(&host.backend, image).await.expect_err("refused");
    host.finish().await;
    error
}

/// Tears down. The engine removes no image while it is busy with any
/// container, such as one that another test has paused, so it is asked again.
async fn torn_down(host: &Host) {
    let mut torn_down = host.backend.tear_down(&call()).await;
    for _ in 0..2 {
        if torn_down
            .as_ref()
            .is_ok_and(|torn_down| torn_down.is_clean())
        {
            return;
        }
        torn_down = host.backend.tear_down(&call()).await;
    }
    let torn_down = torn_down.expect("it tears down");
    assert!(torn_down.is_clean(), "{:?}", torn_down.failures);
}

/// Removes everything of a host, its images with it.
async fn tear_down(host: Host) {
    torn_down(&host).await;
    assert_eq!(images(&host.owner), Vec::<String>::new());
    host.finish().await;
}

/// Ids of the images that carry an owner's label.
fn images(owner: &str) -> Vec<String> {
    let filter = format!("label=dev.stockade.owner={owner}");
    let ids = docker_ok(["image", "ls", "--no-trunc", "-q", "--filter", &filter]);
    let mut ids: Vec<_> = ids.lines().map(str::to_owned).collect();
    ids.dedup();
    ids
}

#[tokio::test]
async fn a_directory_is_built_once_and_found_again_by_another_host() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let host = Host::with(|config| {
        config.on_progress(move |progress| {
            if let Progress::Build { directory, line } = progress {
                told.lock().unwrap().push((directory, line));
            }
        })
    })
    .await;
    let folder = recipe("first\n");
    let image = || Image::build(folder.path());
    let (_, sandbox) = acquire(&host.backend, image()).await.expect("it is built");
    assert_eq!(says(&sandbox).await, "first\n");
    let told = std::mem::take(&mut *lines.lock().unwrap());
    assert!(
        told.iter().any(|(_, line)| line.contains("COPY says")),
        "{told:?}"
    );
    assert!(
        told.iter()
            .all(|(at, _)| at.ends_with(folder.path().file_name().unwrap()))
    );
    // What this process knows costs nothing, even when every time has changed.
    let before = host.backend.invocations();
    let (_, _second) = acquire(&host.backend, image()).await.expect("it is known");
    assert_eq!(host.backend.invocations() - before, 1);
    fs::write(folder.path().join("says"), "first\n").expect("it is written");
    let (_, third) = acquire(&host.backend, image()).await.expect("it is known");
    assert_eq!(says(&third).await, "first\n");
    assert!(lines.lock().unwrap().is_empty(), "nothing was built again");
    assert_eq!(images(&host.owner).len(), 1);
    // Another host of the owner finds it, also where none may be built.
    let beside = DockerBackend::connect(&call(), DockerConfig::new(&host.owner)).await;
    let beside = beside.expect("the engine is there");
    let never = image().with_pull(PullPolicy::Never);
    let (_, found) = acquire(&beside, never).await.expect("it is found");
    assert_eq!(says(&found).await, "first\n");
    let set_up = beside.set_up(&call(), &[image()]).await.expect("it is");
    assert_eq!(set_up.images[0].origin, ImageOrigin::Present);
    assert_eq!(images(&host.owner), [set_up.images[0].id.clone()]);
    tear_down(host).await;
}

#[tokio::test]
async fn a_change_of_the_directory_is_seen_and_an_idle_sandbox_of_before_is_replaced() {
    let host = Host::new().await;
    let folder = recipe("first\n");
    let image = || Image::build(folder.path());
    let (key, sandbox) = acquire(&host.backend, image()).await.expect("it is built");
    assert_eq!(says(&sandbox).await, "first\n");
    drop(sandbox);
    fs::write(folder.path().join("says"), "second\n").expect("it is written");
    let again = host.backend.acquire(&call(), &key, &spec(image())).await;
    let again = again.expect("it is replaced");
    assert_eq!(says(&again).await, "second\n");
    // Nothing of the first is needed any more, and nothing else goes.
    let pruned = host.backend.prune(&call(), &PruneFilter::default()).await;
    let pruned = pruned.expect("it prunes");
    assert!(pruned.is_clean(), "{:?}", pruned.failures);
    let of_images = |what: &PrunedKind| *what == PrunedKind::Image;
    let count = pruned.items.iter().filter(|item| of_images(&item.what));
    assert_eq!(count.count(), 1, "{:?}", pruned.items);
    assert_eq!(images(&host.owner).len(), 1);
    // What a container has stays, however much is asked for.
    let all = PruneFilter::default().all_images();
    let pruned = host.backend.prune(&call(), &all).await.expect("it prunes");
    assert!(!pruned.items.iter().any(|item| of_images(&item.what)));
    let removed = host.backend.dispose(&call(), &key, Which::All).await;
    assert!(removed.expect("it goes").is_clean());
    let pruned = host.backend.prune(&call(), &all).await.expect("it prunes");
    assert!(pruned.items.iter().any(|item| of_images(&item.what)));
    assert_eq!(images(&host.owner), Vec::<String>::new());
    // The next acquire builds it again, although it was known.
    let (_, anew) = acquire(&host.backend, image()).await.expect("it is built");
    assert_eq!(says(&anew).await, "second\n");
    tear_down(host).await;
}

#[tokio::test]
async fn an_image_that_was_made_of_a_built_one_is_a_strangers() {
    let host = Host::new().await;
    let folder = recipe("first\n");
    let set_up = host
        .backend
        .set_up(&call(), &[Image::build(folder.path())])
        .await;
    let built = set_up.expect("it is built").images[0].id.clone();
    let name = unique("stranger");
    let container = docker_ok(["create", "--network", "none", &built, "true"]);
    let named = docker_ok(["commit", &container, &name]);
    let unnamed = docker_ok(["commit", "--message", "another", &container]);
    docker_ok(["rm", &container]);
    assert_eq!(images(&host.owner).len(), 3, "they have the labels");
    let all = PruneFilter::default().all();
    let pruned = host.backend.prune(&call(), &all).await.expect("it prunes");
    let images: Vec<_> = pruned
        .items
        .iter()
        .filter(|item| item.what == PrunedKind::Image)
        .collect();
    assert_eq!(images, Vec::<&_>::new(), "what is made of it needs it");
    for id in [&named, &unnamed, &built] {
        docker_ok(["image", "inspect", id]);
    }
    docker_ok(["image", "rm", &named]);
    docker_ok(["image", "rm", &unnamed]);
    tear_down(host).await;
}

#[tokio::test]
async fn the_labels_of_an_image_tell_whose_it_is_and_not_where_it_is_from() {
    let host = Host::new().await;
    let folder = recipe("first\n");
    let set_up = host
        .backend
        .set_up(&call(), &[Image::build(folder.path())])
        .await;
    let set_up = set_up.expect("it is built");
    assert_eq!(set_up.images[0].origin, ImageOrigin::Built);
    let id = &set_up.images[0].id;
    let seen = docker_ok([
        "image",
        "inspect",
        "--format",
        "{{json .Config.Labels}} {{.RepoTags}}",
        id,
    ]);
    assert!(
        seen.contains(&format!("\"dev.stockade.owner\":\"{}\"", host.owner)),
        "{seen}"
    );
    assert!(seen.contains("\"dev.stockade.role\":\"image\""), "{seen}");
    assert!(seen.contains("[stockade-build:"), "{seen}");
    let folder_name = folder.path().file_name().unwrap().to_str().unwrap();
    assert!(!seen.contains(folder_name), "{seen}");
    tear_down(host).await;
}

#[tokio::test]
async fn what_no_image_can_be_built_of_is_refused_before_anything_runs() {
    let folder = TempDir::new().expect("there is room");
    let missing = folder.path().join("missing");
    for (directory, said) in [
        (missing.as_path(), "no such directory"),
        (folder.path(), "no Dockerfile"),
    ] {
        let error = refused(Image::build(directory)).await;
        let Some(Refusal::BuildDirectory {
            directory: named,
            why,
        }) = error.refusal()
        else {
            panic!("{error:?}");
        };
        assert!(why.contains(said), "{error}");
        assert_eq!(Path::new(named), directory);
    }
    let other = Image::build(recipe("x").path()).with_platform("linux/s390x".parse().unwrap());
    let error = refused(other).await;
    assert!(
        matches!(error.refusal(), Some(Refusal::ImagePlatformMismatch { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_step_that_fails_is_a_refusal_with_what_it_said() {
    let folder = dockerfile(&format!(
        "FROM {PYTHON}\nRUN echo the cat sat on it >&2; exit 7\n"
    ));
    let error = refused(Image::build(folder.path())).await;
    assert!(
        matches!(error.refusal(), Some(Refusal::ImageBuild { .. })),
        "{error:?}"
    );
    assert!(
        error.detail().contains("the cat sat on it"),
        "{}",
        error.detail()
    );
    let folder = dockerfile("FRUM scratch\n");
    let error = refused(Image::build(folder.path())).await;
    assert!(
        matches!(error.refusal(), Some(Refusal::ImageBuild { .. })),
        "{error:?}"
    );
    assert!(error.detail().contains("FRUM"), "{}", error.detail());
}

#[tokio::test]
async fn a_base_image_that_cannot_be_had_is_named_as_the_reason() {
    let folder = dockerfile("FROM registry.invalid/no/such:1\n");
    let error = refused(Image::build(folder.path())).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("base image"), "{error}");
}

#[tokio::test]
async fn where_none_may_be_built_what_was_not_built_before_is_refused() {
    let folder = recipe("x");
    let error = refused(Image::build(folder.path()).with_pull(PullPolicy::Never)).await;
    let Some(Refusal::ImageBuild { why, .. }) = error.refusal() else {
        panic!("{error:?}");
    };
    assert!(why.contains("built before"), "{why}");
}

/// A directory whose build takes far longer than any test.
fn endless() -> (TempDir, String) {
    let mark = unique("endless");
    let steps = format!("FROM {PYTHON}\nLABEL mark={mark}\nRUN sleep 600\n");
    (dockerfile(&steps), mark)
}

/// Waits until no container has a label.
async fn ends(mark: &str) {
    let filter = format!("label=mark={mark}");
    let end = Instant::now() + Duration::from_secs(60);
    while !docker_ok(["ps", "-aq", "--filter", &filter]).is_empty() {
        assert!(Instant::now() < end, "the build's container is still there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until a container with a label runs.
async fn begins(mark: &str) {
    let filter = format!("label=mark={mark}");
    let end = Instant::now() + Duration::from_secs(60);
    while docker_ok(["ps", "-q", "--filter", &filter]).is_empty() {
        assert!(Instant::now() < end, "the build does not begin");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_build_that_takes_too_long_is_ended_and_leaves_no_container() {
    let (folder, mark) = endless();
    let host = Host::with(|config| config.build_timeout(Duration::from_secs(5))).await;
    let error = acquire(&host.backend, Image::build(folder.path())).await;
    let error = error.expect_err("it is ended");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("build_timeout"), "{error}");
    ends(&mark).await;
    assert_eq!(images(&host.owner), Vec::<String>::new());
    host.finish().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_its_build() {
    let (folder, mark) = endless();
    let host = Host::new().await;
    let call = Call::with_timeout(Duration::from_secs(120));
    let (key, spec) = (key(), spec(Image::build(folder.path())));
    let acquired = host.backend.acquire(&call, &key, &spec);
    let cancelled = async {
        begins(&mark).await;
        call.cancel();
    };
    let (acquired, ()) = tokio::join!(acquired, cancelled);
    let error = acquired.expect_err("it is cancelled");
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error:?}");
    ends(&mark).await;
    assert_eq!(images(&host.owner), Vec::<String>::new());
    host.finish().await;
}

#[tokio::test]
async fn hosts_that_build_the_same_at_once_all_get_it() {
    let host = Host::new().await;
    let folder = recipe(&unique("raced"));
    let mut backends = vec![host.backend.clone(), host.backend.clone()];
    for _ in 0..2 {
        let config = DockerConfig::new(&host.owner);
        let backend = DockerBackend::connect(&call(), config).await;
        backends.push(backend.expect("the engine is there"));
    }
    let acquired = backends
        .iter()
        .map(|backend| acquire(backend, Image::build(folder.path())));
    for acquired in futures_util::future::join_all(acquired).await {
        acquired.expect("each of them gets it");
    }
    assert_eq!(images(&host.owner).len(), 1);
    tear_down(host).await;
}

#[tokio::test]
async fn an_image_that_another_host_has_named_meanwhile_is_taken_by_all() {
    let folder = TempDir::new().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    // Right after the first build of ours, another host is done with its own.
    let real = docker_path();
    let script = format!(
        "#!/bin/sh
case \" $* \" in
*\" --tag\"*) ;;
*\" build \"*)
  '{real}' \"$@\" || exit
  name=$(cat '{name}') || exit 0
  for word; do case $word in --iidfile=*) file=${{word#*=}} ;; esac; done
  cp \"$file\" \"$file.ours\"
  '{real}' \"$@\" --no-cache --tag \"$name\" || exit
  exec mv \"$file.ours\" \"$file\" ;;
esac
exec '{real}' \"$@\"
",
        name = at("name").display()
    );
    fs::write(at("docker"), script).expect("it is written");
    fs::set_permissions(at("docker"), fs::Permissions::from_mode(0o755)).expect("it is set");
    let host = Host::with(|config| config.docker_path(at("docker"))).await;
    let recipe = recipe("raced\n");
    let image = || Image::build(recipe.path());
    let first = host.backend.set_up(&call(), &[image()]).await;
    let first = first.expect("it is built").images[0].id.clone();
    let format = "{{index .RepoTags 0}}";
    let name = docker_ok(["image", "inspect", "--format", format, &first]);
    docker_ok(["image", "rm", &name]);
    fs::write(at("name"), &name).expect("it is written");
    let set_up = host.backend.set_up(&call(), &[image()]).await;
    let taken = set_up.expect("it is there").images[0].clone();
    let named = docker_ok(["image", "inspect", "--format", "{{.Id}}", &name]);
    assert_eq!((&taken.id, taken.origin), (&named, ImageOrigin::Present));
    assert_eq!(images(&host.owner), [named], "nothing of ours is left");
    tear_down(host).await;
}

#[tokio::test]
async fn a_build_has_a_network_unless_the_host_wants_none() {
    let steps = format!("FROM {PYTHON}\nRUN ls /sys/class/net > /says; chmod 644 /says\n");
    for without in [false, true] {
        let host = Host::with(|config| match without {
            true => config.build_without_network(),
            false => config,
        })
        .await;
        // A step that was cached would tell of another network.
        let folder = dockerfile(&format!("{steps}LABEL x={}\n", unique("x")));
        let uncached = fs::read_to_string(folder.path().join("Dockerfile")).unwrap();
        let uncached = uncached.replace("RUN ls", &format!("RUN : {}; ls", unique("x")));
        fs::write(folder.path().join("Dockerfile"), uncached).unwrap();
        let (_, sandbox) = acquire(&host.backend, Image::build(folder.path()))
            .await
            .expect("it is built");
        let said = says(&sandbox).await;
        assert_eq!(said.contains("eth0"), !without, "{said}");
        tear_down(host).await;
    }
}

#[tokio::test]
async fn credentials_of_registries_reach_the_build_and_nothing_else_of_the_configuration() {
    let folder = TempDir::new().expect("there is room");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("config")).unwrap();
    let config = r#"{"auths":{"registry.invalid":{"auth":"dXNlcjpwYXNz"}},"proxies":{"default":{"httpProxy":"http://proxy.invalid"}},"currentContext":"default"}"#;
    fs::write(at("config/config.json"), config).unwrap();
    // Docker, as somebody sees it who stands beside.
    let real = docker_path();
    let seen = at("seen");
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *\" build \"*) cp \"${{DOCKER_CONFIG}}/config.json\" '{}' ;; esac\nexec '{real}' \"$@\"\n",
        seen.display()
    );
    fs::write(at("docker"), script).unwrap();
    fs::set_permissions(at("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut environment: std::collections::BTreeMap<_, _> = std::env::vars_os().collect();
    environment.insert("DOCKER_CONFIG".into(), at("config").into());
    let host = Host::with(|config| config.docker_path(at("docker")).environment(environment)).await;
    let built = recipe("x");
    acquire(&host.backend, Image::build(built.path()))
        .await
        .expect("it is built");
    let seen = fs::read_to_string(seen).expect("a build was seen");
    assert!(
        seen.contains("registry.invalid") && seen.contains("dXNlcjpwYXNz"),
        "{seen}"
    );
    assert!(!seen.contains("proxy.invalid"), "{seen}");
    tear_down(host).await;
}

fn docker_path() -> String {
    let path = std::env::var_os("PATH").expect("there is a PATH");
    let found = std::env::split_paths(&path).map(|folder| folder.join("docker"));
    let found = found.into_iter().find(|docker| docker.is_file());
    found.expect("docker is there").display().to_string()
}

#[tokio::test]
async fn a_build_of_always_takes_what_its_base_has_become() {
    let host = Host::new().await;
    let base = format!("{}:1", unique("stockade-test-base"));
    let make_base = |says: &str| {
        let folder = recipe(says);
        let built = docker([
            "build",
            "--quiet",
            "--tag",
            &base,
            folder.path().to_str().unwrap(),
        ]);
        assert!(built.status.success(), "{built:?}");
    };
    make_base("first\n");
    let folder = dockerfile(&format!("FROM {base}\n"));
    let image = |pull| Image::build(folder.path()).with_pull(pull);
    let (_, one) = acquire(&host.backend, image(PullPolicy::Missing))
        .await
        .expect("it is built");
    assert_eq!(says(&one).await, "first\n");
    make_base("second\n");
    let (_, same) = acquire(&host.backend, image(PullPolicy::Missing))
        .await
        .expect("it is known");
    assert_eq!(says(&same).await, "first\n");
    let (_, new) = acquire(&host.backend, image(PullPolicy::Always))
        .await
        .expect("it is built");
    assert_eq!(says(&new).await, "second\n");
    let (_, newer) = acquire(&host.backend, image(PullPolicy::Missing))
        .await
        .expect("it is found");
    assert_eq!(says(&newer).await, "second\n");
    torn_down(&host).await;
    // What lost its name cannot be told from a stranger's.
    for id in images(&host.owner) {
        docker_ok(["image", "rm", &id]);
    }
    docker(["image", "rm", "--force", &base]);
    host.finish().await;
}
