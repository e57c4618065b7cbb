//! What an operator asks of an engine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Engine;
use crate::exit;

const PS_EXAMPLES: &str = "\
Examples:
  stockade ps                            of this owner
  stockade ps --all-owners --no-activity quickly, of everybody on the engine
  stockade ps --json | jq '.sandboxes[] | select(.activity.idle_seconds > 600) | .container'
  stockade rm $(stockade ps --quiet --scope tenant-7)";

#[derive(Debug, Args)]
#[command(after_help = PS_EXAMPLES, after_long_help = format!("{PS_EXAMPLES}\n\n{}", exit::OPERATOR_HELP))]
pub(crate) struct Ps {
    /// Also sandboxes of other owners on the same engine.
    #[arg(long, short = 'a')]
    pub(crate) all_owners: bool,
    /// Only sandboxes of this scope; those of `stockade` itself have the scope `cli`.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// Do not ask the sandboxes what they do, only the engine what there is.
    #[arg(long)]
    pub(crate) no_activity: bool,
    /// Print only the full ids, one in a line.
    #[arg(long, short = 'q', conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
#[command(after_long_help = exit::OPERATOR_HELP)]
pub(crate) struct Logs {
    /// The name of `stockade create`, or a container's name, full id, or first digits of the id
    /// (8 at least). One that has gone is found by its name of `create` or by its full id.
    #[arg(value_name = "SANDBOX")]
    pub(crate) sandbox: String,
    #[command(flatten)]
    pub(crate) look: Look,
}

const REAP_EXAMPLES: &str = "\
Examples:
  stockade reap --idle-for 2h              what nobody has used for two hours
  stockade reap --older-than 1d --in-use   what is older than a day, whatever it does
  stockade reap --scope tenant-7 --all     what of a tenant is not in use
Every condition that is given must hold. What is in use (a host is attached, a command is
alive, or it is being made right now) stays and is counted, unless --in-use is given.";

#[derive(Debug, Args)]
#[command(after_help = REAP_EXAMPLES, after_long_help = format!("{REAP_EXAMPLES}\n\n{}", exit::OPERATOR_HELP))]
pub(crate) struct Reap {
    /// Only what was made longer ago, by the engine's clock.
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) older_than: Option<Duration>,
    /// Only what nobody has used for longer: no host attached and no command alive.
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) idle_for: Option<Duration>,
    /// Only what is of this scope.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
    /// Everything of this owner that the other conditions leave.
    #[arg(long)]
    pub(crate) all: bool,
    /// Also what is in use; its commands end.
    #[arg(long)]
    pub(crate) in_use: bool,
    #[command(flatten)]
    pub(crate) work: Work,
}

#[derive(Debug, Args)]
#[command(after_long_help = exit::OPERATOR_HELP)]
pub(crate) struct Df {
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
#[command(after_long_help = exit::OPERATOR_HELP)]
pub(crate) struct Prune {
    /// Also what the next sandbox would need again: the runtime volume of this version, and the
    /// newest image of each build directory. What a container uses always stays.
    #[arg(long, short = 'a')]
    pub(crate) all: bool,
    /// Only say what would go.
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) work: Work,
}

const SETUP_EXAMPLES: &str = "\
Examples:
  stockade setup --image python:3.13-slim --image debian:stable
  stockade setup --build ./sandbox-image
  stockade setup --remove

Setup does ahead what the first sandbox of an image would do: it pulls or builds the image, looks
into it, and brings the guest runtime to the engine. Nothing else needs to be set up, and nothing
on this machine is changed. --remove removes all of this owner from the engine: sandboxes, in use
or not, work directories, built images, what killed processes left, runtime volumes that nobody
uses, and the notes of named sandboxes. Pulled images stay.";

#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES, after_long_help = format!("{SETUP_EXAMPLES}\n\n{}", exit::OPERATOR_HELP))]
pub(crate) struct Setup {
    /// An image to make ready; repeatable. The one that STOCKADE_IMAGE names when nothing is given.
    #[arg(long, value_name = "REFERENCE")]
    pub(crate) image: Vec<String>,
    /// A directory with a Dockerfile to make an image of; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) build: Vec<PathBuf>,
    /// Remove everything of this owner, instead.
    #[arg(long, conflicts_with_all = ["image", "build"])]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) work: Work,
}

#[derive(Debug, Args)]
#[command(after_long_help = exit::OPERATOR_HELP)]
pub(crate) struct Rm {
    /// What to remove: a sandbox by its name of `stockade create`, its container's name, its full
    /// id or the first digits of that (8 at least); or `NAME:PATH`, a file in a named one. What is
    /// not there is removed already.
    #[arg(value_name = "SANDBOX[:PATH]", required_unless_present = "all")]
    pub(crate) targets: Vec<OsString>,
    /// Remove a directory of a sandbox with all that is in it.
    #[arg(long, short = 'r')]
    pub(crate) recursive: bool,
    /// Remove every sandbox of this owner, in use or not, without asking.
    #[arg(long, conflicts_with_all = ["targets", "recursive"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) work: Work,
}

const COMPLETIONS_EXAMPLES: &str = "\
Where they go:
  stockade completions bash > ~/.local/share/bash-completion/completions/stockade
  stockade completions zsh > ~/.zfunc/_stockade      with ~/.zfunc in fpath
  stockade completions fish > ~/.config/fish/completions/stockade.fish";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct Completions {
    /// The shell that reads them.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Options of a command that changes nothing.
#[derive(Debug, Args)]
#[command(mut_arg("plane", |arg| arg.hide(true)))]
pub(crate) struct Look {
    /// Give up after this time.
    #[arg(long, default_value = "1m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Options of a command that removes or makes.
#[derive(Debug, Args)]
#[command(mut_arg("plane", |arg| arg.hide(true)))]
pub(crate) struct Work {
    /// Give up after this time.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
