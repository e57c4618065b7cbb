//! What the images are made of: read from `images/`, and summed up in a digest.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::workspace;

/// The image that all built ones build on. It comes first.
const BASE: &str = "python";

const BUILT: [&str; 6] = [
    "uid-12345",
    "missing-user",
    "volume",
    "volume-content",
    "entrypoint-false",
    "workdir-content",
];

/// How one image is made.
#[derive(Debug)]
pub(super) struct Recipe {
    name: &'static str,
    source: Source,
    digest: String,
}

#[derive(Debug)]
pub(super) enum Source {
    /// A Dockerfile over a public image, or the packages that it installs.
    Packages {
        context: PathBuf,
        packages: Vec<String>,
        changes: Vec<String>,
    },
    /// A Dockerfile over an image of ours.
    Built { context: PathBuf },
    /// No file at all.
    Empty { platform: Option<&'static str> },
}

/// All images, each after what it builds on.
pub(super) fn recipes() -> Result<Vec<Recipe>> {
    let images = workspace::root().join("images");
    let base = Recipe::packages(&images)?;
    let built: Result<Vec<_>> = BUILT
        .iter()
        .map(|name| Recipe::built(&images, name, &base.digest))
        .collect();
    let mut recipes = vec![base];
    recipes.extend(built?);
    recipes.push(Recipe::empty("empty", None));
    recipes.push(Recipe::empty("arm64", Some("linux/arm64")));
    Ok(recipes)
}

impl Recipe {
    fn packages(images: &Path) -> Result<Self> {
        let context = images.join(BASE);
        let read = |name: &str| {
            let path = context.join(name);
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let packages = read("packages")?
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let changes = changes(&read("Dockerfile")?);
        let digest = digest(&context, "")?;
        Ok(Self {
            name: BASE,
            source: Source::Packages {
                context,
                packages,
                changes,
            },
            digest,
        })
    }

    fn built(images: &Path, name: &'static str, base: &str) -> Result<Self> {
        let context = images.join(name);
        let digest = digest(&context, base)?;
        Ok(Self {
            name,
            source: Source::Built { context },
            digest,
        })
    }

    fn empty(name: &'static str, platform: Option<&'static str>) -> Self {
        let digest = hex(Sha256::digest(platform.unwrap_or_default()).as_slice());
        Self {
            name,
            source: Source::Empty { platform },
            digest,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn image(&self) -> String {
        format!("stockade-test/{}:1", self.name)
    }

    pub(super) fn label(&self) -> String {
        format!("{}={}", super::LABEL, self.digest)
    }

    pub(super) fn variable(&self) -> String {
        format!(
            "STOCKADE_TEST_IMAGE_{}",
            self.name.to_uppercase().replace('-', "_")
        )
    }
}

/// The instructions of a Dockerfile that an import can take as well.
fn changes(dockerfile: &str) -> Vec<String> {
    let taken = |line: &&str| line.starts_with("ENV ") || line.starts_with("CMD ");
    dockerfile
        .lines()
        .filter(taken)
        .map(str::to_owned)
        .collect()
}

/// Sums up the files of a folder, and the digest of what they build on.
fn digest(folder: &Path, base: &str) -> Result<String> {
    let reading = || format!("reading {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        names.push(entry.with_context(reading)?.file_name());
    }
    names.sort();
    let mut digest = Sha256::new();
    digest.update(base);
    for name in names {
        let content = fs::read(folder.join(&name)).with_context(reading)?;
        // With lengths, so that no two folders sum up to the same bytes.
        for part in [name.as_encoded_bytes(), &content] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    Ok(hex(digest.finalize().as_slice()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_import_takes_environment_and_command_of_the_dockerfile() {
        let dockerfile = "# ENV no\nFROM a\nRUN x \\\n    && y\nENV A=1\nCMD [\"b\"]\n";
        assert_eq!(changes(dockerfile), ["ENV A=1", "CMD [\"b\"]"]);
    }

    #[test]
    fn a_changed_file_changes_the_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("a file");
        };
        let mut seen = HashSet::new();
        write("Dockerfile", "FROM a");
        assert!(seen.insert(digest(folder.path(), "").expect("a digest")));
        assert!(seen.insert(digest(folder.path(), "base").expect("a digest")));
        write("Dockerfile", "FROM b");
        assert!(seen.insert(digest(folder.path(), "").expect("a digest")));
        write("kept", "");
        assert!(seen.insert(digest(folder.path(), "").expect("a digest")));
        assert!(!seen.insert(digest(folder.path(), "").expect("a digest")));
    }

    #[test]
    fn every_image_has_a_variable_of_its_own_and_the_base_comes_first() {
        let recipes = recipes().expect("the sources are in the checkout");
        let variables: HashSet<_> = recipes.iter().map(Recipe::variable).collect();
        assert_eq!(variables.len(), recipes.len());
        assert!(variables.contains("STOCKADE_TEST_IMAGE_UID_12345"));
        assert_eq!(recipes[0].image(), "stockade-test/python:1");
    }
}
