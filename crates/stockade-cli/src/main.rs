//! The `stockade` program: arguments, terminals and exit codes over the library.

mod args;
mod doctor;
mod exit;
mod interrupt;
mod progress;
mod report;
mod request;
mod run;
mod say;
mod streams;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

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
            args::Command::Run(run) => run::run(run).await,
            args::Command::Doctor(doctor) => doctor::doctor(doctor).await,
        }
    });
    // A thread that waits for the terminal's next line must not keep us.
    runtime.shutdown_background();
    ExitCode::from(code)
}
