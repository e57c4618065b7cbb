//! Binding: what is told apart, what is pinned, and what is not taken along.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use docker_driver::stand_in::{Rule, StandIn};
use docker_driver::{
    BindConfig, BindError, Bounds, CallErrorKind, Docker, Environment, ListContainers,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::stand_in;

/// The stand-in's configuration with other settings of docker's.
fn config<const N: usize>(stand_in: &StandIn, settings: [(&str, &str); N]) -> BindConfig {
    let mut config = stand_in.config();
    let own = config
        .environment
        .iter()
        .filter(|(name, _)| *name != "DOCKER_HOST");
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = settings
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    config.environment = own.chain(settings).collect();
    config
}

async fn refused(stand_in: &StandIn, rules: impl IntoIterator<Item = Rule>) -> BindError {
    stand_in.follow(rules);
    Docker::bind(stand_in.config())
        .await
        .expect_err("binding fails")
}

/// The environment of the calls after binding.
async fn pinned(stand_in: &StandIn, docker: &Docker) -> std::collections::BTreeMap<String, String> {
    stand_in.follow([Rule::on(&["ps"])]);
    docker
        .query(&Bounds::patient(), ListContainers::default())
        .await
        .unwrap();
    stand_in.calls_of(&["ps"]).pop().unwrap().environment
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A configuration folder with a context `far` that has certificates, and the
/// rule that resolves it.
fn named_context(host: &str) -> (TempDir, Rule) {
    let folder = tempfile::tempdir().unwrap();
    let meta = folder.path().join("contexts/meta/abc");
    let tls = folder.path().join("contexts/tls/abc/docker");
    fs::create_dir_all(&meta).unwrap();
    fs::create_dir_all(&tls).unwrap();
    fs::write(
        meta.join("meta.json"),
        json!({"Name": "far", "Endpoints": {"docker": {"Host": host}}}).to_string(),
    )
    .unwrap();
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        fs::write(tls.join(name), name).unwrap();
    }
    let inspected = json!({
        "Name": "far",
        "Endpoints": {"docker": {"Host": host}},
        "Storage": {"MetadataPath": meta, "TLSPath": tls.parent().unwrap()},
    });
    (
        folder,
        Rule::on(&["context", "inspect"]).out(inspected.to_string()),
    )
}

#[tokio::test]
async fn it_takes_three_processes_and_says_what_it_found() {
    let stand_in = stand_in();
    let docker = Docker::bind(stand_in.config()).await.unwrap();
    let counts: Vec<_> = docker.log().counts().iter().collect();
    assert_eq!(
        counts,
        [("context inspect", 1), ("info", 1), ("version", 1)]
    );
    assert_eq!(docker.endpoint().host, "unix:///var/run/stand-in.sock");
    assert_eq!(docker.endpoint().context, "default");
    let engine = docker.engine();
    assert_eq!((engine.version.major, engine.version.minor), (28, 5));
    assert_eq!(engine.version_text, "28.5.2+dfsg4");
    assert_eq!(
        (engine.api.to_string(), engine.oldest_api.to_string()),
        ("1.51".into(), "1.24".into())
    );
    assert_eq!(
        (engine.os.as_str(), engine.architecture.as_str()),
        ("linux", "amd64")
    );
    assert_eq!(
        (engine.cgroup_version, engine.cgroup_driver.as_str()),
        (1, "cgroupfs")
    );
    assert!(engine.memory_limit && engine.swap_limit && engine.pids_limit && engine.cpu_quota);
    assert!(engine.seccomp && !engine.user_namespaces && !engine.rootless && !engine.live_restore);
    assert_eq!((engine.cpus, engine.memory_total), (2, 25_276_502_016));
    assert_eq!(engine.storage_driver, "overlay2");
}

#[tokio::test]
async fn what_docker_writes_beside_its_answers_is_no_failure() {
    let stand_in = stand_in();
    let warned =
        Rule::engine().map(|rule| rule.err("WARNING: permission denied while trying to connect"));
    stand_in.follow(warned);
    Docker::bind(stand_in.config()).await.unwrap();
}

#[tokio::test]
async fn a_client_that_is_not_there_is_named() {
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.docker_path = PathBuf::from("no-such-docker");
    let error = Docker::bind(config).await.unwrap_err();
    assert!(matches!(error, BindError::NoCli { .. }), "{error:?}");
    assert!(error.to_string().contains("no-such-docker"), "{error}");
    assert!(error.to_string().contains("docker_path"), "{error}");
}

#[tokio::test]
async fn other_products_are_recognised_and_refused_by_name() {
    let podman = r#"{"Client":{"APIVersion":"5.4.2","Version":"5.4.2","GoVersion":"go1.24","OsArch":"linux/amd64","Os":"linux"}}"#;
    let nerdctl = r#"{"Client":{"Version":"v2.0.3","GitCommit":"","GoVersion":"go1.23","Os":"linux","Arch":"amd64","Components":[{"Name":"buildctl"}]},"Server":null}"#;
    let unknown = |rule: Rule| rule.err("Error: unrecognized command").exit(125);
    for (product, says) in [
        ("podman", podman),
        ("nerdctl", nerdctl),
        ("another program", "hello\n"),
    ] {
        let stand_in = stand_in();
        let rules = [
            unknown(Rule::on(&["context"])),
            Rule::on(&["version"]).out(says),
        ];
        let error = refused(&stand_in, rules).await;
        assert!(
            matches!(&error, BindError::NotDockerCli { product: found, .. } if found == product),
            "{error:?}"
        );
        assert!(error.to_string().contains("docker_path"));
    }
}

#[tokio::test]
async fn an_answer_in_another_shape_is_another_product_too() {
    let stand_in = stand_in();
    let podman = r#"{"Name":"default","URI":"unix:///run/podman.sock"}"#;
    let rules = [
        Rule::on(&["context"]).out(podman),
        Rule::on(&["version"]).out(r#"{"Client":{"OsArch":"linux/amd64"}}"#),
    ];
    let error = refused(&stand_in, rules).await;
    assert!(matches!(error, BindError::NotDockerCli { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_executed_is_no_client() {
    let stand_in = stand_in();
    let folder = tempfile::tempdir().unwrap();
    let mut config = stand_in.config();
    config.docker_path = folder.path().join("docker");
    fs::write(&config.docker_path, "\x7fELF of another machine").unwrap();
    fs::set_permissions(&config.docker_path, fs::Permissions::from_mode(0o755)).unwrap();
    let error = Docker::bind(config).await.unwrap_err();
    assert!(matches!(error, BindError::NotDockerCli { .. }), "{error:?}");
}

#[tokio::test]
async fn another_engine_behind_dockers_client_is_refused_by_name() {
    let stand_in = stand_in();
    let version = r#"{"Client":{"Version":"28.2.2","ApiVersion":"1.41"},"Server":{"Version":"5.4.2","ApiVersion":"1.41","MinAPIVersion":"1.24","Os":"linux","Arch":"amd64","Components":[{"Name":"Podman Engine"},{"Name":"Conmon"}]}}"#;
    let error = refused(&stand_in, [Rule::on(&["version"]).out(version)]).await;
    assert!(
        matches!(&error, BindError::NotDockerEngine { product, .. } if product == "Podman Engine"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_engine_that_is_too_old_is_told_with_the_version_that_is_needed() {
    let stand_in = stand_in();
    let version = r#"{"Client":{"Version":"28.2.2","ApiVersion":"1.40"},"Server":{"Version":"19.03.15","ApiVersion":"1.40","MinAPIVersion":"1.12","Os":"linux","Arch":"amd64","Components":[{"Name":"Engine"}]}}"#;
    let error = refused(&stand_in, [Rule::on(&["version"]).out(version)]).await;
    assert!(matches!(error, BindError::TooOld { .. }), "{error:?}");
    let said = error.to_string();
    assert!(
        said.contains("19.03.15") && said.contains("20.10"),
        "{said}"
    );
}

#[tokio::test]
async fn a_context_that_does_not_exist_is_named() {
    for by_file in [false, true] {
        let stand_in = stand_in();
        let folder = tempfile::tempdir().unwrap();
        let current = if by_file {
            json!({"currentContext": "gone"})
        } else {
            json!({})
        };
        fs::write(folder.path().join("config.json"), current.to_string()).unwrap();
        let path = folder.path().to_str().unwrap();
        let named = if by_file { "" } else { "gone" };
        let config = config(
            &stand_in,
            [("DOCKER_CONFIG", path), ("DOCKER_CONTEXT", named)],
        );
        stand_in.follow([Rule::on(&["context"])
            .err("a message that nobody reads")
            .exit(1)]);
        let error = Docker::bind(config).await.unwrap_err();
        assert!(
            matches!(&error, BindError::NoContext { name } if name == "gone"),
            "{error:?}"
        );
        assert_eq!(stand_in.calls().len(), 2);
    }
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_told_from_one_that_we_may_not_ask() {
    let down =
        "Cannot connect to the Docker daemon at tcp://far:2376. Is the docker daemon running?";
    let denied = "permission denied while trying to connect to the Docker daemon socket at unix:///x: dial unix /x: connect: permission denied";
    let context = |host: &str| {
        Rule::on(&["context"])
            .out(json!({"Name": "default", "Endpoints": {"docker": {"Host": host}}}).to_string())
    };
    let version = |text: &str| {
        Rule::on(&["version"])
            .out("{\"Client\":{\"Version\":\"28.2.2\"},\"Server\":null}")
            .err(text)
            .exit(1)
    };
    // A socket that is not there, whatever docker's words are.
    let error = refused(
        &stand_in(),
        [context("unix:///no/such/socket"), version(denied)],
    )
    .await;
    assert!(
        matches!(&error, BindError::NoDaemon { endpoint, .. } if endpoint.host == "unix:///no/such/socket"),
        "{error:?}"
    );
    // Elsewhere, words are all there is.
    let error = refused(&stand_in(), [context("tcp://far:2376"), version(down)]).await;
    assert!(matches!(error, BindError::NoDaemon { .. }), "{error:?}");
    assert!(error.source().is_some());
    let error = refused(&stand_in(), [context("ssh://far"), version(denied)]).await;
    assert!(
        matches!(error, BindError::PermissionDenied { .. }),
        "{error:?}"
    );
    // The engine goes away between two questions.
    let info = Rule::on(&["info"]).out("{\"ID\":\"\"}").err(down).exit(1);
    let error = refused(&stand_in(), [context("tcp://far:2376"), info]).await;
    assert!(matches!(error, BindError::NoDaemon { .. }), "{error:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_understood_is_an_error_with_its_cause() {
    for word in ["version", "info"] {
        let stand_in = stand_in();
        let error = refused(&stand_in, [Rule::on(&[word]).out("{\"Server\": 12")]).await;
        let BindError::Call(call) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(call.kind(), CallErrorKind::UnexpectedAnswer);
    }
}

#[tokio::test]
async fn a_configuration_that_docker_would_pass_over_is_refused() {
    let stand_in = stand_in();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    for wrong in ["{\"auths\": ", "[]", "", "\u{0}"] {
        fs::write(&file, wrong).unwrap();
        let config = config(
            &stand_in,
            [("DOCKER_CONFIG", folder.path().to_str().unwrap())],
        );
        let error = Docker::bind(config).await.unwrap_err();
        assert!(
            matches!(&error, BindError::BadConfig { path, .. } if *path == file),
            "{error:?}"
        );
    }
    assert_eq!(stand_in.calls(), []);
}

#[tokio::test]
async fn a_missing_certificate_is_named() {
    let stand_in = stand_in();
    let folder = tempfile::tempdir().unwrap();
    let config = config(
        &stand_in,
        [
            ("DOCKER_HOST", "tcp://far:2376"),
            ("DOCKER_TLS_VERIFY", "1"),
            ("DOCKER_CERT_PATH", folder.path().to_str().unwrap()),
        ],
    );
    let error = Docker::bind(config).await.unwrap_err();
    let ca = folder.path().join("ca.pem");
    assert!(
        matches!(&error, BindError::BadConfig { path, .. } if *path == ca),
        "{error:?}"
    );
}

#[tokio::test]
async fn of_the_configuration_only_what_pulling_and_plugins_need_is_kept() {
    let stand_in = stand_in();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("cli-plugins")).unwrap();
    let own = json!({
        "auths": {"registry.example": {"auth": "c2VjcmV0"}},
        "credsStore": "pass",
        "credHelpers": {"registry.example": "helper"},
        "cliPluginsExtraDirs": ["/opt/plugins"],
        "currentContext": "default",
        "proxies": {"default": {"httpProxy": "http://proxy.example"}},
        "HttpHeaders": {"X": "y"},
        "psFormat": "table",
        "detachKeys": "ctrl-a",
    });
    fs::write(folder.path().join("config.json"), own.to_string()).unwrap();
    let path = folder.path().to_str().unwrap();
    let config = config(&stand_in, [("DOCKER_CONFIG", path)]);
    let docker = Docker::bind(config).await.unwrap();
    let environment = pinned(&stand_in, &docker).await;
    let pinned = PathBuf::from(&environment["DOCKER_CONFIG"]);
    assert_ne!(pinned, folder.path());
    let file = pinned.join("config.json");
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let plugins = folder.path().join("cli-plugins");
    assert_eq!(
        kept,
        json!({
            "auths": {"registry.example": {"auth": "c2VjcmV0"}},
            "credsStore": "pass",
            "credHelpers": {"registry.example": "helper"},
            "cliPluginsExtraDirs": ["/opt/plugins", plugins],
        })
    );
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(pinned.parent().unwrap()), 0o700);
    drop(docker);
    assert!(!pinned.exists(), "credentials outlived their client");
}

#[tokio::test]
async fn a_host_is_pinned_with_copies_of_its_certificates() {
    let stand_in = stand_in();
    let folder = tempfile::tempdir().unwrap();
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let config = config(
        &stand_in,
        [
            ("DOCKER_HOST", "tcp://ignored.example:2376"),
            ("DOCKER_TLS_VERIFY", "yes"),
            ("DOCKER_CERT_PATH", folder.path().to_str().unwrap()),
        ],
    );
    let docker = Docker::bind(config).await.unwrap();
    drop(folder);
    let environment = pinned(&stand_in, &docker).await;
    // What docker resolved, not what was asked.
    assert_eq!(environment["DOCKER_HOST"], "unix:///var/run/stand-in.sock");
    assert_eq!(environment["DOCKER_TLS_VERIFY"], "1");
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        let copy = Path::new(&environment["DOCKER_CERT_PATH"]).join(name);
        assert_eq!(fs::read_to_string(&copy).unwrap(), name);
        assert_eq!(mode(&copy), 0o600);
    }
}

#[tokio::test]
async fn a_named_context_is_pinned_with_copies_of_its_definition_and_certificates() {
    let stand_in = stand_in();
    let (folder, rule) = named_context("tcp://far.example:2376");
    stand_in.follow([rule]);
    let path = folder.path().to_str().unwrap().to_owned();
    let config = config(
        &stand_in,
        [("DOCKER_CONFIG", &path), ("DOCKER_CONTEXT", "far")],
    );
    let docker = Docker::bind(config).await.unwrap();
    assert_eq!(docker.endpoint().context, "far");
    assert_eq!(docker.endpoint().host, "tcp://far.example:2376");
    // Edited or removed: it is nothing to a client that is bound.
    drop(folder);
    let environment = pinned(&stand_in, &docker).await;
    assert_eq!(environment["DOCKER_CONTEXT"], "far");
    assert!(!environment.contains_key("DOCKER_HOST"));
    let contexts = Path::new(&environment["DOCKER_CONFIG"]).join("contexts");
    let meta = fs::read_to_string(contexts.join("meta/abc/meta.json")).unwrap();
    assert!(meta.contains("tcp://far.example:2376"));
    assert_eq!(
        fs::read_to_string(contexts.join("tls/abc/docker/key.pem")).unwrap(),
        "key.pem"
    );
    assert_eq!(mode(&contexts.join("tls/abc/docker/key.pem")), 0o600);
}

#[tokio::test]
async fn the_ssh_agent_is_passed_on_for_hosts_that_ssh_reaches_and_no_others() {
    for (host, passed) in [
        ("ssh://far.example", true),
        ("tcp://far.example:2376", false),
    ] {
        let stand_in = stand_in();
        let (folder, rule) = named_context(host);
        stand_in.follow([rule]);
        let path = folder.path().to_str().unwrap().to_owned();
        let config = config(
            &stand_in,
            [
                ("DOCKER_CONFIG", &path),
                ("DOCKER_CONTEXT", "far"),
                ("SSH_AUTH_SOCK", "/agent"),
            ],
        );
        let docker = Docker::bind(config).await.unwrap();
        let environment = pinned(&stand_in, &docker).await;
        assert_eq!(environment.contains_key("SSH_AUTH_SOCK"), passed, "{host}");
    }
}

#[tokio::test]
async fn two_clients_of_one_process_keep_their_endpoints_apart() {
    let stand_ins = [stand_in(), stand_in()];
    let mut dockers = Vec::new();
    for (stand_in, host) in stand_ins
        .iter()
        .zip(["tcp://one.example:1", "tcp://two.example:2"])
    {
        let context = json!({"Name": "default", "Endpoints": {"docker": {"Host": host}}});
        stand_in.follow([Rule::on(&["context"]).out(context.to_string())]);
        dockers.push(Docker::bind(stand_in.config()).await.unwrap());
        stand_in.follow([Rule::on(&["ps"])]);
    }
    let bounds = Bounds::patient();
    let calls = (0..50).map(|at| dockers[at % 2].query(&bounds, ListContainers::default()));
    futures_util::future::try_join_all(calls).await.unwrap();
    for (stand_in, host) in stand_ins
        .iter()
        .zip(["tcp://one.example:1", "tcp://two.example:2"])
    {
        let calls = stand_in.calls_of(&["ps"]);
        assert_eq!(calls.len(), 25);
        assert!(
            calls
                .iter()
                .all(|call| call.environment["DOCKER_HOST"] == host)
        );
    }
}

#[tokio::test]
async fn a_name_is_searched_for_in_the_callers_own_path() {
    let stand_in = stand_in();
    let mut config = stand_in.config();
    config.docker_path = PathBuf::from("docker");
    let folder = stand_in.docker().parent().unwrap().to_owned();
    let own = config
        .environment
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    config.environment = own
        .chain([("PATH".into(), folder.into_os_string())])
        .collect::<Environment>();
    Docker::bind(config).await.unwrap();
    assert_eq!(stand_in.calls().len(), 3);
}
