//! The checkout that xtask belongs to.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::Program;

/// The root of the checkout: that of the cargo that runs us, which is what a person means who has
/// several checkouts and one target folder.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    let mut root = PathBuf::from(package);
    root.pop(); // crates/xtask
    root.pop(); // crates
    root
}

/// The cargo that runs us, in the checkout.
pub(crate) fn cargo() -> Program {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    Program::new(cargo).folder(&root())
}

/// Builds a program of a package of the checkout, and gives its path.
pub(crate) fn build(package: &str, program: &str) -> Result<PathBuf> {
    let said = cargo()
        .args(["build", "--quiet", "--locked", "--package", package])
        .args(["--bin", program])
        .arg("--message-format=json-render-diagnostics")
        .read_aloud()?;
    built(&said, program).with_context(|| format!("cargo built no {program}"))
}

/// The path of a program in what cargo says about a build.
fn built(said: &str, program: &str) -> Option<PathBuf> {
    let artifacts = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = artifacts.filter(|artifact| artifact["target"]["name"] == program);
    programs.find_map(|artifact| artifact["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_among_what_was_built() {
        let said = r#"{"reason":"compiler-artifact","target":{"name":"host"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"host"},"executable":"/t/debug/host"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(built(said, "host"), Some("/t/debug/host".into()));
        assert_eq!(built(said, "other"), None);
    }

    #[test]
    fn the_root_holds_the_lock_file() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
