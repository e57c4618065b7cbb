//! What a developer types: engine, images, test.

mod apt;
mod bootstrap;
mod cache;
mod engine;
mod process;
mod progress;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// The engine that demo and tests run against
    Engine(engine::EngineArgs),
}

fn main() -> ExitCode {
    let result = match Xtask::parse().command {
        Command::Engine(args) => engine::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            progress::say(format_args!("error: {failure:#}"));
            ExitCode::FAILURE
        }
    }
}
