//! Sandboxes that stay: a name, its key, and how the one that was created is
//! found again.

use std::sync::Arc;

use stockade::spec::PullPolicy;
use stockade::{
    Backend, Call, Capability, InstanceId, IsolationScope, Refusal, Sandbox, SandboxKey,
    SandboxSpec, Which,
};
use stockade_docker::DockerBackend;
use stockade_docker::operate::{HistoryOf, SandboxFilter, SandboxInfo, SandboxState};

use crate::args::Engine;
use crate::death;
use crate::failure::Failure;
use crate::notes::{Note, Notes};
use crate::session::{Session, remove};
use crate::spec::Recipe;

/// The kind of sandboxes that stay.
pub(crate) const KIND: &str = "named";

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

    /// The name of the sandbox that this program made with this key.
    pub(crate) fn of_key(key: &SandboxKey, kind: &str) -> Option<Self> {
        let name = Self::parse(&key.thread_id).ok()?;
        (name.key() == *key && kind == KIND).then_some(name)
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
    let there = listed(&session.call, &backend, name).await?;
    let (same, others): (Vec<_>, Vec<_>) = there
        .into_iter()
        .partition(|info| info.id.as_str() == note.id);
    if !same.iter().any(|info| info.state != SandboxState::Lost) {
        let failure = ended(&session.call, &backend, name, &note).await;
        return Err(match others.len() {
            0 => failure,
            _ => failure.note(ANOTHER),
        });
    }
    let sandbox = reach(&session.call, &backend, name, &note).await?;
    Ok((backend, sandbox))
}

/// Said where the note is of one and the engine has another.
const ANOTHER: &str = "another sandbox has been made under this name since";

/// That it is gone, and why, as far as the engine remembers.
async fn ended(call: &Call, backend: &DockerBackend, name: &Name, note: &Note) -> Failure {
    let history = match InstanceId::new(note.id.as_str()) {
        Ok(id) => backend.history(call, &HistoryOf::instance(id)).await,
        Err(error) => return Failure::Host(format!("the note of `{}`: {error}", name.0)),
    };
    // What cannot be remembered does not hide that it is gone.
    let why = death::sentence(&history.unwrap_or_default());
    Failure::refused(format!(
        "the sandbox `{0}` has ended, and what was in it is gone: {why}; make another with `stockade create {0}`",
        name.0
    ))
}

/// Acquires what a note describes, and nothing else: a sandbox that ends just
/// now is said to have ended, and not silently made anew.
async fn reach(
    call: &Call,
    backend: &DockerBackend,
    name: &Name,
    note: &Note,
) -> Result<Sandbox, Failure> {
    let spec = spec(&note.recipe, PullPolicy::Never).map_err(|faults| {
        Failure::Refused(faults).note("the note of the sandbox is not of this version of stockade")
    })?;
    // An acquire replaces one that was made with another runtime and that
    // nobody uses just now. What it learns of the image is not asked again.
    let ready = match backend.set_up(call, &[spec.image().clone()]).await {
        Ok(ready) => ready,
        Err(error) if matches!(error.refusal(), Some(Refusal::ImageNotFound { .. })) => {
            return Err(Failure::Sandbox(error)
                .note("the image of the sandbox is not on the engine any more"));
        }
        Err(error) => return Err(error.into()),
    };
    if note.runtime.as_ref() != Some(&ready.runtime_volume) {
        return Err(Failure::refused(format!(
            "the sandbox `{0}` was made by another version of stockade, with another guest runtime; use that version, or remove the sandbox with `stockade rm {0}` and make another",
            name.0
        )));
    }
    let sandbox = backend.acquire(call, &name.key(), &spec).await?;
    if sandbox.freshly_created() {
        let which = Which::Instance(sandbox.id().clone());
        drop(sandbox);
        remove(backend, &name.key(), which).await;
        return Err(ended(call, backend, name, note).await);
    }
    if sandbox.id().as_str() != note.id {
        return Err(ended(call, backend, name, note).await.note(ANOTHER));
    }
    Ok(sandbox)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
