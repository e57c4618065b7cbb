//! Running programs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Engine, Program, SandboxOptions};
use crate::exit;

const RUN_EXAMPLES: &str = "\
A TIME is written like 90s, 5m or 1h30m, a SIZE like 512MiB or 2GiB.
The image can also be named by STOCKADE_IMAGE, as in these examples.

  Run a program on data from standard input:
    stockade run -- python3 -c 'print(len(open(0).read()))' < data
  Files in, files out:
    stockade run --file plot.py --file in.csv --out '*.png' --out report.md -- python3 plot.py
  A shell line, ten seconds, half a gigabyte:
    stockade run --timeout 10s --memory 512MiB --shell 'seq 9 | wc'
  A terminal:
    stockade run --tty -- bash
  The result as one JSON object:
    stockade run --json -- python3 -c 'print(6*7)'";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{}", exit::HELP))]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,
    /// End the sandbox when nothing was heard of stockade for this time, so that a killed stockade
    /// leaves nothing for longer.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) idle_limit: Duration,

    /// Send a file, or a directory with all that is in it, before the program starts; repeatable.
    ///
    /// DST is relative to the work directory, or absolute below it, and exactly the place, unless
    /// it ends with a slash or is the work directory itself: then SRC keeps its own name in it,
    /// as it does without DST. `DIR/.` stands for what is in DIR. The last colon separates SRC
    /// from DST, unless something of the whole name exists. Modes and times are kept. One file may
    /// have 64 MiB. What is no file or directory (links too, without --follow) is refused by name
    /// before anything starts.
    #[arg(long, short = 'f', value_name = "SRC[:DST]")]
    pub(crate) file: Vec<OsString>,
    /// Follow links in what --file names, instead of refusing them.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Bring a file, a directory, or the files that match a pattern, after the program ended,
    /// whatever its exit code; repeatable.
    ///
    /// PATH is relative to the work directory, or absolute below it. In a pattern `*` and `?` stay
    /// in one directory, `**` goes through all, and `[...]` and `{a,b}` work as in a shell; `[*]`
    /// is a star itself. Patterns bring files only. Each lands at the same path below --out-dir,
    /// or at DEST (in it, when it is a directory or ends with a slash, and for patterns). The last
    /// colon separates PATH from DEST. Everything is read before anything lands; what exists on
    /// the host is not replaced without --overwrite, and links are never followed, here or there.
    #[arg(long, short = 'o', value_name = "PATH[:DEST]")]
    pub(crate) out: Vec<OsString>,
    /// Where outputs land.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) out_dir: PathBuf,
    /// Replace files of the host by outputs; never a link or a directory.
    #[arg(long)]
    pub(crate) overwrite: bool,

    #[command(flatten)]
    pub(crate) engine: Engine,
    #[command(flatten)]
    pub(crate) program: Program,
}

#[derive(Debug, Args)]
#[command(after_long_help = exit::HELP)]
pub(crate) struct Exec {
    /// The sandbox, as `stockade create` named it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) engine: Engine,
    #[command(flatten)]
    pub(crate) program: Program,
}
