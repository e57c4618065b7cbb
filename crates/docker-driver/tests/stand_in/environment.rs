//! What the docker client is given, and what it is not.

use std::fs;

use docker_driver::stand_in::{Received, Rule, Step};
use docker_driver::{Bounds, Docker, EnvVar, RunDetached};

use crate::support::{Bench, ID, options, stand_in};

const SECRET: &str = "line one\n  \"quoted\" = $HOME 'x' \r";

async fn run_with(
    variables: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> (Bench, Received) {
    let bench = Bench::new([Rule::on(&["run"]).step(Step::WriteId(ID.into())).out(ID)]).await;
    let variables = variables
        .into_iter()
        .map(|(name, value)| EnvVar::new(name, value).unwrap());
    let options = options().environment(variables);
    bench
        .docker
        .mutate(&Bounds::patient(), RunDetached(options))
        .await
        .unwrap();
    let call = bench.stand_in.calls_of(&["run"]).remove(0);
    (bench, call)
}

#[tokio::test]
async fn a_value_is_in_the_clients_environment_and_in_no_word() {
    let (_bench, call) = run_with([("TOKEN", SECRET), ("EMPTY", "")]).await;
    assert!(call.words.contains(&"--env=TOKEN".to_owned()));
    assert!(call.words.contains(&"--env=EMPTY".to_owned()));
    assert_eq!(call.environment["TOKEN"], SECRET);
    assert_eq!(call.environment["EMPTY"], "");
    assert!(!call.words.iter().any(|word| word.contains("quoted")));
    assert_eq!(call.env_file, None);
}

#[tokio::test]
async fn a_name_that_the_client_reads_itself_goes_through_a_file_that_only_we_may_read() {
    let evil = [
        ("DOCKER_HOST", "tcp://evil:1"),
        ("http_proxy", "http://evil:1 "),
        ("PATH", "/evil"),
    ];
    let (bench, call) = run_with(evil.into_iter().chain([("TOKEN", SECRET)])).await;
    let file = "DOCKER_HOST=tcp://evil:1\nhttp_proxy=http://evil:1 \nPATH=/evil\n";
    assert_eq!(call.env_file.as_deref(), Some(file));
    assert_eq!(call.env_file_mode, Some(0o600));
    assert_eq!(
        call.environment["DOCKER_HOST"],
        bench.docker.endpoint().host
    );
    assert_eq!(call.environment["PATH"], "/usr/bin:/bin");
    assert!(!call.environment.contains_key("http_proxy"));
    let path = call
        .words
        .iter()
        .find_map(|word| word.strip_prefix("--env-file="))
        .unwrap();
    bench.settle().await;
    assert!(!fs::exists(path).unwrap(), "the file outlived its call");
}

#[tokio::test]
async fn nothing_of_the_callers_environment_reaches_docker_but_what_it_needs() {
    let stand_in = stand_in();
    let noise = [
        "DOCKER_API_VERSION",
        "DOCKER_DEFAULT_PLATFORM",
        "DOCKER_CONTENT_TRUST",
        "DOCKER_CUSTOM_HEADERS",
        "DOCKER_HIDE_LEGACY_COMMANDS",
        "BUILDX_BUILDER",
        "HTTP_PROXY",
        "https_proxy",
        "SSH_AUTH_SOCK",
        "LD_PRELOAD",
        "GODEBUG",
        "SOME_SECRET",
    ];
    let mut config = stand_in.config();
    let own = config
        .environment
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    config.environment = own
        .chain(noise.iter().map(|name| ((*name).into(), "noise".into())))
        .collect();
    let docker = Docker::bind(config).await.unwrap();
    stand_in.follow([Rule::on(&["ps"])]);
    docker
        .query(&Bounds::patient(), docker_driver::ListContainers::default())
        .await
        .unwrap();
    for call in stand_in.calls() {
        let noise: Vec<_> = call
            .environment
            .values()
            .filter(|value| *value == "noise")
            .collect();
        assert!(noise.is_empty(), "{:?}: {:?}", call.words, call.environment);
    }
    let last = stand_in.calls_of(&["ps"]).remove(0);
    let names: Vec<_> = last.environment.keys().map(String::as_str).collect();
    assert_eq!(names, ["DOCKER_CONFIG", "DOCKER_HOST", "HOME", "PATH"]);
}

#[tokio::test]
async fn no_error_and_no_rendering_holds_a_value() {
    let bench = Bench::new([Rule::on(&["run"]).err("docker: hiccups").exit(125)]).await;
    let secret = EnvVar::new("TOKEN", "s3cret").unwrap();
    let hidden = EnvVar::new("DOCKER_HOST", "s3cret").unwrap();
    let verb = RunDetached(options().environment([secret, hidden]));
    assert!(!format!("{verb:?}").contains("s3cret"));
    let error = bench
        .docker
        .mutate(&Bounds::patient(), verb)
        .await
        .unwrap_err();
    assert!(error.command().contains("--env=TOKEN"));
    assert!(!format!("{error:?} {error}").contains("s3cret"));
}
