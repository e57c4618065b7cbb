//! What a sandbox is made of.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, ValueEnum};

use super::Engine;
use crate::exit;

/// The options that define a sandbox.
#[derive(Debug, Args)]
pub(crate) struct SandboxOptions {
    /// Image to run in; the one that STOCKADE_IMAGE names when neither this nor --build is given.
    #[arg(long, value_name = "REFERENCE", conflicts_with = "build")]
    pub(crate) image: Option<String>,
    /// Build the image to run in from this directory, which has a Dockerfile.
    ///
    /// What the build leaves is an image of this owner, which the next build of the same
    /// directory finds again and which `stockade prune` removes.
    #[arg(long, value_name = "DIR")]
    pub(crate) build: Option<PathBuf>,
    /// Refuse the image unless it has this digest or id.
    #[arg(long, value_name = "sha256:HEX", conflicts_with = "build")]
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
    /// The work directory, in which programs start and files are kept.
    #[arg(long, default_value = "/work", value_name = "PATH")]
    pub(crate) work_dir: String,
    /// Size of the work directory; counts against the memory when it is kept there.
    #[arg(long, default_value = "256MiB", value_name = "SIZE")]
    pub(crate) work_size: ByteSize,
    /// Files and directories in the work directory.
    #[arg(long, default_value_t = 65_536, value_name = "NUMBER")]
    pub(crate) work_files: u64,
    /// Where the work directory is kept. `tmpfs`: in memory. `root`: the image's own directory,
    /// with --hardening as-image. `disk`: a volume on the engine's disk, which survives a stop.
    #[arg(long, value_enum, default_value_t = StorageName::Tmpfs)]
    pub(crate) storage: StorageName,
    /// Size of /tmp; counts against the memory.
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    pub(crate) tmp_size: ByteSize,

    /// What users of docker look for.
    #[arg(long, aliases = ["net", "allow"], hide = true, num_args = 0..=1, default_missing_value = "", value_parser = no_network)]
    network: Option<NoNetwork>,
}

/// What --network is given: there is no such thing.
#[derive(Debug, Clone, Copy)]
enum NoNetwork {}

/// Says what there is instead.
fn no_network(_: &str) -> Result<NoNetwork, String> {
    Err(
        "a sandbox has loopback and no other network, and nothing else is offered; leave the \
         option out, bring files in with --file or `stockade cp`, and packages in the image, such \
         as with --build"
            .to_owned(),
    )
}

const CREATE_EXAMPLES: &str = "\
Example:
  A sandbox that stays, some work in it, and its end:
    stockade create analysis --image python:3.13-slim
    stockade cp data.csv plot.py analysis:
    stockade exec analysis -- python3 plot.py
    stockade cp 'analysis:*.png' results/
    stockade rm analysis

It ends by itself when no stockade has used it for --idle-limit, and at --max-age; what was in a
work directory in memory is gone then. What it was made with is noted in a file of the user's own
below $XDG_STATE_HOME/stockade (or ~/.local/state/stockade), so that later commands find the same
sandbox. Variables are not part of it: give them to `stockade exec`.";

#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES, after_long_help = format!("{CREATE_EXAMPLES}\n\n{}", exit::HELP))]
pub(crate) struct Create {
    /// Its name: letters, digits, `.`, `_` and `-`, at most 63.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) sandbox: SandboxOptions,
    /// End the sandbox when no stockade has used it for this time.
    #[arg(long, default_value = "30m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) idle_limit: Duration,
    /// End the sandbox at this age, whatever it does; at most 7 days.
    #[arg(long, default_value = "24h", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) max_age: Duration,
    /// Give up after this time; pulling the image counts.
    #[arg(long, default_value = "15m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Duration,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pull {
    Never,
    Missing,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HardeningName {
    Strict,
    AsImage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StorageName {
    Tmpfs,
    Root,
    Disk,
}
