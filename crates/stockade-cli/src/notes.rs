//! What sandboxes that stay were made with, each in a file of the user's own.
//!
//! The engine decides whether a sandbox exists; a note only holds what an
//! acquire needs to find exactly that one again. Nothing in it is secret.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::args::Engine;
use crate::failure::Failure;
use crate::named::Name;
use crate::spec::Recipe;

/// Rises when a field changes meaning or goes away.
const VERSION: u32 = 1;

/// What is noted of one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Note {
    version: u32,
    name: String,
    owner: String,
    endpoint: String,
    pub(crate) id: String,
    /// The volume of the guest runtime that it was made with.
    #[serde(default)]
    pub(crate) runtime: Option<String>,
    pub(crate) recipe: Recipe,
}

/// Where the notes of this user are.
#[derive(Debug)]
pub(crate) struct Notes(PathBuf);

impl Note {
    pub(crate) fn new(
        engine: &Engine,
        endpoint: &str,
        name: &Name,
        id: &str,
        recipe: Recipe,
    ) -> Self {
        Self {
            version: VERSION,
            name: name.as_str().to_owned(),
            owner: engine.owner.clone(),
            endpoint: endpoint.to_owned(),
            id: id.to_owned(),
            runtime: None,
            recipe,
        }
    }

    /// With the guest runtime that it was made with.
    pub(crate) fn with_runtime(mut self, volume: &str) -> Self {
        self.runtime = Some(volume.to_owned());
        self
    }
}

impl Notes {
    /// Those of this user, if this user has a place for them.
    pub(crate) fn if_any() -> Option<Self> {
        Self::of_user().ok()
    }

    /// Those of this user, by the XDG rules.
    pub(crate) fn of_user() -> Result<Self, Failure> {
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let state =
            absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
        let state = state.ok_or_else(|| {
            Failure::Host(
                "there is no folder for notes of sandboxes; set HOME or XDG_STATE_HOME".to_owned(),
            )
        })?;
        Ok(Self(state.join("stockade/sandboxes")))
    }

    /// The note of a name, if there is one.
    pub(crate) fn read(
        &self,
        owner: &str,
        endpoint: &str,
        name: &Name,
    ) -> Result<Option<Note>, Failure> {
        let path = self.path(owner, endpoint, name.as_str());
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, error)),
        };
        let note: Note = serde_json::from_slice(&text).map_err(|error| unusable(&path, error))?;
        let same = note.version == VERSION
            && note.owner == owner
            && note.endpoint == endpoint
            && note.name == name.as_str();
        if same {
            Ok(Some(note))
        } else {
            Err(unusable(
                &path,
                "it is of another version or of another sandbox",
            ))
        }
    }

    /// Notes a sandbox, in the place of one that ended under its name. Whole
    /// or not at all, and for this user only.
    pub(crate) fn write(&self, note: &Note) -> Result<(), Failure> {
        let path = self.path(&note.owner, &note.endpoint, &note.name);
        let written = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .and_then(|()| {
                // Made with mode 0600.
                let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
                serde_json::to_writer_pretty(&mut file, note)?;
                file.write_all(b"\n")?;
                file.as_file().sync_all()?;
                file.persist(&path)?;
                Ok(())
            });
        written.map_err(|error| unusable(&path, error))
    }

    /// Forgets one; whether there was a note.
    pub(crate) fn forget(&self, owner: &str, endpoint: &str, name: &Name) -> Result<bool, Failure> {
        let path = self.path(owner, endpoint, name.as_str());
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unusable(&path, error)),
        }
    }

    /// Forgets those of an owner on an engine whose sandboxes are not among
    /// these ids. How many, and what could not be forgotten.
    pub(crate) fn forget_gone(
        &self,
        owner: &str,
        endpoint: &str,
        there: &BTreeSet<String>,
    ) -> Result<u64, Failure> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(unusable(&self.0, error)),
        };
        let mut forgotten = 0;
        for entry in entries {
            let path = entry.map_err(|error| unusable(&self.0, error))?.path();
            // Whatever is no note of theirs is left as it is.
            let note = fs::read(&path).ok();
            let note = note.and_then(|text| serde_json::from_slice::<Note>(&text).ok());
            let gone = note.is_some_and(|note| {
                note.owner == owner
                    && note.endpoint == endpoint
                    && !there.contains(&note.id)
                    && path == self.path(owner, endpoint, &note.name)
            });
            if gone {
                fs::remove_file(&path).map_err(|error| unusable(&path, error))?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }

    /// The name is there for people; the digest tells owners and engines apart.
    fn path(&self, owner: &str, endpoint: &str, name: &str) -> PathBuf {
        let mut hash = Sha256::new();
        for part in [owner, endpoint, name] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest: String = hash
            .finalize()
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.0.join(format!("{name}-{digest}.json"))
    }
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Host(format!("the note {} cannot be used: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn note(name: &str, owner: &str) -> Note {
        let recipe = serde_json::json!({
            "image": "i", "digest": null, "platform": null, "hardening": "strict", "storage": "tmpfs", "work_dir": "/work",
            "memory": 1 << 30, "milli_cpus": 1000, "pids": 256, "work_bytes": 1 << 28,
            "work_inodes": 65_536, "tmp_bytes": 1 << 26, "idle_limit_ms": 1000, "max_age_ms": 1000,
        });
        Note {
            version: VERSION,
            name: name.to_owned(),
            owner: owner.to_owned(),
            endpoint: "unix:///e".to_owned(),
            id: "1".to_owned(),
            runtime: None,
            recipe: serde_json::from_value(recipe).unwrap(),
        }
    }

    #[test]
    fn a_note_is_read_back_by_the_same_owner_engine_and_name_only() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes(folder.path().join("deep/below"));
        let name = Name::parse("one").unwrap();
        notes.write(&note("one", "me")).unwrap();
        assert_eq!(
            notes.read("me", "unix:///e", &name).unwrap(),
            Some(note("one", "me"))
        );
        assert_eq!(notes.read("you", "unix:///e", &name).unwrap(), None);
        assert_eq!(notes.read("me", "unix:///f", &name).unwrap(), None);
        assert!(notes.forget("me", "unix:///e", &name).unwrap());
        assert!(!notes.forget("me", "unix:///e", &name).unwrap());
    }

    #[test]
    fn notes_are_for_their_user_only_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes(folder.path().join("notes"));
        notes.write(&note("one", "me")).unwrap();
        let path = notes.path("me", "unix:///e", "one");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            notes.0.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::write(&path, "{").unwrap();
        let failure = notes
            .read("me", "unix:///e", &Name::parse("one").unwrap())
            .unwrap_err();
        assert!(matches!(failure, Failure::Host(text) if text.contains("one-")));
    }

    #[test]
    fn notes_of_what_is_gone_are_forgotten_of_that_owner_and_engine_only() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes(folder.path().to_owned());
        let none = BTreeSet::new();
        let missing = Notes(folder.path().join("none"));
        assert_eq!(missing.forget_gone("me", "unix:///e", &none).unwrap(), 0);
        for (name, owner) in [("one", "me"), ("two", "me"), ("three", "you")] {
            notes.write(&note(name, owner)).unwrap();
        }
        fs::write(folder.path().join("stranger.json"), "{}").unwrap();
        let all = BTreeSet::from(["1".to_owned()]);
        assert_eq!(notes.forget_gone("me", "unix:///e", &all).unwrap(), 0);
        assert_eq!(notes.forget_gone("me", "unix:///f", &none).unwrap(), 0);
        assert_eq!(notes.forget_gone("me", "unix:///e", &none).unwrap(), 2);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
