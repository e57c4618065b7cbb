//! The command line, as clap sees it.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit;

/// Runs code that nobody trusts in Docker containers.
#[derive(Debug, Parser)]
#[command(
    name = "stockade",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one program in a fresh sandbox without network, and remove the sandbox.
    Run(Box<Run>),
    /// Check everything that a sandbox needs, and say how to mend what is missing.
    Doctor(Doctor),
}

/// Added to the program's timeout for everything around it.
const AROUND: Duration = Duration::from_secs(15 * 60);

const RUN_EXAMPLES: &str = "\
A TIME is written like 90s, 5m or 1h30m, a SIZE like 512MiB or 2GiB.
The image can also be named by STOCKADE_IMAGE, as in these examples.

  Run a program on data from standard input:
    stockade run -- python3 -c 'print(len(open(0).read()))' < data
  A shell line, ten seconds, half a gigabyte:
    stockade run --timeout 10s --memory 512MiB --shell 'seq 9 | wc'
  A terminal:
    stockade run --tty -- bash
  The result as one JSON object:
    stockade run --json -- python3 -c 'print(6*7)'";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{}", exit::HELP))]
pub(crate) struct Run {
    /// Image to run in.
    #[arg(long, env = "STOCKADE_IMAGE", value_name = "REFERENCE")]
    pub(crate) image: String,
    /// Refuse the image unless it has this digest or id.
    #[arg(long, value_name = "sha256:HEX")]
    pub(crate) digest: Option<String>,
    /// Platform of the image, for images that have several.
    #[arg(long, value_name = "OS/ARCH")]
    pub(crate) platform: Option<String>,
    /// When to pull the image.
    #[arg(long, value_enum, default_value_t = Pull::Missing)]
    pub(crate) pull: Pull,
    /// `strict`: read-only root, never root. `as-image`: the image's own user and a writable root.
    #[arg(long, value_enum, default_value_t = HardeningName::Strict)]
    pub(crate) hardening: HardeningName,

    /// Set a variable; `NAME` alone takes its value from the environment of stockade, which keeps
    /// it off the command line.
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Working directory of the program, absolute or below the sandbox's own (/work).
    #[arg(long, value_name = "PATH")]
    pub(crate) cwd: Option<String>,
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

    /// Memory, with swap off. What --work-size, --tmp-size and /dev/shm (64 MiB) may take counts
    /// against it, and 64 MiB must be left: at least 448MiB with the defaults.
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub(crate) memory: ByteSize,
    /// CPUs, such as 0.5.
    #[arg(long, default_value = "1", value_name = "NUMBER")]
    pub(crate) cpus: f64,
    /// Processes and threads, at least 8.
    #[arg(long, default_value_t = 256, value_name = "NUMBER")]
    pub(crate) pids: u64,
    /// Size of the work directory; counts against the memory.
    #[arg(long, default_value = "256MiB", value_name = "SIZE")]
    pub(crate) work_size: ByteSize,
    /// Size of /tmp; counts against the memory.
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    pub(crate) tmp_size: ByteSize,

    /// End the sandbox when nothing was heard of stockade for this time, so that a killed stockade
    /// leaves nothing for longer.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) idle_limit: Duration,

    /// Print one JSON object instead of passing the program's output through.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,

    /// A line for the image's /bin/sh, instead of a program.
    #[arg(long, value_name = "LINE", conflicts_with = "program")]
    pub(crate) shell: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required_unless_present = "shell", value_name = "PROGRAM")]
    pub(crate) program: Vec<std::ffi::OsString>,
}

impl Run {
    /// The deadline of the whole command.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
            .unwrap_or_else(|| self.timeout.saturating_add(AROUND))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Also run a sandbox of this image.
    #[arg(long, env = "STOCKADE_IMAGE", value_name = "REFERENCE")]
    pub(crate) image: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// How the engine is reached. Docker's own variables and context apply.
#[derive(Debug, Args)]
pub(crate) struct Engine {
    /// The docker client.
    #[arg(
        long,
        env = "STOCKADE_DOCKER",
        default_value = "docker",
        value_name = "PATH"
    )]
    pub(crate) docker: PathBuf,
    /// Whose sandboxes these are; only the same owner's are ever touched.
    #[arg(
        long,
        env = "STOCKADE_OWNER",
        default_value = "stockade-cli",
        value_name = "NAME"
    )]
    pub(crate) owner: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pull {
    Never,
    Missing,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HardeningName {
    Strict,
    AsImage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_two_dashes_is_the_program_even_if_it_looks_like_an_option() {
        let cli =
            Cli::try_parse_from(["stockade", "run", "--image", "i", "--", "a", "--json"]).unwrap();
        let Command::Run(run) = cli.command else {
            panic!("not run")
        };
        assert_eq!(run.program, ["a", "--json"]);
        assert!(!run.json);
    }
}
