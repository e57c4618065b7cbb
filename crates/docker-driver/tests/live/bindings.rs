//! Binding with docker's own client, whose precedence is not ours to guess.

use std::path::Path;

use docker_driver::{
    BindConfig, BindError, Bounds, Docker, Environment, ListContainers, RunForeground,
};
use serde_json::json;

use crate::support::{Bench, require_engine};

/// The engine's address, as the tests are told it.
async fn engine() -> String {
    require_engine();
    Docker::bind(BindConfig::from_env())
        .await
        .unwrap()
        .endpoint()
        .host
        .clone()
}

fn binding<const N: usize>(settings: [(&str, &str); N]) -> BindConfig {
    let path = std::env::var("PATH").unwrap();
    BindConfig::new(
        settings
            .into_iter()
            .chain([("PATH", path.as_str())])
            .collect::<Environment>(),
    )
}

/// Writes a context as `docker context create` does. The folder's name is the
/// hash of the context's.
fn context(folder: &Path, hash: &str, name: &str, host: &str) {
    let folder = folder.join("contexts/meta").join(hash);
    std::fs::create_dir_all(&folder).unwrap();
    let endpoints = json!({"docker": {"Host": host, "SkipTLSVerify": false}});
    let metadata = json!({"Name": name, "Metadata": {}, "Endpoints": endpoints});
    std::fs::write(folder.join("meta.json"), metadata.to_string()).unwrap();
}

/// SHA-256 of `one`, of `two`.
const ONE: &str = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
const TWO: &str = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";

#[tokio::test]
async fn the_host_comes_before_the_context_and_that_before_the_file() {
    let engine = engine().await;
    let folder = tempfile::tempdir().unwrap();
    context(folder.path(), ONE, "one", &engine);
    context(folder.path(), TWO, "two", "unix:///absent/two.sock");
    let file = folder.path().join("config.json");
    let folder = folder.path().to_str().unwrap();
    // The file's context alone.
    std::fs::write(&file, json!({"currentContext": "one"}).to_string()).unwrap();
    let docker = Docker::bind(binding([("DOCKER_CONFIG", folder)]))
        .await
        .unwrap();
    assert_eq!(
        (docker.endpoint().context.as_str(), &docker.endpoint().host),
        ("one", &engine)
    );
    // The variable's context over the file's.
    let error = Docker::bind(binding([
        ("DOCKER_CONFIG", folder),
        ("DOCKER_CONTEXT", "two"),
    ]))
    .await;
    let error = error.unwrap_err();
    assert!(
        matches!(&error, BindError::NoDaemon { endpoint, .. } if endpoint.context == "two"),
        "{error:?}"
    );
    // The host over both.
    let settings = [
        ("DOCKER_CONFIG", folder),
        ("DOCKER_CONTEXT", "two"),
        ("DOCKER_HOST", &engine),
    ];
    let bound = Docker::bind(binding(settings)).await.unwrap();
    assert_eq!(
        (bound.endpoint().context.as_str(), &bound.endpoint().host),
        ("default", &engine)
    );
    // And nothing moves a client that is bound.
    std::fs::write(&file, json!({"currentContext": "two"}).to_string()).unwrap();
    context(Path::new(folder), ONE, "one", "unix:///absent/moved.sock");
    docker
        .query(&Bounds::patient(), ListContainers::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_context_that_is_not_there_is_named() {
    require_engine();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let config = binding([("DOCKER_CONFIG", folder), ("DOCKER_CONTEXT", "absent")]);
    let error = Docker::bind(config).await.unwrap_err();
    assert!(
        matches!(&error, BindError::NoContext { name } if name == "absent"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named_with_its_address() {
    require_engine();
    for host in ["unix:///absent.sock", "tcp://127.0.0.1:9"] {
        let error = Docker::bind(binding([("DOCKER_HOST", host)]))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, BindError::NoDaemon { endpoint, .. } if endpoint.host == host),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn proxies_of_the_users_configuration_reach_no_container() {
    let engine = engine().await;
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let proxies = json!({"default": {"httpProxy": "http://proxy.example:1", "noProxy": "x"}});
    std::fs::write(
        folder.path().join("config.json"),
        json!({"proxies": proxies}).to_string(),
    )
    .unwrap();
    let config = binding([
        ("DOCKER_CONFIG", folder.path().to_str().unwrap()),
        ("DOCKER_HOST", &engine),
    ]);
    let docker = Docker::bind(config).await.unwrap();
    let options = bench.options().program("env", [""; 0]).remove_at_end();
    let output = docker
        .mutate(&Bounds::patient(), RunForeground::new(options, 64 * 1024))
        .await
        .unwrap();
    let environment = String::from_utf8(output.stdout.to_vec())
        .unwrap()
        .to_lowercase();
    assert!(environment.contains("path="));
    assert!(!environment.contains("proxy"), "{environment}");
    bench.finish().await;
}

#[tokio::test]
async fn the_engine_says_what_a_plan_needs_to_know() {
    let bench = Bench::new().await;
    let engine = bench.docker.engine();
    assert!(engine.version.major >= 20, "{engine:?}");
    assert!(engine.api.major == 1 && engine.api > engine.oldest_api);
    assert!(!engine.id.is_empty() && !engine.client_version.is_empty());
    assert!((1..=2).contains(&engine.cgroup_version));
    assert!(engine.cpus > 0 && engine.memory_total > 0);
    bench.finish().await;
}
