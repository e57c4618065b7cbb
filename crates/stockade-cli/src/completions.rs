//! `stockade completions`: what a shell completes.

use clap::CommandFactory as _;

use crate::{args, exit, say};

/// Prints them; the answer is our own exit code.
pub(crate) fn completions(args: &args::Completions) -> u8 {
    let mut script = Vec::new();
    let mut command = args::Cli::command();
    clap_complete::generate(args.shell, &mut command, "stockade", &mut script);
    exit::of_writing(&say::text(&String::from_utf8_lossy(&script)))
}
