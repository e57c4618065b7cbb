//! Builds the guest runtime and hands it to the crate as a constant.
//!
//! See the crate's page for what is carried where, and
//! `docs/decisions/0001-guest-runtime-is-built-by-a-build-script.md` for why
//! a build script does it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use sha2::{Digest as _, Sha256};

/// Names a ready-made binary, which is then carried instead of a built one.
const READY_MADE: &str = "STOCKADE_GUEST_BINARY";

/// The sources that a new binary depends on, relative to the workspace.
const SOURCES: [&str; 6] = [
    "crates/stockade-guest/src",
    "crates/stockade-guest/Cargo.toml",
    "crates/stockade-wire/src",
    "crates/stockade-wire/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

/// Settings of the outer build that must reach the nested one: where cargo
/// keeps its things, how it reaches a registry, the shared job server, and
/// the linker of a target. Everything else of cargo's would either be wrong
/// there (target folder, flags, profile overrides) or is meant for this script.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_TARGET_",
];

fn main() -> ExitCode {
    match carry() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=the guest runtime cannot be carried: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={READY_MADE}");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let binary = match std::env::var_os(READY_MADE) {
        Some(path) if !path.is_empty() => {
            let path = PathBuf::from(path);
            println!("cargo::rerun-if-changed={}", path.display());
            Some(path)
        }
        _ => build(&out)?,
    };
    let carried = match binary {
        Some(binary) => entry(&binary, &out.join("stockade-guest"))?,
        None => String::new(),
    };
    let source = format!("const CARRIED: &[CarriedRuntime] = &[{carried}];\n");
    std::fs::write(out.join("carried.rs"), source)?;
    Ok(())
}

/// Builds the guest for the platform that this crate is built for; `None`
/// where that is no platform of the guest.
fn build(out: &Path) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let workspace = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..");
    let workspace = workspace.canonicalize()?;
    let architecture = variable("CARGO_CFG_TARGET_ARCH")?;
    let served = variable("CARGO_CFG_TARGET_OS")? == "linux"
        && std::env::consts::OS == "linux"
        && ["x86_64", "aarch64"].contains(&architecture.as_str());
    let manifest = workspace.join("crates/stockade-guest/Cargo.toml");
    if !served || std::env::var_os("DOCS_RS").is_some() || !manifest.is_file() {
        return Ok(None);
    }
    for source in SOURCES {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(source).display()
        );
    }
    let target = target(&architecture)?;
    let folder = target_folder(out);
    run(&mut nested_cargo(&workspace, &manifest, &target, &folder)?)?;
    Ok(Some(folder.join(target).join("guest/stockade-guest")))
}

/// The nested build's own target folder, so that the two builds do not wait
/// for each other's lock. It lies beside the outer profiles' folders: `test`,
/// `clippy`, `doc` and `--release` each have an `OUT_DIR` of their own, and
/// the guest is the same for all of them.
fn target_folder(out: &Path) -> PathBuf {
    // <target>/<profile>/build/<package>/out
    match (out.ancestors().nth(2), out.ancestors().nth(4)) {
        (Some(build), Some(target)) if build.ends_with("build") => target.join("guest-runtime"),
        _ => out.join("guest-runtime"),
    }
}

/// musl where its standard library is installed, glibc otherwise.
fn target(architecture: &str) -> Result<String, Box<dyn Error>> {
    let musl = format!("{architecture}-unknown-linux-musl");
    let mut ask = command(&variable("RUSTC")?);
    let answer = ask
        .args(["--print", "target-libdir", "--target", &musl])
        .output()?;
    let libraries = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if answer.status.success() && Path::new(&libraries).is_dir() {
        return Ok(musl);
    }
    Ok(format!("{architecture}-unknown-linux-gnu"))
}

fn nested_cargo(
    workspace: &Path,
    manifest: &Path,
    target: &str,
    folder: &Path,
) -> Result<Command, Box<dyn Error>> {
    let mut cargo = command(&variable("CARGO")?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if is_of_the_outer_build(&text) {
            cargo.env_remove(&name);
        }
    }
    // An explicit target keeps the flags from build scripts and macros, which
    // cannot be static.
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    // The digest names a volume on engines: it must not depend on where the
    // sources lie.
    flags.push(format!(
        "--remap-path-prefix={}=/stockade",
        workspace.display()
    ));
    if let Some(home) = cargo_home() {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .current_dir(workspace)
        .args([
            "build",
            "--locked",
            "--profile=guest",
            "--package=stockade-guest",
        ])
        .args(["--bin=stockade-guest", "--quiet"])
        .arg(format!("--manifest-path={}", manifest.display()))
        .arg(format!("--target={target}"))
        .arg(format!("--target-dir={}", folder.display()));
    Ok(cargo)
}

fn is_of_the_outer_build(name: &str) -> bool {
    if name == "CARGO_TARGET_DIR" {
        return true;
    }
    if KEPT.iter().any(|kept| name.starts_with(kept)) {
        return false;
    }
    name.starts_with("CARGO")
        || name.starts_with("DEP_")
        || [
            "RUSTFLAGS",
            "RUSTDOCFLAGS",
            "RUSTC",
            "RUSTDOC",
            "RUSTC_WORKSPACE_WRAPPER", // `cargo clippy` is one
            "RUSTC_LINKER",
            "LLVM_PROFILE_FILE",
            "OUT_DIR",
            "TARGET",
            "HOST",
            "PROFILE",
            "OPT_LEVEL",
            "DEBUG",
            "NUM_JOBS",
        ]
        .contains(&name)
}

fn cargo_home() -> Option<PathBuf> {
    let explicit = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    explicit.or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

fn run(cargo: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = cargo.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "its build failed ({}). A static C library is needed: `rustup target add \
         x86_64-unknown-linux-musl` brings one, or install the distribution's static glibc, or \
         name a ready-made binary in {READY_MADE}.\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    )
    .replace('\n', "\ncargo::error=")
    .into())
}

/// The crate's constant for one binary, of which a copy is kept: the nested
/// target folder may change under another build.
fn entry(binary: &Path, copy: &Path) -> Result<String, Box<dyn Error>> {
    let bytes = std::fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let architecture = match (bytes.get(..6), bytes.get(18..20)) {
        (Some(b"\x7fELF\x02\x01"), Some([62, 0])) => "amd64",
        (Some(b"\x7fELF\x02\x01"), Some([183, 0])) => "arm64",
        _ => {
            return Err(format!("{} is no ELF of x86-64 or arm64", binary.display()).into());
        }
    };
    std::fs::write(copy, &bytes)?;
    let digest = Sha256::digest(&bytes);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(
        "CarriedRuntime {{ \
            platform: Platform {{ os: \"linux\", arch: \"{architecture}\" }}, \
            digest: \"{digest}\", \
            bytes: include_bytes!({:?}) \
        }}",
        copy.canonicalize()?
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a build script starts cargo and asks rustc; it is part of no product"
)]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    std::env::var(name).map_err(|error| format!("{name}: {error}").into())
}
