//! The main job, shown on a real engine: `cargo xtask demo`.
//!
//! Everything that it needs to know comes from variables that xtask sets:
//! `STOCKADE_TEST_IMAGE_PYTHON` and `STOCKADE_DEMO_SCRATCH` name images,
//! `STOCKADE_TEST_DATA` a file, `STOCKADE_DEMO_OUT` a folder for what comes
//! out, and docker's own variables the engine.

#![expect(clippy::print_stdout, reason = "showing is what a demo is for")]

mod files;
mod floor;
mod steps;
mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use stockade::Call;
use stockade_docker::{DockerBackend, DockerConfig};

use floor::Floor;
use table::Table;

/// What the demo runs on.
pub(crate) struct Stage {
    backend: DockerBackend,
    floor: Floor,
    python: String,
    scratch: String,
    data: Vec<u8>,
    out: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match show().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("\nThe demo failed: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                println!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn show() -> Result<(), Box<dyn Error>> {
    let call = Call::with_timeout(Duration::from_secs(600));
    let mut table = Table::default();
    let bound = table::timed(DockerBackend::connect(
        &call,
        DockerConfig::new("stockade-demo"),
    ))
    .await;
    let backend = bound.value?;
    let stage = Stage {
        backend,
        floor: Floor::from_env()?,
        python: variable("STOCKADE_TEST_IMAGE_PYTHON")?,
        scratch: variable("STOCKADE_DEMO_SCRATCH")?,
        data: std::fs::read(variable("STOCKADE_TEST_DATA")?)?,
        out: variable("STOCKADE_DEMO_OUT")?.into(),
    };
    let version = stage.floor.version()?;
    table.row("bind to the engine", bound.took, "docker version", version);

    steps::python_over_data(&call, &stage, &mut table).await?;
    files::report_and_chart(&call, &stage, &mut table).await?;
    steps::from_scratch(&call, &stage, &mut table).await?;
    steps::timeout(&call, &stage, &mut table).await?;
    steps::nothing_left(&call, &stage).await?;

    println!("\nWhat each step took, beside the bare docker command that is its floor:\n");
    println!("{table}");
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name)
        .map_err(|_| format!("{name} is not set; start this with `cargo xtask demo`"))
}
