//! A stand-in for the docker client, which does what a script says; for tests
//! of this crate and of those above it (feature `stand-in`).
//!
//! It is a program (`docker-stand-in`; another package makes its own from
//! [`run`]) that finds its script beside the path that it was started by, and
//! so needs neither an environment nor a search path. [`StandIn`] sets up a
//! folder with one and reads what it was called with:
//!
//! - `docker`: a link to the program;
//! - `script.json`: the rules, see [`Rule`];
//! - `calls.jsonl`: one line of JSON for each call, see [`Received`];
//! - other files are gates and marks, see [`Step`].
//!
//! The first rule that fits a call is followed. A call that none fits fails
//! with exit code 125 and says so on standard error.

mod holder;
mod program;
mod script;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

pub use self::holder::run as holder;
pub use self::program::run;
pub use self::script::{Received, Rule, Step};

use crate::bind::{BindConfig, Environment};

/// Longest time that a test waits for the other side; far longer than any
/// machine takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a stand-in. Removed when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    folder: TempDir,
}

impl StandIn {
    /// Sets up a folder around a program that calls [`run`].
    ///
    /// # Panics
    ///
    /// When the program is not there, or the folder cannot be made.
    pub fn new(program: impl AsRef<Path>) -> Self {
        let program = program.as_ref();
        assert!(
            program.is_file(),
            "there is no stand-in at {}",
            program.display()
        );
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        symlink(program, folder.path().join("docker")).expect("the program can be linked to");
        let stand_in = Self { folder };
        stand_in.follow([]);
        stand_in
    }

    /// The same around a program of this name beside the running test, where
    /// cargo puts programs and examples of the package under test.
    ///
    /// # Panics
    ///
    /// When there is none: build it first.
    pub fn beside_this_test(name: &str) -> Self {
        let test = std::env::current_exe().expect("a test has a path");
        let folders = test.ancestors().skip(1).take(2);
        let places =
            folders.flat_map(|folder| [folder.join(name), folder.join("examples").join(name)]);
        let found = places.into_iter().find(|place| place.is_file());
        Self::new(found.unwrap_or_else(|| panic!("no program {name} beside {}", test.display())))
    }

    /// The path to start it by.
    pub fn docker(&self) -> PathBuf {
        self.folder.path().join("docker")
    }

    /// A configuration that binds it, with nothing of this process's own
    /// environment.
    pub fn config(&self) -> BindConfig {
        let environment: Environment = [
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", self.folder.path().as_os_str().to_owned()),
            ("DOCKER_HOST", "unix:///var/run/stand-in.sock".into()),
        ]
        .into_iter()
        .collect();
        let mut config = BindConfig::new(environment);
        config.docker_path = self.docker();
        config
    }

    /// Replaces the rules. Those of [`Rule::engine`] come after these.
    ///
    /// # Panics
    ///
    /// When the script cannot be written.
    pub fn follow(&self, rules: impl IntoIterator<Item = Rule>) {
        let rules: Vec<_> = rules.into_iter().chain(Rule::engine()).collect();
        let script = serde_json::to_vec_pretty(&rules).expect("rules can be written down");
        // Renamed into place, since a process may be reading.
        let new = self.folder.path().join("script.new");
        fs::write(&new, script).expect("the script can be written");
        fs::rename(new, self.folder.path().join("script.json"))
            .expect("the script can be put there");
    }

    /// What it was called with, in order.
    ///
    /// # Panics
    ///
    /// When the record cannot be read.
    pub fn calls(&self) -> Vec<Received> {
        self.record()
            .unwrap_or_default()
            .lines()
            .map(|line| serde_json::from_str(line).expect("a record is JSON"))
            .collect()
    }

    fn record(&self) -> io::Result<String> {
        let mut file = File::open(self.folder.path().join("calls.jsonl"))?;
        // A call may be writing.
        file.lock_shared()?;
        io::read_to_string(&mut file)
    }

    /// The calls that start with these words.
    ///
    /// # Panics
    ///
    /// When the record cannot be read.
    pub fn calls_of(&self, words: &[&str]) -> Vec<Received> {
        self.calls()
            .into_iter()
            .filter(|call| call.starts_with(words))
            .collect()
    }

    /// What a [`Step::Input`] has kept.
    ///
    /// # Panics
    ///
    /// When none has.
    pub fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).expect("input was kept")
    }

    /// Opens a gate that a [`Step::WaitFor`] waits at.
    ///
    /// # Panics
    ///
    /// When the gate cannot be written.
    pub fn open(&self, gate: &str) {
        fs::write(self.folder.path().join(gate), "").expect("a gate can be written");
    }

    /// Waits until a call has reached a [`Step::Mark`].
    ///
    /// # Panics
    ///
    /// When none has after a minute.
    pub async fn reached(&self, mark: &str) {
        let path = self.folder.path().join(mark);
        until(&format!("the mark {mark}"), || path.exists()).await;
    }

    /// Waits until this many calls start with these words.
    ///
    /// # Panics
    ///
    /// When there are not that many after a minute.
    pub async fn called(&self, words: &[&str], times: usize) {
        let what = format!("{times} calls of {words:?}");
        until(&what, || self.calls_of(words).len() >= times).await;
    }
}

/// Waits until something holds that another process makes true.
///
/// # Panics
///
/// When it does not hold after a minute.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let last = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < last, "waited for {what} in vain");
        sleep(Duration::from_millis(5)).await;
    }
}
