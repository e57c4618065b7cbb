//! From the command line to a request for a command. Every fault is reported,
//! not the first only.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use stockade::ExecRequest;
use stockade::exec::Stdin;

use crate::args::Program;
use crate::{advice, terminal};

/// The command, or everything that is wrong with it.
pub(crate) fn command(program: &Program) -> Result<ExecRequest, Vec<String>> {
    let mut faults = Vec::new();
    let builder = match &program.shell {
        Some(line) => ExecRequest::shell(line.as_bytes()),
        None => ExecRequest::argv(program.program.iter().map(|word| word.as_bytes())),
    };
    let stdin = match (program.no_stdin, program.json) {
        (true, _) => Stdin::Closed,
        (false, true) => Stdin::reader(tokio::io::stdin()),
        (false, false) => Stdin::Piped,
    };
    let builder = builder
        .timeout(program.timeout)
        .stdin(stdin)
        .envs(environment(program, &mut faults));
    let builder = match &program.cwd {
        Some(cwd) => builder.cwd(cwd.as_bytes()),
        None => builder,
    };
    let builder = match program.max_output {
        Some(most) => builder.output_limit(most.as_u64()),
        // Passed through, nothing is kept, and the reader's pace is the bound.
        None if !program.json => builder.output_limit(u64::MAX),
        None => builder,
    };
    if program.tty && !terminal::is_terminal() {
        faults.push("--tty: standard input is no terminal; leave --tty out".to_owned());
    }
    match builder.tty(program.tty.then(terminal::size)).build() {
        Ok(request) if faults.is_empty() => Ok(request),
        Ok(_) => Err(faults),
        Err(error) => {
            faults.extend(error.faults().iter().map(advice::fault));
            Err(faults)
        }
    }
}

/// Variables; their values are bytes, and only named in faults.
fn environment(program: &Program, faults: &mut Vec<String>) -> Vec<(String, Vec<u8>)> {
    let mut variables = Vec::new();
    for entry in &program.env {
        let bytes = entry.as_bytes();
        let equals = bytes.iter().position(|&byte| byte == b'=');
        let name = OsStr::from_bytes(&bytes[..equals.unwrap_or(bytes.len())]);
        let Some(text) = name.to_str() else {
            faults.push(format!("--env {}: a name is UTF-8", name.display()));
            continue;
        };
        match (equals, std::env::var_os(name)) {
            (Some(equals), _) => variables.push((text.to_owned(), bytes[equals + 1..].to_vec())),
            (None, Some(value)) => variables.push((text.to_owned(), value.as_bytes().to_vec())),
            (None, None) => faults.push(format!(
                "--env {text}: the environment of stockade has no such variable; set it, or give {text}=VALUE"
            )),
        }
    }
    variables
}
