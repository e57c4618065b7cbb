//! The script and the record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What to do when a call fits. In the script:
///
/// ```json
/// {"words": ["volume", "rm"], "having": ["cache"], "nth": 2,
///  "steps": [{"out": "cache\n"}, {"exit": 0}]}
/// ```
///
/// A call fits when it starts with all of `words`, has every one of `having`
/// among its words, and, where `nth` is given, is the n-th call (from 1) that
/// does. Without an [`Exit`](Step::Exit) it ends with exit code 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    words: Vec<String>,
    #[serde(default)]
    having: Vec<String>,
    nth: Option<usize>,
    #[serde(default)]
    steps: Vec<Step>,
}

/// One thing that the stand-in does. Gates and marks are files beside the
/// script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Writes a text to standard output.
    Out(String),
    /// Writes bytes to standard output.
    OutBytes(Vec<u8>),
    /// Writes a text to standard error.
    Err(String),
    /// Writes this many bytes `x` to standard output.
    Flood(u64),
    /// Writes this many bytes `x` to standard error.
    FloodErr(u64),
    /// Copies standard input to standard output, to its end.
    CopyInput,
    /// Reads standard input to its end, and keeps it in a file beside the script.
    Input(String),
    /// Writes an id into the file of `--cidfile`, if there is one, and the same
    /// with `sha256:` before it into that of `--iidfile`.
    WriteId(String),
    /// Waits for this many milliseconds.
    Pause(u64),
    /// Sets a mark, which holds the process's id.
    Mark(String),
    /// Waits until a gate is open.
    WaitFor(String),
    /// Ignores the signal that asks it to end.
    IgnoreTerm,
    /// Waits for ever.
    Hang,
    /// Starts a process that holds both output pipes until a gate is open.
    HoldPipes(String),
    /// Ends with an exit code.
    Exit(u8),
    /// Ends itself by the signal that cannot be caught.
    Die,
}

/// What one call had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Received {
    /// Its process.
    pub pid: u32,
    /// Its process's group.
    pub group: u32,
    /// Its words.
    pub words: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// What the file of `--env-file` held.
    pub env_file: Option<String>,
    /// Permissions of that file.
    pub env_file_mode: Option<u32>,
}

impl Rule {
    /// For calls that start with these words.
    pub fn on(words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            words,
            having: Vec::new(),
            nth: None,
            steps: Vec::new(),
        }
    }

    /// And that have this word.
    #[must_use]
    pub fn having(mut self, word: impl Into<String>) -> Self {
        self.having.push(word.into());
        self
    }

    /// And of those the n-th only, from 1.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = Some(nth);
        self
    }

    /// Then does this.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Then writes a text to standard output.
    #[must_use]
    pub fn out(self, text: impl Into<String>) -> Self {
        self.step(Step::Out(text.into()))
    }

    /// Then writes a text to standard error.
    #[must_use]
    pub fn err(self, text: impl Into<String>) -> Self {
        self.step(Step::Err(text.into()))
    }

    /// Then ends with an exit code.
    #[must_use]
    pub fn exit(self, code: u8) -> Self {
        self.step(Step::Exit(code))
    }

    /// What binding asks, answered as by an engine of version 28.5.2 on Linux.
    pub fn engine() -> [Self; 3] {
        [
            Self::on(&["context", "inspect"]).out(include_str!("engine/context.json")),
            Self::on(&["version"]).out(include_str!("engine/version.json")),
            Self::on(&["info"]).out(include_str!("engine/info.json")),
        ]
    }

    /// Whether a call fits, apart from which one it is.
    pub(super) fn fits(&self, call: &Received) -> bool {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        call.starts_with(&words) && self.having.iter().all(|word| call.words.contains(word))
    }

    pub(super) fn is_for(&self, nth: usize) -> bool {
        self.nth.is_none_or(|only| only == nth)
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Received {
    /// Whether its words start with these.
    pub fn starts_with(&self, words: &[&str]) -> bool {
        let mut own = self.words.iter();
        words
            .iter()
            .all(|word| own.next().is_some_and(|own| own == word))
    }
}
