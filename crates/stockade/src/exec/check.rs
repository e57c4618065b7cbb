//! The rules of a request.

use super::request::{ExecRequest, Program, TIMEOUT_CEILING};
use crate::encoded::{self, ARGUMENT_BYTES};
use crate::fault::Fault;
use crate::text::excerpt_bytes;

/// Most bytes that a command's arguments and variables may take as JSON.
///
/// A request may have 1 MiB; 128 KiB of that are for the variables of the
/// spec and 16 KiB for everything else.
pub const REQUEST_BYTES: usize = 1024 * 1024 - crate::spec::ENVIRONMENT_BYTES - 16 * 1024;

/// Most bytes of a path: Linux's `PATH_MAX`, less the terminating NUL.
const PATH_BYTES: usize = 4095;

/// Adds every fault of a request.
pub(super) fn all(request: &ExecRequest, faults: &mut Vec<Fault>) {
    match &request.program {
        Program::Argv(argv) => arguments(argv, faults),
        Program::Shell(line) => shell(line, faults),
    }
    for (name, value) in &request.env {
        if let Some((wrong, remedy)) = encoded::variable_fault(name, value) {
            faults.push(Fault::new("env", name, wrong, remedy));
        }
    }
    size(request, faults);
    if let Some(cwd) = &request.cwd {
        working_directory(cwd, faults);
    }
    if request.timeout.is_zero() || request.timeout > TIMEOUT_CEILING {
        faults.push(Fault::new(
            "timeout",
            format!("{:?}", request.timeout),
            format!("it is zero, or above the ceiling {TIMEOUT_CEILING:?}"),
            "give the time that the command may take",
        ));
    }
}

fn arguments(argv: &[Vec<u8>], faults: &mut Vec<Fault>) {
    let Some(program) = argv.first() else {
        faults.push(Fault::new(
            "argv",
            "",
            "it is empty",
            "name a program, then its arguments",
        ));
        return;
    };
    if program.is_empty() {
        faults.push(Fault::new(
            "argv",
            "",
            "the program's name is empty",
            "name a program",
        ));
    }
    // One fault of each sort is enough: there can be a hundred thousand arguments.
    if let Some(argument) = argv.iter().find(|argument| argument.contains(&0)) {
        faults.push(Fault::new(
            "argv",
            excerpt_bytes(argument),
            "an argument holds a NUL, which no argument can",
            "pass binary data on standard input or as a file",
        ));
    }
    if let Some(argument) = argv.iter().find(|argument| argument.len() > ARGUMENT_BYTES) {
        faults.push(Fault::new(
            "argv",
            excerpt_bytes(argument),
            format!(
                "an argument of {} bytes is longer than the {ARGUMENT_BYTES} that the kernel takes",
                argument.len()
            ),
            "pass it on standard input or as a file",
        ));
    }
}

fn shell(line: &[u8], faults: &mut Vec<Fault>) {
    if line.is_empty() {
        faults.push(Fault::new(
            "shell",
            "",
            "the line is empty",
            "give a command",
        ));
    }
    if line.contains(&0) {
        faults.push(Fault::new(
            "shell",
            excerpt_bytes(line),
            "the line holds a NUL, which no argument can",
            "pass binary data on standard input or as a file",
        ));
    }
    if line.len() > ARGUMENT_BYTES {
        faults.push(Fault::new(
            "shell",
            excerpt_bytes(line),
            format!(
                "a line of {} bytes is longer than the {ARGUMENT_BYTES} that the kernel takes",
                line.len()
            ),
            "pass the script on standard input or as a file",
        ));
    }
}

fn size(request: &ExecRequest, faults: &mut Vec<Fault>) {
    let (field, program) = match &request.program {
        Program::Argv(argv) => ("argv", argv.iter().map(|a| encoded::argument(a)).sum()),
        Program::Shell(line) => ("shell", encoded::argument(line)),
    };
    let variables = request.env.iter();
    let env: usize = variables
        .map(|(name, value)| encoded::variable(name, value))
        .sum();
    let cwd = request.cwd.as_deref().map_or(0, encoded::argument);
    let total = program + env + cwd;
    if total > REQUEST_BYTES {
        faults.push(Fault::new(
            if env > program { "env" } else { field },
            format!("{total} bytes"),
            format!(
                "arguments and variables together take more than {REQUEST_BYTES} bytes as JSON"
            ),
            "pass large data on standard input or as a file",
        ));
    }
}

fn working_directory(cwd: &[u8], faults: &mut Vec<Fault>) {
    if cwd.is_empty() || cwd.contains(&0) || cwd.len() > PATH_BYTES {
        faults.push(Fault::new(
            "cwd",
            excerpt_bytes(cwd),
            format!("it is empty, holds a NUL or is longer than {PATH_BYTES} bytes"),
            "name a directory of the sandbox, or leave it out for the work directory",
        ));
    }
}
