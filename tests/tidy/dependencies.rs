//! Data flows one way: who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// The table of docs/architecture.md. A crate that is not named here is a
/// mistake of its author, not a free pass.
const ALLOWED: &[(&str, &[&str])] = &[
    ("stockade", &["stockade-policy"]),
    ("stockade-policy", &[]),
    ("stockade-wire", &[]),
    ("docker-driver", &[]),
    (
        "stockade-docker",
        &[
            "stockade",
            "stockade-policy",
            "stockade-wire",
            "docker-driver",
            "stockade-runtime",
        ],
    ),
    ("stockade-guest", &["stockade-wire"]),
    ("stockade-runtime", &[]),
    ("stockade-conformance", &["stockade"]),
    (
        "stockade-cli",
        &["stockade", "stockade-docker", "stockade-conformance"],
    ),
    ("xtask", &[]),
];

/// Tests of the workspace and samples may use anything.
const FREE: &[&str] = &["stockade-tests", "stockade-samples"];

#[test]
fn crates_depend_only_on_what_the_architecture_page_says() {
    let metadata = MetadataCommand::new()
        .manifest_path(crate::root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let ours: BTreeSet<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let name = package.name.as_str();
        if FREE.contains(&name) {
            continue;
        }
        let Some(may) = allowed.get(name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        for dependency in &package.dependencies {
            let other = dependency.name.as_str();
            let counts = dependency.kind == DependencyKind::Normal && ours.contains(other);
            if counts && !may.contains(&other) {
                wrong.push(format!("{name} depends on {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_names_no_crate_that_is_gone() {
    let present: BTreeSet<_> = std::fs::read_dir(crate::root().join("crates"))
        .expect("crates/ can be listed")
        .map(|entry| {
            entry
                .expect("an entry can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let gone: Vec<_> = ALLOWED
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !present.contains(*name))
        .collect();
    assert!(gone.is_empty(), "{gone:?}");
}
