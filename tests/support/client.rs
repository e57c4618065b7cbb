//! A docker client that does what it is told, around the real one: what a
//! test says to it, and what it has seen.
//!
//! The program is `stockade-test-docker`. It finds its folder by its own name:
//! a link to it in that folder is what a backend runs as `docker`.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::frames::FrameRule;

const PLAN: &str = "plan";
const SEEN: &str = "seen";
const STRUCK: &str = "struck";
const FRAMES: &str = "frames";

/// How a docker command goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "tests run through all of them")]
pub enum Fault {
    /// Fails without asking the engine, for a reason that nobody knows.
    Fails,
    /// Never answers, and never asks the engine.
    Hangs,
    /// Does its work, and fails in the middle of its answer without a word.
    FailsAfter,
    /// Does its work, and never answers.
    HangsAfter,
    /// Answers with something else, without asking the engine.
    Garbage,
    /// Does its work, and answers with half of it.
    Truncated,
    /// Does its work late, with a warning.
    Late,
    /// Does its work, and answers twice.
    Duplicate,
    /// Is killed before it asks the engine.
    KilledBefore,
    /// Does its work, and is killed before it answers.
    KilledAfter,
    /// Finds no daemon.
    DaemonGone,
    /// Does its work, and loses the daemon in the middle of the answer.
    DaemonLost,
    /// The engine's disk is full.
    DiskFull,
}

/// Which starts of a verb's a rule is about, counted from when it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "tests run through all of them")]
pub enum At {
    /// The one of this number, counted from 1.
    Nth(u32),
    /// All of them.
    Always,
}

/// What goes wrong where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tests take it apart")]
pub struct Rule {
    /// The verb, as the driver names it.
    pub verb: String,
    /// Which of its starts.
    pub at: At,
    /// What goes wrong.
    pub fault: Fault,
}

/// Everything that a client was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tests take it apart")]
pub struct Plan {
    /// What hangs, hangs for as long as this stays the number.
    pub round: u64,
    /// What goes wrong with commands.
    pub rules: Vec<Rule>,
    /// What goes wrong with frames of the first relay; `None` if they are not
    /// even looked at.
    pub frames: Option<Vec<FrameRule>>,
    /// The image that is tagged in place of a pull, since there is no registry.
    pub pulls: Option<String>,
}

/// A test's end of such a client.
#[derive(Debug)]
pub struct Client {
    folder: TempDir,
    round: u64,
    /// What is tagged in place of a pull, also while nothing goes wrong.
    pulls: Option<String>,
}

/// Sees what a client is started for, while its test does something else.
#[derive(Debug, Clone)]
pub struct Watch(PathBuf);

impl Client {
    /// A client that is told nothing; `program` is `stockade-test-docker`.
    ///
    /// # Panics
    ///
    /// When its folder cannot be made.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let client = Self {
            folder,
            round: 0,
            pulls: None,
        };
        std::os::unix::fs::symlink(program, client.path()).expect("a link can be made");
        client.tell(&Plan::default());
        client
    }

    /// What a backend runs as `docker`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("docker")
    }

    /// Tells it what goes wrong from now on, and counts from here.
    pub fn arm(&mut self, mut plan: Plan) {
        self.round += 1;
        plan.round = self.round;
        self.pulls.clone_from(&plan.pulls);
        for file in [SEEN, STRUCK, FRAMES] {
            let _ = fs::remove_file(self.folder.path().join(file));
        }
        self.tell(&plan);
    }

    /// Lets everything that is started from now on be; what hangs, hangs on.
    pub fn disarm(&self) {
        self.tell(&Plan {
            round: self.round,
            pulls: self.pulls.clone(),
            ..Plan::default()
        });
    }

    /// Ends what hangs.
    pub fn release(&mut self) {
        self.round += 1;
        self.disarm();
    }

    /// The verbs that were started since it was armed, in their order.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.watch().seen()
    }

    /// The same, for whoever does not have the client itself.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(self.folder.path().join(SEEN))
    }

    /// The frames that passed the first relay since it was armed.
    #[must_use]
    pub fn frames(&self) -> Vec<String> {
        lines(&self.folder.path().join(FRAMES))
    }

    /// How often something went wrong by the first rule.
    #[must_use]
    pub fn struck(&self) -> usize {
        let struck = lines(&self.folder.path().join(STRUCK));
        struck.iter().filter(|rule| *rule == "0").count()
    }

    fn tell(&self, plan: &Plan) {
        let text = serde_json::to_vec(plan).expect("a plan is JSON");
        let new = self.folder.path().join("plan.new");
        // In one step: a client may read it at any time.
        fs::write(&new, text).expect("the plan can be written");
        fs::rename(&new, self.folder.path().join(PLAN)).expect("the plan can be renamed");
    }
}

impl Watch {
    /// The verbs that were started since the client was armed, in their order.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        lines(&self.0)
    }
}

/// The client's own end.
#[derive(Debug, Clone)]
pub struct Told {
    folder: PathBuf,
    plan: Plan,
}

impl Told {
    /// What a client of this name was told.
    ///
    /// # Panics
    ///
    /// When it was told nothing at all.
    #[must_use]
    pub fn of(name: &Path) -> Self {
        let folder = name.parent().unwrap_or(Path::new(".")).to_owned();
        let plan = read_plan(&folder).expect("the client has a plan");
        Self { folder, plan }
    }

    /// Takes note of a start, and says what goes wrong with it.
    #[must_use]
    pub fn fault(&self, verb: &str) -> Option<Fault> {
        let number = note(&self.folder.join(SEEN), verb);
        let fits = |rule: &Rule| {
            rule.verb == verb && (rule.at == At::Always || rule.at == At::Nth(number))
        };
        let rule = self.plan.rules.iter().position(fits)?;
        self.strikes(rule);
        self.plan.rules.get(rule).map(|rule| rule.fault)
    }

    /// The rules of this relay's frames: those of the first relay.
    #[must_use]
    pub fn frames(&self) -> Option<&[FrameRule]> {
        let rules = self.plan.frames.as_deref()?;
        let first = note(&self.folder.join("relays"), &self.plan.round.to_string()) == 1;
        first.then_some(rules)
    }

    /// The image that is tagged in place of a pull.
    #[must_use]
    pub fn pulls(&self) -> Option<&str> {
        self.plan.pulls.as_deref()
    }

    /// Takes note of a frame, and says which of its kind it is.
    #[must_use]
    pub fn passes(&self, frame: &str) -> u32 {
        note(&self.folder.join(FRAMES), frame)
    }

    /// Takes note that something went wrong by the rule of this number.
    pub fn strikes(&self, rule: usize) {
        let _ = note(&self.folder.join(STRUCK), &rule.to_string());
    }

    /// Whether the test has moved on, or is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        read_plan(&self.folder).is_none_or(|plan| plan.round != self.plan.round)
    }
}

fn read_plan(folder: &Path) -> Option<Plan> {
    serde_json::from_slice(&fs::read(folder.join(PLAN)).ok()?).ok()
}

/// Appends a line, and says how many of its kind there are now. Several
/// clients do so at once.
fn note(path: &Path, line: &str) -> u32 {
    let mut open = OpenOptions::new();
    let Ok(mut file) = open.create(true).append(true).read(true).open(path) else {
        // The test is over, and its folder gone.
        return 0;
    };
    let mut text = String::new();
    let noted = file
        .lock()
        .and_then(|()| file.read_to_string(&mut text))
        .and_then(|_| writeln!(file, "{line}"));
    drop::<File>(file);
    match noted {
        Ok(()) => {
            let before = text.lines().filter(|other| *other == line).count();
            u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
        }
        Err(_) => 0,
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 13] = [
        Self::Fails,
        Self::FailsAfter,
        Self::Hangs,
        Self::HangsAfter,
        Self::Garbage,
        Self::Truncated,
        Self::Late,
        Self::Duplicate,
        Self::KilledBefore,
        Self::KilledAfter,
        Self::DaemonGone,
        Self::DaemonLost,
        Self::DiskFull,
    ];

    /// Whether a command that meets it is ended only by our own patience.
    #[must_use]
    pub fn hangs(self) -> bool {
        matches!(self, Self::Hangs | Self::HangsAfter)
    }
}
