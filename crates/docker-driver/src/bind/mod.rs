//! Finding an engine, and holding on to it.

mod config;
mod error;
mod facts;
mod folder;
mod pin;
mod probe;
mod settings;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

pub use self::config::{BindConfig, Environment, Timeouts};
pub use self::error::BindError;
pub use self::facts::{ApiVersion, Endpoint, EngineFacts, EngineVersion};
pub(crate) use self::folder::{FolderLoan, PrivateFolder, private_file};

pub(crate) use self::probe::{IdentifyClient, InspectContext};
use self::settings::Settings;
use crate::bounds::Bounds;
use crate::client::Client;
use crate::error::{CallError, CallErrorKind};
use crate::log::InvocationLog;
use crate::process::Program;
use crate::verbs::{Info, Version};

/// An engine that was found, and the client that is bound to it.
pub(crate) struct Bound {
    pub(crate) client: Client,
    pub(crate) endpoint: Endpoint,
    pub(crate) engine: EngineFacts,
}

/// Resolves, pins and probes: one docker process for each, or two when the
/// first fails and it is to be said why.
pub(crate) async fn bind(config: BindConfig) -> Result<Bound, BindError> {
    let given = config.clone();
    let (path, settings, folder) = off_the_runtime(move || {
        let path = find(&given)?;
        let settings = Settings::read(&given.environment)?;
        let folder = PrivateFolder::make(&given.environment)?;
        Ok((path, settings, Arc::new(folder)))
    })
    .await?;
    let log = Arc::new(InvocationLog::default());
    let client = |environment: Vec<(OsString, OsString)>| {
        let program = Program {
            path: path.clone(),
            environment,
        };
        Client::new(program, Arc::clone(&folder), Arc::clone(&log), &config)
    };
    let unpinned = client(settings.for_resolving());
    let context = match unpinned.query(&Bounds::patient(), &InspectContext).await {
        Ok(context) => context,
        Err(error) => {
            // Without any setting of the user: a context that does not exist
            // keeps docker from saying even what it is.
            let mut environment = settings.always();
            environment.push(("DOCKER_CONFIG".into(), folder.config().into()));
            let identify = client(environment);
            return Err(diagnose(&identify, &path, &settings, error).await);
        }
    };
    let endpoint = Endpoint {
        host: context.host.clone(),
        context: context.name.clone(),
    };
    let environment = {
        let (folder, settings) = (Arc::clone(&folder), settings);
        off_the_runtime(move || pin::pin(&folder, &settings, &context)).await?
    };
    let client = client(environment);
    let engine = probe(&client, &endpoint, &config).await?;
    Ok(Bound {
        client,
        endpoint,
        engine,
    })
}

fn find(config: &BindConfig) -> Result<PathBuf, BindError> {
    let search = config.environment.value("PATH");
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    which::which_in(&config.docker_path, search, here).map_err(|_| BindError::NoCli {
        docker_path: config.docker_path.clone(),
    })
}

/// Why the context could not be resolved.
async fn diagnose(
    client: &Client,
    path: &Path,
    settings: &Settings,
    error: CallError,
) -> BindError {
    let other = |product: String| BindError::NotDockerCli {
        docker_path: path.to_owned(),
        product,
    };
    match error.kind() {
        CallErrorKind::NotStarted if cannot_be_executed(&error) => {
            return other("a file that this system cannot execute".to_owned());
        }
        CallErrorKind::NotStarted | CallErrorKind::TimedOut | CallErrorKind::Closed => {
            return BindError::Call(error);
        }
        _ => {}
    }
    let identity = client.query(&Bounds::patient(), &IdentifyClient).await;
    match identity.map(|client| client.other_product()) {
        Ok(None) => {}
        Ok(Some(product)) => return other(product.to_owned()),
        Err(_) => return other("another program".to_owned()),
    }
    match settings.missing_context() {
        Some(name) => BindError::NoContext { name },
        None => BindError::Call(error),
    }
}

fn cannot_be_executed(error: &CallError) -> bool {
    let source = std::error::Error::source(error);
    let system = source.and_then(|source| source.downcast_ref::<io::Error>());
    system.and_then(io::Error::raw_os_error) == Some(Errno::NOEXEC.raw_os_error())
}

/// Asks the pinned engine what it is.
async fn probe(
    client: &Client,
    endpoint: &Endpoint,
    config: &BindConfig,
) -> Result<EngineFacts, BindError> {
    let bounds = Bounds::patient();
    let version = match client.query(&bounds, &Version).await {
        Ok(version) => version,
        Err(error) => return Err(unreachable(endpoint, error).await),
    };
    let server = version.server.ok_or_else(|| no_daemon(endpoint, None))?;
    if let Some(product) = server.other_product() {
        return Err(BindError::NotDockerEngine {
            endpoint: endpoint.clone(),
            product,
        });
    }
    let number = EngineVersion::parse(&server.version)
        .or_else(|| ApiVersion::parse(&server.api_version).map(EngineVersion::of_api));
    if number.is_none_or(|number| number < config.oldest_engine) {
        return Err(BindError::TooOld {
            endpoint: endpoint.clone(),
            engine: server.version,
            needed: config.oldest_engine,
        });
    }
    let info = match client.query(&bounds, &Info).await {
        Ok(info) => info,
        Err(error) => return Err(unreachable(endpoint, error).await),
    };
    Ok(EngineFacts::of(
        version.client,
        server,
        info,
        number.unwrap_or(config.oldest_engine),
    ))
}

/// Tells apart why an engine does not answer. For a socket, the system is
/// asked; docker's words count only where there is none.
async fn unreachable(endpoint: &Endpoint, error: CallError) -> BindError {
    let said = error.kind();
    if !matches!(
        said,
        CallErrorKind::PermissionDenied
            | CallErrorKind::DaemonUnreachable
            | CallErrorKind::ConnectionLost
            | CallErrorKind::Other
    ) {
        return BindError::Call(error);
    }
    let socket = endpoint.host.strip_prefix("unix://");
    let refused = match socket {
        Some(path) => UnixStream::connect(path)
            .await
            .err()
            .map(|error| error.kind()),
        None => None,
    };
    let denied = || BindError::PermissionDenied {
        endpoint: endpoint.clone(),
    };
    match (refused, said) {
        (Some(io::ErrorKind::PermissionDenied), _) => denied(),
        (Some(_), _) => no_daemon(endpoint, Some(error)),
        (None, CallErrorKind::PermissionDenied) => denied(),
        (None, CallErrorKind::DaemonUnreachable | CallErrorKind::ConnectionLost) => {
            no_daemon(endpoint, Some(error))
        }
        (None, _) => BindError::Call(error),
    }
}

fn no_daemon(endpoint: &Endpoint, source: Option<CallError>) -> BindError {
    BindError::NoDaemon {
        endpoint: endpoint.clone(),
        source,
    }
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BindError> + Send + 'static,
) -> Result<T, BindError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(BindError::RuntimeEnded),
        },
    }
}
