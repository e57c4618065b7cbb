//! What a binding is made from.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::EngineVersion;
use crate::verb::TimeoutClass;

/// An environment, taken once and passed by value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of this process, as it is now.
    pub fn of_this_process() -> Self {
        std::env::vars_os().collect()
    }

    /// A variable that is set and not empty.
    pub fn value(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0
            .get(name.as_ref())
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl fmt::Debug for Environment {
    /// Names only: values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How long calls may run, counted from the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// An ordinary verb; 60 s.
    pub short: Duration,
    /// A pull or a build; 600 s.
    pub long: Duration,
    /// From the signal that asks a process to end to the one that ends it; 2 s.
    pub grace: Duration,
    /// How long output is waited for after a process has ended, when another
    /// process holds its pipes; 1 s.
    pub leak: Duration,
}

impl Timeouts {
    pub(crate) fn of(&self, class: TimeoutClass) -> Duration {
        match class {
            TimeoutClass::Short => self.short,
            TimeoutClass::Long => self.long,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            short: Duration::from_secs(60),
            long: Duration::from_secs(600),
            grace: Duration::from_secs(2),
            leak: Duration::from_secs(1),
        }
    }
}

/// What [`Docker::bind`](crate::Docker::bind) is given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindConfig {
    /// The docker client: a name to be found in the environment's `PATH`, or
    /// a path. `docker`.
    pub docker_path: PathBuf,
    /// What docker's own settings are read from.
    pub environment: Environment,
    /// Most docker processes at once; 8.
    pub in_flight: usize,
    /// How long calls may run.
    pub timeouts: Timeouts,
    /// The oldest engine that is accepted; 20.10.
    pub oldest_engine: EngineVersion,
}

impl BindConfig {
    /// Binds by the environment of this process, as it is now.
    pub fn from_env() -> Self {
        Self::new(Environment::of_this_process())
    }

    /// Binds by this environment.
    pub fn new(environment: Environment) -> Self {
        Self {
            docker_path: PathBuf::from("docker"),
            environment,
            in_flight: 8,
            timeouts: Timeouts::default(),
            oldest_engine: EngineVersion {
                major: 20,
                minor: 10,
            },
        }
    }
}
