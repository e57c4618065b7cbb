//! Starts the program under test.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use stockade_tests::engine::{PYTHON, left_of, unique};

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
