//! Which docker client and which daemon this machine has.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{Engine, Kind, Make};
use crate::process::{Program, on_path, tail};

/// The oldest engine that serves every test: older ones ignore the isolated gateway mode.
pub(crate) const OLDEST_MAJOR: u32 = 28;

/// How long a daemon may take to say its version; one behind ssh needs seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the search for an engine found.
#[derive(Debug)]
pub(super) enum Found {
    Engine(Engine),
    Nothing {
        /// A client that is new enough for a provisioned engine.
        client: Option<PathBuf>,
        why: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Versions {
    client: Component,
    server: Option<Component>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Component {
    version: String,
    #[serde(default)]
    components: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Part {
    name: String,
}

impl Component {
    fn has(&self, part: &str) -> bool {
        self.components.iter().any(|found| found.name == part)
    }
}

/// Asks the `docker` on PATH which engine it reaches.
///
/// `own` is the endpoint of the provisioned engine: a client that points at it has found nothing
/// of the host's.
pub(super) fn found(own: Option<&str>) -> Result<Found> {
    let nothing = |client, why: String| Ok(Found::Nothing { client, why });
    let Some(client) = on_path("docker") else {
        return nothing(None, "there is no docker on PATH".into());
    };
    let asked = Program::new(&client)
        .args(["version", "--format", "{{json .}}"])
        .deadline(PATIENCE)
        .finish();
    let finished = match asked {
        Ok(finished) => finished,
        Err(why) => return nothing(None, format!("{why:#}")),
    };
    let Ok(versions) = serde_json::from_slice::<Versions>(&finished.stdout) else {
        return nothing(None, format!("{} is no Docker client", client.display()));
    };
    let usable = (major(&versions.client.version) >= Some(OLDEST_MAJOR)).then(|| client.clone());
    let docker_host = std::env::var("DOCKER_HOST")
        .ok()
        .filter(|host| !host.is_empty());
    if docker_host.is_some() && docker_host.as_deref() == own {
        return nothing(usable, "DOCKER_HOST names the provisioned engine".into());
    }
    let Some(server) = versions.server else {
        return nothing(usable, tail(&finished.stderr));
    };
    if let Err(why) = check(Make::New, &server) {
        return nothing(usable, why);
    }
    let docker_host = match docker_host {
        Some(host) => Some(host),
        None => default_endpoint(&client)?,
    };
    Ok(Found::Engine(Engine {
        kind: Kind::Found,
        docker_host,
        client,
        version: server.version,
    }))
}

/// The client of this machine that is new enough for every provisioned engine.
#[cfg(target_os = "linux")]
pub(super) fn client() -> Result<Option<PathBuf>> {
    Ok(match found(None)? {
        Found::Engine(engine) => Some(engine.client),
        Found::Nothing { client, .. } => client,
    })
}

/// The provisioned engine of this make, once it answers at `endpoint`.
#[cfg(target_os = "linux")]
pub(super) fn provisioned(make: Make, endpoint: &str, client: PathBuf) -> Result<Engine> {
    let text = Program::new(&client)
        .env("DOCKER_HOST", endpoint)
        .args(["version", "--format", "{{json .}}"])
        .deadline(PATIENCE)
        .read()?;
    let versions: Versions =
        serde_json::from_str(&text).with_context(|| format!("versions in `{text}`"))?;
    let server = versions.server.context("the daemon says no version")?;
    let sound = check(make, &server);
    ensure!(sound.is_ok(), "the provisioned engine is unfit: {sound:?}");
    Ok(Engine {
        kind: Kind::Provisioned,
        docker_host: Some(endpoint.to_owned()),
        client,
        version: server.version,
    })
}

/// Whether this answer of a daemon, head and body, is its version and names the containerd that it
/// is connected to. A daemon that has lost its containerd answers all the same.
#[cfg(target_os = "linux")]
pub(super) fn is_complete(answer: &[u8]) -> bool {
    let end = b"\r\n\r\n";
    let Some(head) = answer.windows(end.len()).position(|window| window == end) else {
        return false;
    };
    let body = &answer[head + end.len()..];
    serde_json::from_slice(body).is_ok_and(|server: Component| server.has("containerd"))
}

/// The endpoint of the client's current context, where a variable can say it: a socket needs
/// nothing but its path.
fn default_endpoint(client: &PathBuf) -> Result<Option<String>> {
    let host = Program::new(client)
        .args([
            "context",
            "inspect",
            "--format",
            "{{.Endpoints.docker.Host}}",
        ])
        .deadline(PATIENCE)
        .read()?;
    let host = host.trim();
    Ok(host.starts_with("unix://").then(|| host.to_owned()))
}

/// Whether a daemon is of a make, as far as its version tells.
fn check(make: Make, server: &Component) -> Result<(), String> {
    // Other products answer the same question with a name of their own, or with none.
    if !server.has("Engine") {
        return Err("it is not Docker Engine".into());
    }
    match major(&server.version) {
        Some(major) if make.accepts(major) => Ok(()),
        _ if make == Make::New => Err(format!(
            "it is version {}, older than {OLDEST_MAJOR}",
            server.version
        )),
        _ => Err(format!("version {} is not of make {make}", server.version)),
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(json: &str) -> Component {
        serde_json::from_str(json).expect("a component")
    }

    #[test]
    fn only_docker_engine_of_the_right_age_is_taken() {
        let engine = |version| {
            let json = format!(r#"{{"Version":"{version}","Components":[{{"Name":"Engine"}}]}}"#);
            check(Make::New, &server(&json))
        };
        assert_eq!(engine("28.5.2+dfsg4"), Ok(()));
        assert_eq!(engine("29.0.0"), Ok(()));
        assert!(engine("20.10.24+dfsg1").is_err_and(|why| why.contains("20.10.24")));
        assert!(engine("dev").is_err());
    }

    #[test]
    fn another_product_is_not_taken_for_docker() {
        let podman = r#"{"Version":"30.1.0","Components":[{"Name":"Podman Engine"}]}"#;
        assert!(check(Make::New, &server(podman)).is_err());
        assert!(check(Make::New, &server(r#"{"Version":"30.1.0"}"#)).is_err());
    }

    #[test]
    fn a_daemon_that_lost_its_containerd_is_not_complete() {
        let answer = |parts: &str| {
            format!("HTTP/1.0 200 OK\r\nServer: x\r\n\r\n{{\"Version\":\"28.5.2\",{parts}}}\n")
        };
        let both = r#""Components":[{"Name":"Engine"},{"Name":"containerd"}]"#;
        assert!(is_complete(answer(both).as_bytes()));
        assert!(!is_complete(
            answer(r#""Components":[{"Name":"Engine"}]"#).as_bytes()
        ));
        assert!(!is_complete(b"HTTP/1.0 503 Service Unavailable\r\n\r\n"));
        assert!(!is_complete(b""));
    }

    #[test]
    fn a_client_without_a_daemon_says_its_own_version() {
        let text = r#"{"Client":{"Version":"28.2.2","ApiVersion":"1.50"},"Server":null}"#;
        let versions: Versions = serde_json::from_str(text).expect("versions");
        assert!(versions.server.is_none());
        assert_eq!(major(&versions.client.version), Some(28));
    }
}
