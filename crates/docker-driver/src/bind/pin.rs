//! Holding on to an endpoint by value: a configuration folder of our own, and
//! an environment that names nothing else.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value};

use super::probe::Context;
use super::settings::{Settings, read_bounded};
use super::{BindError, PrivateFolder, private_file};

/// What is kept of the user's configuration file: what pulling an image and
/// finding plugins need. Not kept are, above all, `proxies`, which docker
/// copies into every container, and `currentContext`.
const KEPT: [&str; 4] = ["auths", "credsStore", "credHelpers", "cliPluginsExtraDirs"];

/// Most files of a context's definition and certificates.
const MOST_FILES: usize = 64;

/// How deep a context's folders go: one folder for each kind of endpoint.
const DEEPEST: usize = 2;

/// Copies what is needed to reach the context's endpoint, and gives the whole
/// environment that docker is started with from now on.
pub(super) fn pin(
    folder: &PrivateFolder,
    settings: &Settings,
    context: &Context,
) -> Result<Vec<(OsString, OsString)>, BindError> {
    let config = folder.config();
    write_config(&config, settings)?;
    let mut environment = settings.always();
    environment.push(("DOCKER_CONFIG".into(), config.clone().into()));
    match &context.metadata {
        Some(metadata) => {
            copy_context(&config, metadata, context.certificates.as_deref())?;
            environment.push(("DOCKER_CONTEXT".into(), context.name.clone().into()));
        }
        None => {
            environment.push(("DOCKER_HOST".into(), context.host.clone().into()));
            environment.extend(copy_certificates(folder, settings)?);
        }
    }
    if context.host.starts_with("ssh://") {
        environment.extend(settings.ssh_agent());
    }
    Ok(environment)
}

fn write_config(config: &Path, settings: &Settings) -> Result<(), BindError> {
    let mut kept = Map::new();
    for key in KEPT {
        if let Some(value) = settings.of_file(key) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(plugins) = settings.plugins() {
        // Found beside the configuration file otherwise, and ours is elsewhere.
        let directories = kept
            .entry("cliPluginsExtraDirs")
            .or_insert_with(|| Value::Array(vec![]));
        if let Value::Array(directories) = directories {
            directories.push(plugins.to_string_lossy().into());
        }
    }
    let text = Value::Object(kept).to_string();
    make_folder(config)?;
    write(&config.join("config.json"), text.as_bytes())
}

/// Docker finds a context by the name of its folder, which is copied.
fn copy_context(
    config: &Path,
    metadata: &str,
    certificates: Option<&str>,
) -> Result<(), BindError> {
    let contexts = config.join("contexts");
    let mut left = MOST_FILES;
    for (kind, from) in [("meta", Some(metadata)), ("tls", certificates)] {
        let Some(from) = from.map(Path::new).filter(|from| from.is_dir()) else {
            continue;
        };
        let name = from.file_name().unwrap_or_default();
        copy_folder(from, &contexts.join(kind).join(name), DEEPEST, &mut left)?;
    }
    Ok(())
}

fn copy_certificates(
    folder: &PrivateFolder,
    settings: &Settings,
) -> Result<Vec<(OsString, OsString)>, BindError> {
    let Some(tls) = settings.tls() else {
        return Ok(Vec::new());
    };
    let to = folder.certificates();
    make_folder(&to)?;
    for name in ["ca.pem", "cert.pem", "key.pem"] {
        // Which of them must exist is docker's to say.
        let from = tls.folder.join(name);
        if from.exists() {
            copy_file(&from, &to.join(name))?;
        }
    }
    let how = if tls.verify {
        "DOCKER_TLS_VERIFY"
    } else {
        "DOCKER_TLS"
    };
    Ok(vec![
        ("DOCKER_CERT_PATH".into(), to.into()),
        (how.into(), "1".into()),
    ])
}

/// Copies regular files, and what links lead to.
fn copy_folder(from: &Path, to: &Path, deep: usize, left: &mut usize) -> Result<(), BindError> {
    make_folder(to)?;
    let entries = fs::read_dir(from).map_err(|error| unreadable(from, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| unreadable(from, &error))?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
        if metadata.is_dir() && deep > 1 {
            copy_folder(&path, &to, deep - 1, left)?;
        } else if metadata.is_file() {
            *left = left.checked_sub(1).ok_or_else(|| {
                unreadable(
                    from,
                    &io::Error::other(format!("more than {MOST_FILES} files")),
                )
            })?;
            copy_file(&path, &to)?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), BindError> {
    let content = read_bounded(from).map_err(|error| unreadable(from, &error))?;
    write(to, &content)
}

fn make_folder(path: &Path) -> Result<(), BindError> {
    fs::create_dir_all(path).map_err(|source| unwritable(path, source))
}

fn write(path: &Path, content: &[u8]) -> Result<(), BindError> {
    private_file(path)
        .and_then(|mut file| file.write_all(content))
        .map_err(|source| unwritable(path, source))
}

fn unreadable(path: &Path, error: &io::Error) -> BindError {
    BindError::BadConfig {
        path: path.to_owned(),
        why: format!("it cannot be copied: {error}"),
    }
}

fn unwritable(path: &Path, source: io::Error) -> BindError {
    BindError::NoPrivateFolder {
        path: path.to_owned(),
        source,
    }
}
