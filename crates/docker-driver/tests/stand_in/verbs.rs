//! Every verb, with what it answers; the one list that the tests of each verb
//! run through.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use docker_driver::{
    Bounds, CallError, CopyIn, CreateContainer, CreateVolume, Docker, InspectContainer,
    InspectImage, InspectVolume, KillContainer, Label, LineSink, ListContainers, ListVolumes,
    PauseContainer, Pull, RemoveContainer, RemoveVolume, RunDetached, RunForeground, Signal,
    StartContainer, UnpauseContainer, Verb,
};

use crate::support::{ID, id, image, mark, options, path, volume};

type Answered = Pin<Box<dyn Future<Output = Result<String, CallError>> + Send>>;

/// A verb as the tests see it.
pub(crate) struct Case {
    /// The type's name.
    pub(crate) name: &'static str,
    /// The name under which it is counted.
    pub(crate) verb: &'static str,
    /// The words that its calls start with.
    pub(crate) words: Vec<String>,
    /// What a docker that works prints.
    pub(crate) good: String,
    /// Its answer to that, as text.
    pub(crate) answer: String,
    /// What it makes of output that is not what it answers.
    pub(crate) garbage: Garbage,
    pub(crate) kind: Kind,
    pub(crate) call: Box<dyn Fn(Docker, Bounds) -> Answered>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Garbage {
    /// An error.
    Refused,
    /// Nothing: the exit code is the answer, or any output is data.
    Ignored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    /// A change, and the words of the undo after it was done: none if it is
    /// not undone.
    Mutation(&'static [&'static str]),
}

impl Case {
    /// The words as a rule takes them.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    pub(crate) fn is_query(&self) -> bool {
        self.kind == Kind::Query
    }
}

/// The words of the command, which come before the first option or name.
fn command_of<V: Verb>(verb: &V) -> Vec<String> {
    let two = ["container", "image", "volume"];
    let words: Vec<String> = verb.argv().words().map(str::to_owned).collect();
    let count = if two.contains(&words[0].as_str()) {
        2
    } else {
        1
    };
    words.into_iter().take(count).collect()
}

macro_rules! case {
    ($call:ident, $kind:expr, $type:ident, $verb:expr, $good:expr, $answer:expr, $garbage:ident) => {
        Case {
            name: stringify!($type),
            verb: <$type as Verb>::NAME,
            words: command_of::<$type>(&$verb),
            good: $good.into(),
            answer: $answer.into(),
            garbage: Garbage::$garbage,
            kind: $kind,
            call: Box::new(|docker, bounds| {
                let verb: $type = $verb;
                Box::pin(async move {
                    docker
                        .$call(&bounds, verb)
                        .await
                        .map(|answer| format!("{answer:?}"))
                })
            }),
        }
    };
}

/// Every verb there is.
pub(crate) fn all() -> Vec<Case> {
    let all = [queries(), creations(), controls()];
    all.into_iter().flatten().collect()
}

fn label() -> Label {
    Label::new("a", "b").unwrap()
}

fn queries() -> Vec<Case> {
    use Kind::Query;
    let row = format!("{{\"ID\":\"{ID}\",\"Names\":\"one\",\"State\":\"running\"}}\n");
    vec![
        case!(
            query,
            Query,
            InspectContainer,
            InspectContainer::new(id()),
            include_str!("../golden/28.5.2/container-inspect.json"),
            include_str!("../golden/28.5.2/container-inspect.answer").trim_end(),
            Refused
        ),
        case!(
            query,
            Query,
            ListContainers,
            ListContainers::labelled([label()]),
            row,
            format!("[ContainerRow {{ id: \"{ID}\", name: \"one\", state: \"running\" }}]"),
            Refused
        ),
        case!(
            query,
            Query,
            InspectImage,
            InspectImage::new(image()),
            include_str!("../golden/28.5.2/image-inspect.json"),
            include_str!("../golden/28.5.2/image-inspect.answer").trim_end(),
            Refused
        ),
        case!(
            query,
            Query,
            Pull,
            Pull::new(image()),
            "example/image:1\n",
            "()",
            Ignored
        ),
        case!(
            query,
            Query,
            Pull,
            Pull::new(image()).tell(LineSink::new(|_| {})),
            "1: Pulling from example/image\n",
            "()",
            Ignored
        ),
        case!(
            query,
            Query,
            InspectVolume,
            InspectVolume::new(volume()),
            include_str!("../golden/28.5.2/volume-inspect.json"),
            include_str!("../golden/28.5.2/volume-inspect.answer").trim_end(),
            Refused
        ),
        case!(
            query,
            Query,
            ListVolumes,
            ListVolumes::labelled([label()]),
            "{\"Name\":\"some-volume\"}\n",
            "[\"some-volume\"]",
            Refused
        ),
    ]
}

fn creations() -> Vec<Case> {
    use Kind::Mutation;
    let id_line = format!("{ID}\n");
    let quoted = format!("{ID:?}");
    vec![
        case!(
            mutate,
            Mutation(&["rm"]),
            RunDetached,
            RunDetached(options()),
            id_line.clone(),
            quoted.clone(),
            Refused
        ),
        case!(
            mutate,
            Mutation(&["rm"]),
            CreateContainer,
            CreateContainer(options()),
            id_line,
            quoted,
            Refused
        ),
        case!(
            mutate,
            Mutation(&["ps"]),
            RunForeground,
            RunForeground::new(options(), 1024 * 1024),
            "printed",
            "ForegroundOutput { code: 0, stdout: b\"printed\", stderr: b\"\" }",
            Ignored
        ),
        case!(
            mutate,
            Mutation(&["volume", "inspect"]),
            CreateVolume,
            CreateVolume::new(volume(), mark()),
            "some-volume\n",
            "()",
            Refused
        ),
    ]
}

fn controls() -> Vec<Case> {
    use Kind::Mutation;
    let id_line = format!("{ID}\n");
    vec![
        case!(
            mutate,
            Mutation(&[]),
            StartContainer,
            StartContainer::new(id()),
            id_line.clone(),
            "()",
            Ignored
        ),
        case!(
            mutate,
            Mutation(&[]),
            KillContainer,
            KillContainer::new(id(), Signal::Usr1),
            id_line.clone(),
            "()",
            Ignored
        ),
        case!(
            mutate,
            Mutation(&["unpause"]),
            PauseContainer,
            PauseContainer::new(id()),
            id_line.clone(),
            "()",
            Ignored
        ),
        case!(
            mutate,
            Mutation(&[]),
            UnpauseContainer,
            UnpauseContainer::new(id()),
            id_line.clone(),
            "()",
            Ignored
        ),
        case!(
            mutate,
            Mutation(&[]),
            RemoveContainer,
            RemoveContainer::new(id()),
            id_line,
            "Removed",
            Refused
        ),
        case!(
            mutate,
            Mutation(&[]),
            CopyIn,
            CopyIn::new(id(), path("/dir"), Bytes::from(vec![0; 1024])),
            "",
            "()",
            Ignored
        ),
        case!(
            mutate,
            Mutation(&[]),
            RemoveVolume,
            RemoveVolume::new(volume()),
            "some-volume\n",
            "Removed",
            Refused
        ),
    ]
}

/// Verbs that only binding uses; its own tests are in `binding`.
const OF_BINDING: [&str; 4] = ["Version", "Info", "InspectContext", "IdentifyClient"];

#[test]
fn no_verb_of_the_crate_is_missing_from_the_list() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![source];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            let starts = ["impl Verb for ", "\ncontrol!(\n    ", "\ncontrol!("];
            for start in starts {
                for (at, _) in text.match_indices(start) {
                    let rest = &text[at + start.len()..];
                    let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap();
                    found.push(rest[..end].to_owned());
                }
            }
        }
    }
    found.retain(|name| !name.is_empty() && !OF_BINDING.contains(&name.as_str()));
    assert!(found.len() > 15, "the search is broken: {found:?}");
    let listed: Vec<_> = all().into_iter().map(|case| case.name).collect();
    let missing: Vec<_> = found
        .iter()
        .filter(|name| !listed.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
