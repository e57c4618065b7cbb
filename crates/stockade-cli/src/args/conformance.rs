//! The conformance suites.

use std::time::Duration;

use clap::Args;

use super::Engine;

#[derive(Debug, Args)]
pub(crate) struct Conformance {
    /// Image to run in; it needs sh and the usual tools.
    #[arg(long, env = "STOCKADE_IMAGE", value_name = "REFERENCE")]
    pub(crate) image: String,
    /// Run only this suite; repeatable, and several can be given with commas between.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = clap::value_parser!(stockade_conformance::Suite))]
    pub(crate) suite: Vec<stockade_conformance::Suite>,
    /// Give up after this time; what has not run then has failed.
    #[arg(long, default_value = "30m", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub(crate) deadline: Duration,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
