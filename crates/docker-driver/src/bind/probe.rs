//! The verbs of binding that nobody else needs.

use serde::Deserialize;

use crate::argv::Argv;
use crate::verb::{Exit, Output, ParseError, Query, Verb};

/// `docker context inspect`: the endpoint, by docker's own precedence. It
/// asks no engine.
#[derive(Debug)]
pub(crate) struct InspectContext;

/// `docker version`, for what it says of the client, whether or not there is
/// an engine.
#[derive(Debug)]
pub(crate) struct IdentifyClient;

/// The context in force.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) name: String,
    pub(crate) host: String,
    /// Folder of its definition; `None` for the one that is made up from the
    /// environment.
    pub(crate) metadata: Option<String>,
    /// Folder of its certificates.
    pub(crate) certificates: Option<String>,
}

/// What a client says of itself.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ClientIdentity {
    api_version: Option<String>,
    /// Podman's alone.
    os_arch: Option<String>,
    /// Nerdctl's alone.
    components: Option<serde_json::Value>,
}

impl ClientIdentity {
    /// What it is, if it is not docker's own client.
    pub(crate) fn other_product(&self) -> Option<&'static str> {
        if self.os_arch.is_some() {
            Some("podman")
        } else if self.components.is_some() {
            Some("nerdctl")
        } else if self.api_version.is_none() {
            Some("another product")
        } else {
            None
        }
    }
}

impl Verb for InspectContext {
    type Answer = Context;
    const NAME: &'static str = "context inspect";

    fn argv(&self) -> Argv {
        Argv::new(&["context", "inspect"]).json()
    }

    fn parse(&self, output: &Output) -> Result<Context, ParseError> {
        const EXPECTED: &str = "a docker context";
        let raw: RawContext = serde_json::from_slice(&output.stdout)
            .map_err(|error| ParseError::new(EXPECTED, error))?;
        if raw.name.is_empty() || raw.endpoints.docker.host.trim().is_empty() {
            return Err(ParseError::new(EXPECTED, "its name or its host is empty"));
        }
        // A context that is kept nowhere says so in angle brackets.
        let folder = |path: Option<String>| path.filter(|path| path.starts_with('/'));
        Ok(Context {
            name: raw.name,
            host: raw.endpoints.docker.host,
            metadata: folder(raw.storage.metadata_path),
            certificates: folder(raw.storage.tls_path),
        })
    }
}

impl Query for InspectContext {}

impl Verb for IdentifyClient {
    type Answer = ClientIdentity;
    const NAME: &'static str = "version";

    fn argv(&self) -> Argv {
        Argv::new(&["version"]).json()
    }

    fn parse(&self, output: &Output) -> Result<ClientIdentity, ParseError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Raw {
            client: ClientIdentity,
        }
        let raw: Raw = serde_json::from_slice(&output.stdout)
            .map_err(|error| ParseError::new("a version", error))?;
        Ok(raw.client)
    }

    fn answered(&self, output: &Output) -> bool {
        matches!(output.exit, Exit::Code(0 | 1))
    }
}

impl Query for IdentifyClient {}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawContext {
    name: String,
    endpoints: RawEndpoints,
    #[serde(default)]
    storage: RawStorage,
}

#[derive(Deserialize)]
struct RawEndpoints {
    docker: RawEndpoint,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawEndpoint {
    host: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct RawStorage {
    metadata_path: Option<String>,
    #[serde(rename = "TLSPath")]
    tls_path: Option<String>,
}
