//! What a developer types: everything that is done with this repository, as `cargo xtask …`.
//!
//! Tests, demo and benches run against a real engine, with images and data that xtask prepares
//! (see the modules `engine`, `images` and `dataset`). They find them through these variables:
//!
//! | variable | value |
//! |---|---|
//! | `STOCKADE_TEST_ENGINE` | `1`: there is an engine, and a test that needs one must not pass without |
//! | `DOCKER_HOST` | its endpoint; unset where the client's own default is the engine |
//! | `PATH` | begins with the folder of a docker client where the host has none that is new enough |
//! | `STOCKADE_TEST_IMAGE_<NAME>` | an image of `images/`: `PYTHON`, `EMPTY`, `UID_12345`, `MISSING_USER`, `VOLUME`, `VOLUME_CONTENT`, `ENTRYPOINT_FALSE`, `WORKDIR_CONTENT`, `ARM64` |
//! | `STOCKADE_TEST_DATA` | the path of a public data set: comma-separated values with one line of titles and more than 10,000 rows |
//! | `STOCKADE_TEST_XTASK` | the path of xtask; set only where the engine is a provisioned one, so that `$STOCKADE_TEST_XTASK engine restart [--live-restore\|--no-live-restore] [--userns-remap\|--no-userns-remap] [--kill]` may be run |
//!
//! `cargo xtask env` prints them for a shell.

mod apt;
mod bootstrap;
mod cache;
mod dataset;
mod demo;
mod engine;
mod engines;
mod environment;
mod images;
mod process;
mod progress;
mod test;
mod trials;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use cache::Cache;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Everything that is done with this repository"
)]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the main job on a real engine
    Demo,
    /// Measure what is promised, beside the bare docker commands
    Bench(demo::BenchArgs),
    /// Check everything that must hold before a change lands
    Test(test::TestArgs),
    /// The engine that demo and tests run against
    Engine(engine::EngineArgs),
    /// Engines of every make, and what is known to differ between them
    Engines(engines::EnginesArgs),
    /// Let many hosts race on one key
    Race(trials::race::RaceArgs),
    /// Take sandboxes through their life while hosts, relays, guests and the daemon are killed
    #[cfg(target_os = "linux")]
    Soak(trials::soak::SoakArgs),
    /// Make the guest images and load them into the engine
    Images,
    /// Prepare engine, images and data, and print the variables that lead tests to them
    ///
    /// For a shell: eval "$(cargo xtask env)"
    Env,
}

fn main() -> ExitCode {
    let result = match Xtask::parse().command {
        Command::Demo => demo::demo(),
        Command::Bench(args) => demo::bench(&args),
        Command::Test(args) => test::run(&args),
        Command::Engine(args) => engine::run(args),
        Command::Engines(args) => engines::run(&args),
        Command::Race(args) => trials::race::run(&args),
        #[cfg(target_os = "linux")]
        Command::Soak(args) => trials::soak::run(&args),
        Command::Images => make_images(),
        Command::Env => print_environment(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            progress::say(format_args!("error: {failure:#}"));
            ExitCode::FAILURE
        }
    }
}

fn make_images() -> Result<()> {
    let cache = Cache::open()?;
    let engine = engine::up(&cache)?;
    images::ensure(&cache, &engine)
}

fn print_environment() -> Result<()> {
    let cache = Cache::open()?;
    let engine = engine::up(&cache)?;
    test::prepare(&cache, &engine)?;
    progress::answer(environment::script(&environment::variables(
        &cache, &engine,
    )?));
    Ok(())
}
