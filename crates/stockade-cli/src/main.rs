//! The `stockade` program: arguments, terminals and exit codes over the library.

mod advice;
mod args;
mod choose;
mod completions;
mod conformance;
mod cp;
mod create;
mod death;
mod df;
mod doctor;
mod exec;
mod exit;
mod failure;
mod host;
mod human;
mod interrupt;
mod logs;
mod ls;
mod meter;
mod named;
mod notes;
mod program;
mod progress;
mod prune;
mod ps;
mod reap;
mod report;
mod request;
mod rm;
mod run;
mod say;
mod session;
mod setup;
mod spec;
mod streams;
mod table;
mod terminal;
mod transfer;
mod unmet;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use clap::error::ErrorKind;

/// How long the end waits for threads that still do something.
const PARTING: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let asked_for_help = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            // Nobody is left to tell when the terminal is gone.
            let _ = error.print();
            return ExitCode::from(if asked_for_help { 0 } else { exit::USAGE });
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            say::line(&format!("the asynchronous runtime cannot start: {error}"));
            return ExitCode::from(exit::FAILED);
        }
    };
    let code = runtime.block_on(async {
        match &cli.command {
            args::Command::Run(args) => run::run(args).await,
            args::Command::Create(args) => create::create(args).await,
            args::Command::Exec(args) => exec::exec(args).await,
            args::Command::Cp(args) => cp::cp(args).await,
            args::Command::Ls(args) => ls::ls(args).await,
            args::Command::Rm(args) => rm::rm(args).await,
            args::Command::Ps(args) => ps::ps(args).await,
            args::Command::Logs(args) => logs::logs(args).await,
            args::Command::Reap(args) => reap::reap(args).await,
            args::Command::Df(args) => df::df(args).await,
            args::Command::Prune(args) => prune::prune(args).await,
            args::Command::Setup(args) => setup::setup(args).await,
            args::Command::Completions(args) => completions::completions(args),
            args::Command::Doctor(args) => doctor::doctor(args).await,
            args::Command::Conformance(args) => conformance::conformance(args).await,
        }
    });
    // What is being removed of ours on another thread gets its time; one that
    // waits for the terminal's next line must not keep us.
    runtime.shutdown_timeout(PARTING);
    ExitCode::from(code)
}
