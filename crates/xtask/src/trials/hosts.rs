//! Processes that are hosts, on one engine and of one owner.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use tempfile::TempDir;

use super::verdict::Verdict;
use crate::engine::Engine;
use crate::environment;
use crate::process::{Program, Running, tail};
use crate::workspace::build;

/// How long an answer of the engine may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The age at which a folder of a dead host is removed (`docker_driver`), and a little more.
#[cfg(target_os = "linux")]
const SETTLED: Duration = Duration::from_secs(65);

/// What hosts are started with.
#[derive(Debug)]
pub(super) struct Hosts {
    program: PathBuf,
    pub(super) engine: Engine,
    image: String,
    pub(super) owner: String,
    /// What hosts say, and what they put on the machine.
    folder: TempDir,
}

/// A host that runs.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) running: Running,
    said: PathBuf,
    complained: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Reaped {
    sandboxes: u64,
    others: u64,
    failures: Vec<String>,
}

impl Hosts {
    /// Builds the program.
    pub(super) fn new(what: &str, engine: Engine, image: String) -> Result<Self> {
        Ok(Self {
            program: build("stockade-tests", "stockade-test-host")?,
            engine,
            image,
            owner: format!("{what}-{}", std::process::id()),
            folder: tempfile::tempdir().context("making a folder for what hosts say")?,
        })
    }

    /// Starts a host with these words after owner and image.
    pub(super) fn start(&self, name: &str, mode: &str, words: &[String]) -> Result<Host> {
        let [said, complained] =
            ["said", "complained"].map(|of| self.folder.path().join(format!("{name}.{of}")));
        let running = self
            .program(mode)?
            .arg(&self.image)
            .args(words)
            .env("STOCKADE_TEST_HOST_LEASH", "1")
            .start(&said, &complained)?;
        Ok(Host {
            running,
            said,
            complained,
        })
    }

    fn program(&self, mode: &str) -> Result<Program> {
        let program = Program::new(&self.program)
            .args([mode, &self.owner])
            .envs(environment::reaching(&self.engine)?)
            .env("RUST_BACKTRACE", "0") // the end of what it says is the reason
            .env("TMPDIR", self.place("temporary")?)
            .env("XDG_RUNTIME_DIR", self.place("runtime")?);
        Ok(program)
    }

    /// A folder that hosts use and should leave as it was.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let place = self.folder.path().join(name);
        std::fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
        Ok(place)
    }

    /// What hosts left in the folders for temporary files and locks.
    fn files(&self) -> Result<Vec<LeftFile>> {
        let mut found = Vec::new();
        for place in ["temporary", "runtime"] {
            files_below(&self.place(place)?, &mut found)?;
        }
        Ok(found)
    }

    /// Names of what the engine has of a sort; with the owner's label only, or all.
    pub(super) fn listed(&self, words: &[&str], only_owner: bool) -> Result<Vec<String>> {
        let label = format!("label=dev.stockade.owner={}", self.owner);
        let list = self.engine.docker().args(words).deadline(PATIENCE);
        let list = if only_owner {
            list.args(["--filter", &label])
        } else {
            list
        };
        Ok(list.read()?.lines().map(str::to_owned).collect())
    }

    /// Removes everything of the owner as an operator would, and requires that nothing is left on
    /// the engine.
    pub(super) fn undo(&self, verdict: &mut Verdict) -> Result<()> {
        let reaped = self.reap()?;
        verdict.tell(
            "removed by the last reap",
            format_args!("{} sandboxes, {} others", reaped.sandboxes, reaped.others),
        );
        verdict.none("what it could not remove", &reaped.failures);
        for (what, words) in SORTS {
            verdict.none(&format!("{what} left"), &self.listed(words, true)?);
        }
        Ok(())
    }

    /// Requires that nothing is left in the folders for temporary files and locks, but for records
    /// of pauses: those are kept for whoever thaws, for as long as a sandbox can be in one.
    pub(super) fn no_files(&self, verdict: &mut Verdict) -> Result<()> {
        let (records, left): (Vec<_>, Vec<_>) =
            self.files()?.into_iter().partition(LeftFile::is_record);
        verdict.tell("records of pauses whose end nobody saw", records.len());
        let left: Vec<String> = left.iter().map(LeftFile::to_string).collect();
        verdict.none("temporary and lock files left", &left);
        Ok(())
    }

    /// The same after hosts were killed, whose folders are removed by a host that comes when they
    /// are old enough to be nobody's.
    #[cfg(target_os = "linux")]
    pub(super) fn no_files_of_the_dead(&self, verdict: &mut Verdict) -> Result<()> {
        std::thread::sleep(SETTLED);
        self.reap()?;
        self.no_files(verdict)
    }

    fn reap(&self) -> Result<Reaped> {
        let finished = self.program("reap")?.deadline(PATIENCE).finish()?;
        if !finished.status.success() {
            bail!(
                "the host that reaps ended early: {}",
                tail(&finished.stderr)
            );
        }
        serde_json::from_slice(&finished.stdout).context("what the host that reaps says")
    }
}

/// What an owner's label is on, and how docker lists it.
const SORTS: [(&str, &[&str]); 4] = [
    (
        "containers",
        &["ps", "--all", "--format={{.Names}} {{.Status}}"],
    ),
    ("volumes", &["volume", "ls", "--format={{.Name}}"]),
    ("networks", &["network", "ls", "--format={{.Name}}"]),
    ("images", &["image", "ls", "--format={{.ID}}"]),
];

impl Host {
    /// What it has said so far.
    pub(super) fn said(&self) -> &Path {
        &self.said
    }

    /// Waits for its end. One that does not end is killed and named, and so is one that failed.
    pub(super) fn finish(&mut self, longest: Duration) -> Result<Option<String>> {
        let Some(status) = self.running.wait(longest)? else {
            self.running.kill()?;
            return Ok(Some(format!("it did not end within {longest:?}")));
        };
        if status.success() {
            return Ok(None);
        }
        let complained = std::fs::read(&self.complained).unwrap_or_default();
        Ok(Some(format!("{status}: {}", tail(&complained))))
    }
}

/// A file that a host has left.
#[derive(Debug, PartialEq, Eq)]
struct LeftFile {
    path: PathBuf,
    /// Its first bytes.
    begin: Vec<u8>,
}

impl LeftFile {
    fn is_record(&self) -> bool {
        self.path.extension().is_some_and(|of| of == "hold") && self.begin == b"paused\n"
    }
}

impl Display for LeftFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let begin = String::from_utf8_lossy(&self.begin);
        write!(f, "{} {begin:?}", self.path.display())
    }
}

fn files_below(folder: &Path, found: &mut Vec<LeftFile>) -> Result<()> {
    const SHOWN: usize = 100;
    let reading = || format!("reading {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.is_dir() {
            files_below(&path, found)?;
        } else {
            let mut begin = std::fs::read(&path).with_context(reading)?;
            begin.truncate(SHOWN);
            found.push(LeftFile { path, begin });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_pause_is_told_from_a_lock_that_nobody_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("below");
        std::fs::create_dir(&below).expect("it is made");
        std::fs::write(below.join("a.hold"), "paused\n").expect("it is written");
        std::fs::write(below.join("b.hold"), "").expect("it is written");
        let mut found = Vec::new();
        files_below(folder.path(), &mut found).expect("a look");
        let (records, others): (Vec<_>, Vec<_>) = found.iter().partition(|file| file.is_record());
        assert_eq!((records.len(), others.len()), (1, 1));
        assert!(others[0].to_string().ends_with("b.hold \"\""));
    }
}
