//! A docker client that misbehaves at its N-th start, around the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// How it misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests run through all of them")]
pub enum Fault {
    /// Fails without asking the engine.
    Fails,
    /// Never answers, and never asks the engine.
    Hangs,
    /// Answers with something else, without asking the engine.
    Garbage,
    /// Does its work, and then answers with half of it and fails.
    HalfWay,
    /// Does its work, and is killed before it answers.
    Killed,
    /// Does its work, a second late, with a warning.
    Late,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 6] = [
        Self::Fails,
        Self::Hangs,
        Self::Garbage,
        Self::HalfWay,
        Self::Killed,
        Self::Late,
    ];

    fn script(self) -> String {
        match self {
            Self::Fails => "echo 'something went wrong' >&2; exit 1".to_owned(),
            Self::Hangs => "exec sleep 1000".to_owned(),
            Self::Garbage => "echo '{\"Oops\": [1, 2'; exit 0".to_owned(),
            Self::HalfWay => "docker \"$@\" < /dev/null | head -c 20; exit 1".to_owned(),
            Self::Killed => "docker \"$@\" < /dev/null > /dev/null 2>&1; kill -9 $$".to_owned(),
            Self::Late => "sleep 1; echo 'WARNING: late' >&2; exec docker \"$@\"".to_owned(),
        }
    }
}

/// Writes the client into a folder of its own, and gives its path.
///
/// # Panics
///
/// When the folder cannot be written to.
#[must_use]
pub fn client(folder: &Path, at: u32, fault: Fault) -> PathBuf {
    let path = folder.join("docker");
    let count = folder.join("count");
    fs::write(&count, "").expect("the count can be written");
    let script = format!(
        "#!/bin/sh\necho x >> {count}\nif [ $(wc -l < {count}) -eq {at} ]; then\n{fault}\nfi\nexec docker \"$@\"\n",
        count = count.display(),
        fault = fault.script(),
    );
    fs::write(&path, script).expect("the client can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it becomes executable");
    path
}

/// How often the client of this folder was started.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn starts(folder: &Path) -> usize {
    fs::read_to_string(folder.join("count"))
        .expect("the count can be read")
        .lines()
        .count()
}
