//! The checkout that xtask belongs to.

use std::ffi::OsString;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_lock_file() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
