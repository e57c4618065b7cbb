//! Rules of the tree itself. Each is a test, so that there is one command to run.

mod dependencies;
mod readme;
mod sizes;
mod words;

use std::path::{Path, PathBuf};

/// The top of the checkout.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the test package is below the top")
}

/// Every file of the tree that git would keep, without reading git: build
/// output and hidden folders are left out.
fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the tree can be listed") {
            let entry = entry.expect("an entry can be read");
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            let path = entry.path();
            if entry.file_type().expect("an entry has a type").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == extension) {
                found.push(path);
            }
        }
    }
    assert!(
        !found.is_empty(),
        "no .{extension} file was found: the walk is broken"
    );
    found.sort();
    found
}

/// A path as a reader of the tree knows it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}
