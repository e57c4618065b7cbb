//! Files of a sandbox that stays.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::Engine;
use crate::exit;

const CP_EXAMPLES: &str = "\
Examples, with a sandbox `analysis`:
  Into it:
    stockade cp data.csv analysis:              as data.csv in its work directory
    stockade cp data.csv analysis:in/raw.csv    as exactly that
    stockade cp src data analysis:in/           as in/src and in/data
    stockade cp src/. analysis:                 what is in src, without the directory
    pg_dump mydb | stockade cp - analysis:dump.sql
  Out of it:
    stockade cp analysis:report.md .
    stockade cp 'analysis:plots/**' plots
    stockade cp analysis:result.json - | jq .";

#[derive(Debug, Args)]
#[command(override_usage = "stockade cp [OPTIONS] <SRC>... <DST>", after_help = CP_EXAMPLES, after_long_help = format!("{CP_EXAMPLES}\n\n{}", exit::HELP))]
pub(crate) struct Cp {
    /// What to copy, and where to, last. `NAME:PATH` is in the sandbox NAME, anything else on the
    /// host (write `./a:b` for a file of the host whose name has a colon), and `-` is standard
    /// input or output, for one file.
    ///
    /// Directories are copied with all that is in them. A place that is a directory, or ends with
    /// a slash, takes the sources under their own names; anything else is exactly the place. In
    /// the sandbox, files are replaced; on the host only with --overwrite. PATH out of a sandbox
    /// may be a pattern, as in `stockade run --out`.
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    /// Does nothing: directories are always copied whole.
    #[arg(long, short = 'r', hide_short_help = true)]
    pub(crate) recursive: bool,
    /// Follow links of the host, instead of refusing them.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Replace files of the host; never a link or a directory.
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct Ls {
    /// The sandbox, and what to list in it; its work directory when PATH is left out.
    #[arg(value_name = "NAME[:PATH]")]
    pub(crate) target: OsString,
    /// List everything below it.
    #[arg(long, short = 'R')]
    pub(crate) recursive: bool,
    /// List at most so many entries; says so when there are more.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000), value_name = "NUMBER")]
    pub(crate) max_entries: u32,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command on files.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Give up after this time.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
