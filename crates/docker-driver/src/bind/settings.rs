//! Docker's own settings, as the environment and the configuration file have
//! them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{BindError, Environment};

/// What the docker client reads to find its engine; nothing else of the
/// environment is given to it.
const FOR_RESOLVING: [&str; 3] = ["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS"];

/// What every call is given: programs that docker starts are found by `PATH`,
/// and credential helpers and ssh keep their state below `HOME`.
const ALWAYS: [&str; 2] = ["PATH", "HOME"];

/// Biggest configuration file that is read.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Docker's own settings.
pub(super) struct Settings {
    environment: Environment,
    /// The folder of docker's configuration; absolute.
    folder: PathBuf,
    /// The configuration file.
    file: Map<String, Value>,
}

/// Certificates for a `DOCKER_HOST` with TLS.
pub(super) struct Tls {
    /// The folder of `ca.pem`, `cert.pem` and `key.pem`; absolute.
    pub(super) folder: PathBuf,
    /// Whether the engine's certificate is verified.
    pub(super) verify: bool,
}

impl Settings {
    /// Reads the configuration file that the environment names.
    pub(super) fn read(environment: &Environment) -> Result<Self, BindError> {
        let named = environment.value("DOCKER_CONFIG").map(PathBuf::from);
        let of_home = || {
            environment
                .value("HOME")
                .map(|home| Path::new(home).join(".docker"))
        };
        let folder = absolute(
            &named
                .or_else(of_home)
                .unwrap_or_else(|| PathBuf::from("/.docker")),
        );
        let file = read_file(&folder.join("config.json"))?;
        let settings = Self {
            environment: environment.clone(),
            folder,
            file,
        };
        settings.check_tls()?;
        Ok(settings)
    }

    /// The environment in which docker resolves its endpoint by its own
    /// precedence.
    pub(super) fn for_resolving(&self) -> Vec<(OsString, OsString)> {
        let mut variables = self.always();
        variables.extend(self.set(&FOR_RESOLVING));
        variables.push(("DOCKER_CONFIG".into(), self.folder.clone().into()));
        if let Some(tls) = self.tls() {
            variables.push(("DOCKER_CERT_PATH".into(), tls.folder.into()));
            if tls.verify {
                variables.push(("DOCKER_TLS_VERIFY".into(), "1".into()));
            }
        }
        variables
    }

    /// What every call is given.
    pub(super) fn always(&self) -> Vec<(OsString, OsString)> {
        self.set(&ALWAYS).collect()
    }

    /// The agent that ssh asks for keys.
    pub(super) fn ssh_agent(&self) -> Option<(OsString, OsString)> {
        self.set(&["SSH_AUTH_SOCK"]).next()
    }

    /// How TLS is set for a host that is no context's.
    pub(super) fn tls(&self) -> Option<Tls> {
        let verify = self.environment.value("DOCKER_TLS_VERIFY").is_some();
        if !verify && self.environment.value("DOCKER_TLS").is_none() {
            return None;
        }
        let named = self
            .environment
            .value("DOCKER_CERT_PATH")
            .map(PathBuf::from);
        let folder = named.map_or_else(|| self.folder.clone(), |folder| absolute(&folder));
        Some(Tls { folder, verify })
    }

    /// A value of the configuration file.
    pub(super) fn of_file(&self, key: &str) -> Option<&Value> {
        self.file.get(key)
    }

    /// The folder of plugins of the user's own, if there is one.
    pub(super) fn plugins(&self) -> Option<PathBuf> {
        Some(self.folder.join("cli-plugins")).filter(|folder| folder.is_dir())
    }

    /// The context that is named, when it does not exist.
    pub(super) fn missing_context(&self) -> Option<String> {
        if self.environment.value("DOCKER_HOST").is_some() {
            return None;
        }
        let of_environment = self
            .environment
            .value("DOCKER_CONTEXT")
            .map(OsStr::to_string_lossy);
        let of_file = || {
            self.of_file("currentContext")
                .and_then(Value::as_str)
                .map(Into::into)
        };
        let name = of_environment.or_else(of_file)?.into_owned();
        let known = || contexts(&self.folder).contains(&name);
        (!name.is_empty() && name != "default" && !known()).then_some(name)
    }

    fn set(&self, names: &'static [&str]) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        names.iter().filter_map(|name| {
            let value = self.environment.value(name)?;
            Some((OsString::from(name), value.to_owned()))
        })
    }

    /// Docker would say that it cannot open a file, and not who asked for it.
    fn check_tls(&self) -> Result<(), BindError> {
        let host = self.environment.value("DOCKER_HOST").is_some();
        let Some(tls) = self.tls().filter(|tls| host && tls.verify) else {
            return Ok(());
        };
        let path = tls.folder.join("ca.pem");
        if path.is_file() {
            return Ok(());
        }
        let why = "DOCKER_TLS_VERIFY is set and this file is missing; \
                   put the certificate there, name its folder in DOCKER_CERT_PATH, or unset the variable";
        Err(BindError::BadConfig {
            path,
            why: why.to_owned(),
        })
    }
}

/// The names of the contexts of a configuration folder.
fn contexts(folder: &Path) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Metadata {
        name: String,
    }
    let folders = fs::read_dir(folder.join("contexts").join("meta"));
    let files = folders
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("meta.json"));
    let contexts = files.filter_map(|path| read_bounded(&path).ok());
    let named = contexts.filter_map(|text| serde_json::from_slice::<Metadata>(&text).ok());
    named.map(|metadata| metadata.name).collect()
}

fn read_file(path: &Path) -> Result<Map<String, Value>, BindError> {
    let bad = |why: String| BindError::BadConfig {
        path: path.to_owned(),
        why,
    };
    let text = match read_bounded(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => {
            return Err(bad(format!(
                "{error}; make it readable, or name another folder in DOCKER_CONFIG"
            )));
        }
    };
    // Docker warns, goes on without it, and then uses another engine than
    // the one that is written there.
    serde_json::from_slice(&text).map_err(|error| {
        bad(format!(
            "it is no JSON object ({error}); correct it or move it away"
        ))
    })
}

/// Reads a file of a sane size.
pub(super) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let size = fs::metadata(path)?.len();
    if size > LARGEST_FILE {
        return Err(io::Error::other(format!(
            "it is larger than {LARGEST_FILE} bytes"
        )));
    }
    fs::read(path)
}

/// Docker is started in another directory than ours.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
