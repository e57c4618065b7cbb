//! A program to run, and how it is bounded.

use std::ffi::OsString;
use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;

/// Added to the program's timeout for everything around it.
const AROUND: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Args)]
pub(crate) struct Program {
    /// Set a variable; `NAME` alone takes its value from the environment of stockade, which keeps
    /// it off the command line.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,
    /// Working directory of the program, absolute or below the sandbox's work directory, which is
    /// the default.
    #[arg(long, value_name = "PATH")]
    pub(crate) cwd: Option<OsString>,
    /// End the program with all its processes after this time.
    #[arg(long, default_value = "120s", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) timeout: Duration,
    /// Give the whole command up after this time; pulling the image counts. The default is
    /// --timeout and a quarter of an hour.
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Option<Duration>,
    /// End the program when it has written this much to both streams together. Without --json
    /// there is no bound, since nothing is kept.
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_output: Option<ByteSize>,
    /// Give the program a terminal; standard input must be one.
    #[arg(long, short = 't', conflicts_with = "json")]
    pub(crate) tty: bool,
    /// Give the program no standard input.
    #[arg(long)]
    pub(crate) no_stdin: bool,
    /// Print one JSON object instead of passing the program's output through.
    #[arg(long)]
    pub(crate) json: bool,

    /// A line for the image's /bin/sh, instead of a program.
    #[arg(long, value_name = "LINE", conflicts_with = "program")]
    pub(crate) shell: Option<OsString>,
    /// The program and its arguments.
    #[arg(last = true, required_unless_present = "shell", value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

impl Program {
    /// The deadline of the whole command.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
            .unwrap_or_else(|| self.timeout.saturating_add(AROUND))
    }
}
