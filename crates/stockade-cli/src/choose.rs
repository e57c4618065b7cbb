//! Which sandbox a word means: a name of `stockade create`, a container's
//! name, an id, or the first digits of one.

use std::fmt;

use stockade::{InstanceId, Kind, SandboxKey};
use stockade_docker::operate::SandboxInfo;

use crate::named::Name;

/// Digits of an id that are enough to name a sandbox, if no other has them.
pub(crate) const DIGITS: usize = 8;

/// Digits of a whole id.
const WHOLE: usize = 64;

/// What a word means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The sandbox of a name, whether there is one or not.
    Named(Name),
    /// One that is there.
    There(Box<There>),
    /// None that is there.
    Absent(Absent),
}

/// A sandbox that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct There {
    pub(crate) id: InstanceId,
    pub(crate) container: String,
    pub(crate) key: SandboxKey,
    pub(crate) kind: Kind,
}

/// How one is named that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Absent {
    /// By a whole id.
    Id(String),
    /// In a way that leads to nothing that has gone.
    Other(String),
}

impl There {
    pub(crate) fn of(info: &SandboxInfo) -> Self {
        Self {
            id: info.id.clone(),
            container: info.name.clone(),
            key: info.key.clone(),
            kind: info.kind.clone(),
        }
    }

    /// Its name of `stockade create`, if it has one.
    pub(crate) fn name(&self) -> Option<Name> {
        Name::of_key(&self.key, self.kind.as_str())
    }
}

/// The name of `create`, or the container's.
impl fmt::Display for There {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name.as_str()),
            None => f.write_str(&self.container),
        }
    }
}

/// Whether it can be anything but a name of `create`.
pub(crate) fn may_be_container(word: &str) -> bool {
    is_digits(word) || word.starts_with("stockade-")
}

/// What a word means among these sandboxes.
///
/// # Errors
///
/// Nothing is meant by it, or more than one.
pub(crate) fn choose(word: &str, there: &[There]) -> Result<Chosen, String> {
    let name = Name::parse(word);
    if let Ok(name) = &name
        && there.iter().any(|one| one.name().as_ref() == Some(name))
    {
        return Ok(Chosen::Named(name.clone()));
    }
    if !may_be_container(word) {
        return name.map(Chosen::Named);
    }
    let meant: Vec<&There> = there
        .iter()
        .filter(|one| one.container == word || is_digits(word) && one.id.as_str().starts_with(word))
        .collect();
    match (meant.as_slice(), name) {
        ([one], _) => Ok(Chosen::There(Box::new((*one).clone()))),
        ([], _) if word.len() == WHOLE => Ok(Chosen::Absent(Absent::Id(word.to_owned()))),
        // It may be a name of one that has gone.
        ([], Ok(name)) => Ok(Chosen::Named(name)),
        ([], Err(_)) => Ok(Chosen::Absent(Absent::Other(word.to_owned()))),
        (several, _) => {
            let ids: Vec<&str> = several.iter().map(|one| one.id.as_str()).collect();
            Err(format!(
                "`{word}` is the beginning of several ids: {}; give more digits",
                ids.join(", ")
            ))
        }
    }
}

fn is_digits(word: &str) -> bool {
    (DIGITS..=WHOLE).contains(&word.len())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there() -> Vec<There> {
        let one = |start: &str, container: &str, key: SandboxKey, kind: &str| There {
            id: InstanceId::new(format!("{start}{}", "0".repeat(WHOLE - start.len()))).unwrap(),
            container: container.to_owned(),
            key,
            kind: Kind::new(kind).unwrap(),
        };
        let named = |name: &str| Name::parse(name).unwrap().key();
        vec![
            one("aaaaaaaa1", "stockade-1", named("box"), "named"),
            one(
                "aaaaaaaa2",
                "stockade-2",
                SandboxKey::new("a", "b", "c"),
                "k",
            ),
            one("bbbbbbbbb", "stockade-3", named("aaaaaaaa1"), "named"),
            one("ccccccccc", "stockade-4", named("like-box"), "other"),
        ]
    }

    fn chosen(word: &str) -> String {
        match choose(word, &there()) {
            Ok(Chosen::Named(name)) => format!("name {}", name.as_str()),
            Ok(Chosen::There(one)) => format!("there {}", one.container),
            Ok(Chosen::Absent(Absent::Id(_))) => "absent id".to_owned(),
            Ok(Chosen::Absent(Absent::Other(_))) => "absent".to_owned(),
            Err(text) => text,
        }
    }

    #[test]
    fn a_name_comes_first_then_a_container_then_an_id() {
        assert_eq!(chosen("box"), "name box");
        assert_eq!(
            chosen("aaaaaaaa1"),
            "name aaaaaaaa1",
            "a name of digits is a name"
        );
        assert_eq!(chosen("stockade-2"), "there stockade-2");
        assert_eq!(chosen("aaaaaaaa2"), "there stockade-2");
        assert_eq!(chosen(&there()[3].id.as_str()[..12]), "there stockade-4");
        assert_eq!(chosen(there()[3].id.as_str()), "there stockade-4");
    }

    #[test]
    fn what_is_not_there_is_a_name_or_a_whole_id() {
        assert_eq!(chosen("gone"), "name gone");
        assert_eq!(chosen("dddddddd"), "name dddddddd");
        assert_eq!(chosen(&"d".repeat(64)), "absent id");
        assert_eq!(chosen("ccccccc"), "name ccccccc", "seven digits are no id");
    }

    #[test]
    fn several_are_named_with_what_to_do_and_none_is_chosen() {
        let told = chosen("aaaaaaaa");
        assert!(
            told.contains(there()[0].id.as_str()) && told.contains("give more digits"),
            "{told}"
        );
        assert!(chosen("a/b").contains("no name of a sandbox"));
    }
}
