//! The environment that every command of a sandbox starts with.

use std::collections::BTreeMap;

use stockade::SandboxSpec;
use stockade::spec::Hardening;

use super::{TMP, User};
use crate::image::ImageFacts;

/// What docker gives a container whose image names no `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What we add to, or take from, what the image sets; the caller's own
/// variables come last and win.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Names and values; values may be secret.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// `HOME` is a directory that is owned and writable, `PATH` holds what
/// `pip install --user` makes, and Python writes what it prints at once, so
/// that a timeout keeps it.
pub(crate) fn of(spec: &SandboxSpec, image: &ImageFacts, user: &User) -> Environment {
    let work_dir = spec.work_dir().as_str();
    let images = |name: &str| {
        image.env.iter().find_map(|entry| {
            entry
                .split_once('=')
                .filter(|(key, _)| *key == name)
                .map(|(_, value)| value)
        })
    };
    let home = match (spec.hardening(), &user.home) {
        (Hardening::AsImage, Some(home)) if home.starts_with('/') && home != "/" => home.as_str(),
        _ => work_dir,
    };
    let path = images("PATH").unwrap_or(PATH);
    let mut variables = BTreeMap::from([
        ("HOME".to_owned(), home.to_owned()),
        ("PATH".to_owned(), format!("{path}:{home}/.local/bin")),
        ("TMPDIR".to_owned(), TMP.to_owned()),
        ("PYTHONUNBUFFERED".to_owned(), "1".to_owned()),
    ]);
    if let Some(name) = &user.name {
        variables.insert("USER".to_owned(), name.clone());
        variables.insert("LOGNAME".to_owned(), name.clone());
    }
    for name in ["TMPDIR", "PYTHONUNBUFFERED"] {
        if let Some(value) = images(name) {
            variables.insert(name.to_owned(), value.to_owned());
        }
    }
    variables.extend(
        spec.env()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    Environment(variables)
}
