//! Demo and benches: the programs are in `samples` and `tests`; here they get
//! what they run on.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use crate::cache::Cache;
use crate::engine::{self, Engine};
use crate::process::Program;
use crate::progress::{Steps, say};
use crate::workspace::{cargo, root};
use crate::{environment, test};

/// The image that holds one program and nothing else.
const SCRATCH: &str = "stockade-test/count:1";

/// Sets up everything and shows the main job.
pub(crate) fn demo() -> Result<()> {
    let package = ["--release", "--locked", "--package", "stockade-samples"];
    run(
        ["run", "build"],
        &[&package[..], &["--bin", "demo"]].concat(),
        &[],
    )
}

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Only these parts
    parts: Vec<Part>,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Acquires, commands and throughput of a closed sandbox
    Closed,
    /// Files in both planes
    Files,
    /// Sandboxes taken over, replaced, listed and reaped
    Lifecycle,
}

/// Measures what is promised, beside the bare docker commands.
pub(crate) fn bench(args: &BenchArgs) -> Result<()> {
    let parts = args.parts.iter().map(|part| match part {
        Part::Closed => "closed",
        Part::Files => "files",
        Part::Lifecycle => "lifecycle",
    });
    let parts: Vec<&str> = parts.collect();
    let package = ["--locked", "--package", "stockade-tests"];
    run(
        ["bench", "bench"],
        &[&package[..], &["--bench", "closed"]].concat(),
        &parts,
    )
}

/// Prepares everything, builds, and runs; how cargo calls both comes first, and what the program
/// is told last.
fn run([run, build]: [&str; 2], what: &[&str], words: &[&str]) -> Result<()> {
    let mut steps = Steps::default();
    let cache = Cache::open()?;
    let engine = steps.run("engine", || engine::up(&cache))?;
    steps.run("images", || test::prepare(&cache, &engine))?;
    steps.run("scratch image", || scratch(&cache, &engine))?;
    let only_build: &[&str] = if run == build { &["--no-run"] } else { &[] };
    let building = cargo().arg(build).args(what).args(only_build);
    steps.run("build", || test::pass(&building))?;
    let mut program = cargo().args([run, "--quiet"]).args(what);
    if !words.is_empty() {
        program = program.arg("--").args(words);
    }
    program = program
        .env("STOCKADE_DEMO_SCRATCH", SCRATCH)
        .env("STOCKADE_DEMO_OUT", cache.subfolder("demo")?);
    for (name, value) in environment::variables(&cache, &engine)? {
        program = program.env(name, value);
    }
    say(format_args!("\n{}", steps.table()));
    if !program.show()? {
        bail!("`{program}` failed");
    }
    Ok(())
}

/// A static program of ours, and an image that holds only it.
fn scratch(cache: &Cache, engine: &Engine) -> Result<()> {
    let folder = cache.subfolder("scratch")?;
    let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let source = root().join("samples/programs/count.rs");
    Program::new(rustc)
        .args([
            "--edition=2024",
            "-O",
            "-Ctarget-feature=+crt-static",
            "-Cstrip=symbols",
        ])
        .arg("-o")
        .arg(folder.join("count"))
        .arg(source)
        .read()?;
    let recipe = "FROM scratch\nCOPY count /count\n";
    fs::write(folder.join("Dockerfile"), recipe).context("the recipe of the scratch image")?;
    engine
        .docker()
        .args(["build", "--quiet", "--tag", SCRATCH])
        .arg(folder)
        .read()
        .map(drop)
}
