//! Every call that this crate can make, by name.

use crate::bind::{IdentifyClient, InspectContext};
use crate::verb::Verb;
use crate::verbs::{
    Build, CopyIn, CreateContainer, CreateVolume, DiskUsage, EngineTime, Info, InspectContainer,
    InspectContainers, InspectImage, InspectVolume, KillContainer, ListContainers, ListImages,
    ListVolumes, PastEvents, PauseContainer, Pull, RemoveContainer, RemoveImage, RemoveVolume,
    RunDetached, RunForeground, StartContainer, UnpauseContainer, Version,
};

/// Is in the list of all verbs. Only the macro below implements it, and every
/// [`Verb`] has to, so that none can be left out of the list.
#[expect(unnameable_types, reason = "nobody else may implement it")]
pub trait Registered {}

/// A call whose process is handed over, and which so is no [`Verb`]. There are
/// no others than these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streamed(&'static str);

impl Streamed {
    /// The name under which calls are counted.
    pub(crate) const fn name(self) -> &'static str {
        self.0
    }
}

macro_rules! registry {
    (verbs: $($verb:ty),+; streams: $($stream:ident = $name:expr),+ $(;)?) => {
        $(impl Registered for $verb {})+

        impl Streamed {
            $(pub(crate) const $stream: Self = Self($name);)+
        }

        /// The name of every call, as often as something has it.
        const ALL: &[&str] = &[
            $(<$verb as Verb>::NAME,)+
            $(Streamed::$stream.name(),)+
        ];
    };
}

registry! {
    verbs:
        Build,
        CopyIn,
        CreateContainer,
        CreateVolume,
        DiskUsage,
        EngineTime,
        IdentifyClient,
        Info,
        InspectContainer,
        InspectContainers,
        InspectContext,
        InspectImage,
        InspectVolume,
        KillContainer,
        ListContainers,
        ListImages,
        ListVolumes,
        PastEvents,
        PauseContainer,
        Pull,
        RemoveContainer,
        RemoveImage,
        RemoveVolume,
        RunDetached,
        RunForeground,
        StartContainer,
        UnpauseContainer,
        Version;
    streams:
        EXEC = "exec",
        COPY_IN = CopyIn::NAME,
        COPY_OUT = "cp out",
        EVENTS = "events";
}

const UNIQUE: &([&str; ALL.len()], usize) = &unique(ALL);

/// The names of all calls that this crate makes, each once: what
/// [`Invocation::verb`](crate::Invocation::verb) and
/// [`CallError::verb`](crate::CallError::verb) can be. No verb can be missing.
pub const VERBS: &[&str] = UNIQUE.0.split_at(UNIQUE.1).0;

/// The name of the call that these words, without the program's own, are of;
/// one of [`VERBS`]. For a client that stands in for docker and has to tell
/// what it is asked for.
///
/// It reads the words as this crate writes them: the command first, every
/// option as one word before the first word that is none. The longest name
/// that fits is taken.
///
/// ```
/// use docker_driver::verb_of;
///
/// assert_eq!(verb_of(&["volume", "ls", "--format={{json .}}"]), Some("volume ls"));
/// assert_eq!(verb_of(&["run", "--detach=true", "debian"]), Some("run"));
/// assert_eq!(verb_of(&["run", "debian", "--detach=true"]), Some("run attached"));
/// assert_eq!(verb_of(&["swarm", "leave"]), None);
/// ```
pub fn verb_of(words: &[&str]) -> Option<&'static str> {
    match words {
        ["cp", "-", ..] => Some(CopyIn::NAME),
        ["cp", .., "-"] => Some(Streamed::COPY_OUT.name()),
        ["run", rest @ ..] => {
            let mut options = rest.iter().take_while(|word| word.starts_with('-'));
            Some(match options.any(|word| *word == "--detach=true") {
                true => RunDetached::NAME,
                false => RunForeground::NAME,
            })
        }
        _ => VERBS
            .iter()
            .copied()
            .filter(|name| starts_with(words, name))
            .max_by_key(|name| name.len()),
    }
}

fn starts_with(words: &[&str], name: &str) -> bool {
    let mut words = words.iter();
    name.split(' ').all(|part| words.next() == Some(&part))
}

/// The different ones of these, and how many they are.
const fn unique<const N: usize>(all: &[&'static str]) -> ([&'static str; N], usize) {
    let mut found = [""; N];
    let mut count = 0;
    let mut at = 0;
    while at < all.len() {
        let mut other = 0;
        while other < count && !same(found[other], all[at]) {
            other += 1;
        }
        if other == count {
            found[count] = all[at];
            count += 1;
        }
        at += 1;
    }
    (found, count)
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_listed_once() {
        let listed: BTreeSet<_> = VERBS.iter().collect();
        assert_eq!(listed.len(), VERBS.len());
        assert_eq!(listed, ALL.iter().collect());
    }

    #[test]
    fn words_of_a_copy_are_told_by_where_the_stream_stands() {
        assert_eq!(verb_of(&["cp", "-", "abc:/dir"]), Some("cp in"));
        assert_eq!(verb_of(&["cp", "abc:/dir", "-"]), Some("cp out"));
        assert_eq!(verb_of(&["cp", "abc:/dir", "/here"]), None);
    }

    #[test]
    fn words_of_no_call_have_no_name() {
        for words in [&[][..], &[""], &["volume"], &["volume ls"], &["execute"]] {
            assert_eq!(verb_of(words), None, "{words:?}");
        }
    }
}
