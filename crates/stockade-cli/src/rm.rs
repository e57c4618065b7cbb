//! `stockade rm`: sandboxes, or files in one, removed.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};
use stockade::disposal::RemovalFailure;
use stockade::{Backend as _, ReapFilter, SandboxKey, Which};
use stockade_docker::DockerBackend;
use stockade_docker::operate::SandboxFilter;

use crate::choose::{Absent, Chosen, DIGITS, There, choose, may_be_container};
use crate::failure::Failure;
use crate::human;
use crate::named::{self, Name, Target};
use crate::notes::Notes;
use crate::session::Session;
use crate::{args, exit, report, say};

/// Removes them; the answer is our own exit code.
pub(crate) async fn rm(args: &args::Rm) -> u8 {
    let work = &args.work;
    match Session::start(work.deadline, work.json, "ending the removal") {
        Ok(session) => session.code(removed(args, &session).await),
        Err(failure) => failure.tell(work.json, None, None),
    }
}

async fn removed(args: &args::Rm, session: &Session) -> Result<u8, Failure> {
    if args.all {
        return all(args, session).await;
    }
    let asked = asked(args).map_err(Failure::Usage)?;
    let mut objects = Vec::new();
    let mut clean = true;
    let sandboxes: Vec<&str> = asked.iter().filter_map(Asked::sandbox).collect();
    if !sandboxes.is_empty() {
        let removal = Removal::bind(args, session).await?;
        let there = removal.there(&sandboxes).await?;
        let chosen: Result<Vec<Chosen>, String> =
            sandboxes.iter().map(|word| choose(word, &there)).collect();
        // What is meant is settled for all before anything goes.
        for chosen in chosen.map_err(Failure::refused)? {
            let outcome = removal.remove(chosen).await?;
            clean &= outcome.failures.is_empty();
            objects.push(outcome.object());
            outcome.tell(args.work.json);
        }
    }
    for file in &asked {
        if let Asked::File(target) = file {
            objects.push(remove_file(args, session, target).await?);
        }
    }
    let said = match (args.work.json, objects.len()) {
        (false, _) => Ok(()),
        (true, 1) => say::object(&report::versioned(objects.remove(0))),
        (true, _) => say::object(&report::versioned(json!({ "targets": objects }))),
    };
    Ok(if clean {
        exit::of_writing(&said)
    } else {
        exit::FAILED
    })
}

/// One argument.
enum Asked {
    Sandbox(String),
    File(Target),
}

impl Asked {
    fn sandbox(&self) -> Option<&str> {
        match self {
            Self::Sandbox(word) => Some(word),
            Self::File(_) => None,
        }
    }
}

/// What the arguments are, or everything that is wrong with them.
fn asked(args: &args::Rm) -> Result<Vec<Asked>, Vec<String>> {
    let mut asked = Vec::new();
    let mut faults = Vec::new();
    for target in &args.targets {
        match target.to_str() {
            Some(word) if may_be_container(word) && !word.contains(':') => {
                asked.push(Asked::Sandbox(word.to_owned()));
                continue;
            }
            _ => {}
        }
        match Target::parse(target.as_bytes()) {
            Ok(Target { name, path: None }) => {
                asked.push(Asked::Sandbox(name.as_str().to_owned()));
            }
            Ok(target) => asked.push(Asked::File(target)),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        Ok(asked)
    } else {
        Err(faults)
    }
}

/// What sandboxes are removed with.
struct Removal<'a> {
    args: &'a args::Rm,
    session: &'a Session,
    backend: DockerBackend,
    notes: Option<Notes>,
}

/// What became of one.
struct Outcome {
    /// As people know it.
    shown: String,
    id: Option<String>,
    count: u64,
    failures: Vec<RemovalFailure>,
}

impl<'a> Removal<'a> {
    async fn bind(args: &'a args::Rm, session: &'a Session) -> Result<Self, Failure> {
        Ok(Self {
            args,
            session,
            backend: session.connect(&args.work.engine).await?,
            notes: Notes::if_any(),
        })
    }

    /// The sandboxes that there are, if that decides what is meant.
    async fn there(&self, words: &[&str]) -> Result<Vec<There>, Failure> {
        if !words.iter().any(|word| may_be_container(word)) {
            return Ok(Vec::new());
        }
        let filter = SandboxFilter::default();
        let found = self.backend.sandboxes(&self.session.call, &filter).await?;
        Ok(found.iter().map(There::of).collect())
    }

    async fn remove(&self, chosen: Chosen) -> Result<Outcome, Failure> {
        match chosen {
            Chosen::Named(name) => {
                let shown = name.as_str().to_owned();
                let outcome = self.dispose(shown, None, &name.key(), Which::All).await?;
                if outcome.failures.is_empty() {
                    self.forget(&name)?;
                }
                Ok(outcome)
            }
            Chosen::There(there) => {
                let which = Which::Instance(there.id.clone());
                let id = Some(there.id.as_str().to_owned());
                let outcome = self
                    .dispose(there.to_string(), id, &there.key, which)
                    .await?;
                if let Some(name) = there.name().filter(|_| outcome.failures.is_empty()) {
                    self.forget(&name)?;
                }
                Ok(outcome)
            }
            Chosen::Absent(Absent::Id(shown) | Absent::Other(shown)) => Ok(Outcome {
                shown,
                id: None,
                count: 0,
                failures: Vec::new(),
            }),
        }
    }

    async fn dispose(
        &self,
        shown: String,
        id: Option<String>,
        key: &SandboxKey,
        which: Which,
    ) -> Result<Outcome, Failure> {
        let removed = self.backend.dispose(&self.session.call, key, which).await?;
        Ok(Outcome {
            shown,
            id,
            count: removed.count,
            failures: removed.failures,
        })
    }

    /// The sandbox goes first: a note without one says that it has ended.
    fn forget(&self, name: &Name) -> Result<(), Failure> {
        if let Some(notes) = &self.notes {
            let owner = &self.args.work.engine.owner;
            notes.forget(owner, &self.backend.endpoint(), name)?;
        }
        Ok(())
    }
}

impl Outcome {
    fn tell(&self, quiet: bool) {
        for failure in &self.failures {
            say::line(&format!("not removed: {failure}"));
        }
        if self.count == 0 && self.failures.is_empty() && !quiet {
            // No failure, so that a script can remove what may be gone already.
            say::line(&format!(
                "there was no sandbox `{}`{}",
                self.shown,
                too_short(&self.shown)
            ));
        }
    }

    fn object(&self) -> Value {
        json!({
            "name": self.shown,
            "id": self.id,
            "sandboxes": self.count,
            "failures": self.failures.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

async fn remove_file(
    args: &args::Rm,
    session: &Session,
    target: &Target,
) -> Result<Value, Failure> {
    let (_backend, sandbox) = named::find(session, &args.work.engine, &target.name).await?;
    let path = match target.path.as_deref() {
        None | Some(b"") => b".",
        Some(path) => path,
    };
    sandbox.remove(&session.call, path, args.recursive).await?;
    Ok(json!({ "name": target.name.as_str(), "path": report::text(path) }))
}

/// Everything of the owner.
async fn all(args: &args::Rm, session: &Session) -> Result<u8, Failure> {
    let removal = Removal::bind(args, session).await?;
    let (call, backend) = (&session.call, &removal.backend);
    let reaped = backend.reap(call, &ReapFilter::everything()).await?;
    let left = backend.sandboxes(call, &SandboxFilter::default()).await?;
    let left: BTreeSet<String> = left
        .iter()
        .map(|info| info.id.as_str().to_owned())
        .collect();
    let (owner, endpoint) = (&args.work.engine.owner, backend.endpoint());
    if let Some(notes) = &removal.notes {
        notes.forget_gone(owner, &endpoint, &left)?;
    }
    for failure in &reaped.failures {
        say::line(&format!("not removed: {failure}"));
    }
    let said = if args.work.json {
        say::object(&report::versioned(report::reaped(&reaped)))
    } else {
        say::text(&format!(
            "removed {} and {} of the owner {owner} on {endpoint}\n",
            human::count(reaped.sandboxes, "sandbox", "sandboxes"),
            human::count(reaped.others, "other thing", "other things"),
        ))
    };
    Ok(if reaped.is_clean() {
        exit::of_writing(&said)
    } else {
        exit::FAILED
    })
}

/// What is said of a few digits, which may be meant to be those of an id.
fn too_short(word: &str) -> &'static str {
    let digits = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits && word.len() < DIGITS {
        " (the first digits of an id count from 8 on)"
    } else {
        ""
    }
}
