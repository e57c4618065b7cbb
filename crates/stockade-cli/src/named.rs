//! Sandboxes that stay: a name, its key, and a note of what it was made with.
//!
//! The engine decides whether a sandbox exists; the note only holds what an
//! acquire needs to find exactly that one again. Nothing in it is secret.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use stockade::spec::PullPolicy;
use stockade::{
    Backend, Call, Capability, IsolationScope, Refusal, Sandbox, SandboxKey, SandboxSpec, Which,
};
use stockade_docker::DockerBackend;
use stockade_docker::operate::{SandboxFilter, SandboxInfo};

use crate::args::Engine;
use crate::failure::Failure;
use crate::session::{Session, remove};
use crate::spec::Recipe;

/// The kind of sandboxes that stay.
const KIND: &str = "named";

/// Rises when a field changes meaning or goes away.
const VERSION: u32 = 1;

/// The name of a sandbox: 1 to 63 letters, digits, `.`, `_` and `-`, the first
/// a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

/// `NAME[:PATH]`: a sandbox, or something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: Name,
    /// As it was written; empty for `NAME:`.
    pub(crate) path: Option<Vec<u8>>,
}

/// What is noted of one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Note {
    version: u32,
    name: String,
    owner: String,
    endpoint: String,
    pub(crate) id: String,
    pub(crate) recipe: Recipe,
}

/// Where the notes of this user are.
#[derive(Debug)]
pub(crate) struct Notes(PathBuf);

impl Name {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let valid = (1..=63).contains(&text.len())
            && text.bytes().all(plain)
            && text.as_bytes()[0].is_ascii_alphanumeric();
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "`{}` is no name of a sandbox; use 1 to 63 letters, digits, `.`, `_` and `-`, and begin with a letter or a digit",
                text.escape_debug()
            ))
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of its sandbox.
    pub(crate) fn key(&self) -> SandboxKey {
        SandboxKey::new("cli", &self.0, KIND)
    }
}

impl Target {
    /// Takes an argument apart at its first colon.
    pub(crate) fn parse(argument: &[u8]) -> Result<Self, String> {
        let colon = argument.iter().position(|&byte| byte == b':');
        let name = &argument[..colon.unwrap_or(argument.len())];
        Ok(Self {
            name: Name::parse(&String::from_utf8_lossy(name))?,
            path: colon.map(|colon| argument[colon + 1..].to_vec()),
        })
    }
}

/// The spec of a recipe, to make a sandbox or to find it.
pub(crate) fn spec(recipe: &Recipe, pull: PullPolicy) -> Result<Arc<SandboxSpec>, Vec<String>> {
    recipe.spec(KIND, IsolationScope::Conversation, pull, [Capability::Exec])
}

/// What the engine has under this name, which is one sandbox at most.
pub(crate) async fn listed(
    call: &Call,
    backend: &DockerBackend,
    name: &Name,
) -> Result<Vec<SandboxInfo>, Failure> {
    let key = name.key();
    let filter = SandboxFilter::default()
        .scope(key.scope.as_str())
        .thread(key.thread_id.as_str());
    let mut found = backend.sandboxes(call, &filter).await?;
    found.retain(|info| info.key == key);
    Ok(found)
}

/// The sandbox of this name, which must be the one that was created.
pub(crate) async fn find(
    session: &Session,
    engine: &Engine,
    name: &Name,
) -> Result<(DockerBackend, Sandbox), Failure> {
    let backend = session.connect(engine).await?;
    let notes = Notes::of_user()?;
    let Some(note) = notes.read(&engine.owner, &backend.endpoint(), name)? else {
        return Err(Failure::refused(format!(
            "there is no note of a sandbox `{}` of the owner {} on {}; make one with `stockade create {}`",
            name.0,
            engine.owner,
            backend.endpoint(),
            name.0
        )));
    };
    let sandbox = reach(&session.call, &backend, name, &note).await?;
    Ok((backend, sandbox))
}

/// Acquires what a note describes, and nothing else: a sandbox that has ended
/// is said to have ended, and not silently made anew.
async fn reach(
    call: &Call,
    backend: &DockerBackend,
    name: &Name,
    note: &Note,
) -> Result<Sandbox, Failure> {
    let spec = spec(&note.recipe, PullPolicy::Never).map_err(|faults| {
        Failure::Refused(faults).note("the note of the sandbox is not of this version of stockade")
    })?;
    let ended = || {
        Failure::refused(format!(
            "the sandbox `{}` has ended (idle, at its maximum age, removed, or with its engine), and what was in it is gone; make another with `stockade create {}`",
            name.0, name.0
        ))
    };
    let sandbox = match backend.acquire(call, &name.key(), &spec).await {
        Ok(sandbox) => sandbox,
        Err(error) if matches!(error.refusal(), Some(Refusal::ImageNotFound { .. })) => {
            return Err(Failure::Sandbox(error)
                .note("the image of the sandbox is not on the engine any more"));
        }
        Err(error) => return Err(error.into()),
    };
    if sandbox.freshly_created() {
        let which = Which::Instance(sandbox.id().clone());
        drop(sandbox);
        remove(backend, &name.key(), which).await;
        return Err(ended());
    }
    if sandbox.id().as_str() != note.id {
        return Err(ended().note("another sandbox has been made under this name since"));
    }
    Ok(sandbox)
}

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
            name: name.0.clone(),
            owner: engine.owner.clone(),
            endpoint: endpoint.to_owned(),
            id: id.to_owned(),
            recipe,
        }
    }
}

impl Notes {
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
    fn read(&self, owner: &str, endpoint: &str, name: &Name) -> Result<Option<Note>, Failure> {
        let path = self.path(owner, endpoint, name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, error)),
        };
        let note: Note = serde_json::from_slice(&text).map_err(|error| unusable(&path, error))?;
        let same = note.version == VERSION
            && note.owner == owner
            && note.endpoint == endpoint
            && note.name == name.0;
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
        let path = self.path(&note.owner, &note.endpoint, &Name(note.name.clone()));
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
        let path = self.path(owner, endpoint, name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unusable(&path, error)),
        }
    }

    /// The name is there for people; the digest tells owners and engines apart.
    fn path(&self, owner: &str, endpoint: &str, name: &Name) -> PathBuf {
        let mut hash = Sha256::new();
        for part in [owner, endpoint, &name.0] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest: String = hash
            .finalize()
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.0.join(format!("{}-{digest}.json", name.0))
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
            recipe: serde_json::from_value(recipe).unwrap(),
        }
    }

    #[test]
    fn a_name_is_short_and_plain_so_that_a_colon_ends_it() {
        for good in ["a", "A-1", "x.y_z", &"n".repeat(63)] {
            assert!(Name::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            ".a",
            "a b",
            "a:b",
            "a/b",
            "ä",
            "a\n",
            &"n".repeat(64),
        ] {
            assert!(Name::parse(bad).is_err(), "{bad}");
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
        let path = notes.path("me", "unix:///e", &Name::parse("one").unwrap());
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
}
