//! Starts the program under test.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use stockade_tests::engine::{PYTHON, left_of, unique};
use tempfile::TempDir;

/// One owner's use of the program.
pub(crate) struct Tool {
    pub(crate) owner: String,
}

impl Tool {
    pub(crate) fn new() -> Self {
        Self {
            owner: unique("cli"),
        }
    }

    /// `stockade run` with the Python image, the options, and the program.
    pub(crate) fn command(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
        command
            .arg("run")
            .args(["--image", PYTHON, "--owner", &self.owner])
            .args(options)
            .arg("--")
            .args(program);
        command
    }

    /// Runs it to its end with this standard input.
    pub(crate) fn run(&self, options: &[&str], program: &[&str], input: &[u8]) -> Output {
        finish(&mut self.command(options, program), input)
    }

    /// Nothing of this owner is left on the engine.
    pub(crate) fn assert_clean(&self) {
        let left = left_of(&self.owner);
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

/// One user: an owner, a folder to work in, and a place for notes.
pub(crate) struct User {
    pub(crate) tool: Tool,
    pub(crate) folder: TempDir,
    pub(crate) notes: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self {
            tool: Tool::new(),
            folder: tempfile::tempdir().expect("a folder"),
            notes: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
        command
            .args(words)
            .env("STOCKADE_OWNER", &self.tool.owner)
            .env("STOCKADE_IMAGE", PYTHON)
            .env("XDG_STATE_HOME", self.notes.path())
            .current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        finish(&mut self.command(words), b"")
    }

    /// Runs what must succeed; its standard output.
    #[track_caller]
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(code(&output), 0, "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs what must be refused with this code and these words.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str], wanted: i32, told: &[&str]) {
        let output = self.run(words);
        assert_eq!(code(&output), wanted, "{words:?}: {}", said(&output));
        for word in told {
            assert!(
                said(&output).contains(word),
                "{words:?}: {word} is not in {}",
                said(&output)
            );
        }
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.done(words)).expect("it is JSON")
    }
}

/// Runs a command to its end with this standard input.
pub(crate) fn finish(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // A program that does not read its input is no fault.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the program ends");
    feeder.join().expect("the feeder ends");
    output
}

/// What a program said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Names in a folder of the host, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The code of a program that was not killed.
pub(crate) fn code(output: &Output) -> i32 {
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("killed: {output:?}"))
}

/// Waits until the program listens for signals: its handler is installed.
pub(crate) fn await_signals(child: &std::process::Child) {
    let status = format!("/proc/{}/status", child.id());
    loop {
        let text = std::fs::read_to_string(&status).expect("it runs");
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.expect("a mask").trim(), 16).expect("hexadecimal");
        // SIGINT is signal 2, SIGHUP, which is watched last, signal 1.
        if caught & 0b11 == 0b11 {
            return;
        }
        std::thread::yield_now();
    }
}
