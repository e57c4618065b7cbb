//! Every verb, with what it answers; the one list that the tests of each verb
//! run through.

use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

use bytes::Bytes;
use docker_driver::{
    Bounds, Build, CallError, CallErrorKind, ContainerId, CopyIn, CreateContainer, CreateVolume,
    DiskUsage, Docker, EngineTime, InspectContainer, InspectContainers, InspectImage,
    InspectVolume, KillContainer, Label, LineSink, ListContainers, ListImages, ListVolumes,
    PastEvents, PauseContainer, Pull, RemoveContainer, RemoveImage, RemoveVolume, RunDetached,
    RunForeground, Signal, StartContainer, UnpauseContainer, Verb, verb_of,
};

use crate::support::{ID, id, image, image_id, mark, options, path, volume};

/// The container whose facts are among the golden files.
const GOLDEN: &str = "430136625dabd4c0cf8f2e73e0e80d8d487ada2856e4dc80faa60ba392739edb";

type Answered = Pin<Box<dyn Future<Output = Result<String, CallError>> + Send>>;

/// A verb as the tests see it.
pub(crate) struct Case {
    /// The type's name.
    pub(crate) name: &'static str,
    /// The name under which it is counted.
    pub(crate) verb: &'static str,
    /// The words that its calls start with.
    pub(crate) words: Vec<String>,
    /// What its words are told to be.
    pub(crate) told: Option<&'static str>,
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

    /// Which of the calls with these words is its first: binding has made some
    /// already.
    pub(crate) fn first(&self) -> usize {
        match self.verb {
            "info" => 2,
            _ => 1,
        }
    }

    /// What a failure is that nobody knows.
    pub(crate) fn unknown_failure(&self) -> CallErrorKind {
        match self.verb {
            "build" => CallErrorKind::BuildFailed,
            _ => CallErrorKind::Other,
        }
    }

    pub(crate) fn is_query(&self) -> bool {
        self.kind == Kind::Query
    }
}

fn all_words_of<V: Verb>(verb: &V) -> Vec<String> {
    verb.argv().words().map(str::to_owned).collect()
}

fn told_of<V: Verb>(verb: &V) -> Option<&'static str> {
    let words = all_words_of(verb);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    verb_of(&words)
}

/// The words of the command, which come before the first option or name.
fn command_of<V: Verb>(verb: &V) -> Vec<String> {
    let two = ["container", "image", "system", "volume"];
    let words = all_words_of(verb);
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
            told: told_of::<$type>(&$verb),
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
    let all = [
        queries(),
        queries_of_many(),
        of_the_engine(),
        of_images(),
        creations(),
        controls(),
    ];
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
            format!(
                "[ContainerRow {{ id: \"{ID}\", name: \"one\", aliases: [], state: \"running\" }}]"
            ),
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

fn queries_of_many() -> Vec<Case> {
    use Kind::Query;
    let facts = include_str!("../golden/28.5.2/container-inspect.answer");
    let facts = facts.trim_end().trim_start_matches("Some(");
    vec![case!(
        query,
        Query,
        InspectContainers,
        InspectContainers::of([ContainerId::new(GOLDEN).unwrap()])
            .pop()
            .unwrap(),
        include_str!("../golden/28.5.2/container-inspect.json"),
        format!("[{}]", facts.trim_end_matches(')')),
        Refused
    )]
}

fn of_the_engine() -> Vec<Case> {
    use Kind::Query;
    vec![
        case!(
            query,
            Query,
            EngineTime,
            EngineTime,
            r#"{"ID":"7c0ffee0","SystemTime":"1970-01-01T01:00:01.000000002+01:00"}"#,
            "EngineNow { id: \"7c0ffee0\", time: SystemTime { tv_sec: 1, tv_nsec: 2 } }",
            Refused
        ),
        case!(
            query,
            Query,
            PastEvents,
            PastEvents::between(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH),
            format!(
                r#"{{"Type":"container","Action":"die","Actor":{{"ID":"{ID}","Attributes":{{"exitCode":"3"}}}},"timeNano":5}}"#
            ),
            format!(
                "[PastEvent {{ action: \"die\", kind: \"container\", id: \"{ID}\", \
                 time: SystemTime {{ tv_sec: 0, tv_nsec: 5 }}, attributes: {{\"exitCode\": \"3\"}} }}]"
            ),
            Refused
        ),
        case!(
            query,
            Query,
            DiskUsage,
            DiskUsage,
            include_str!("../golden/28.5.2/system-df.json"),
            include_str!("../golden/28.5.2/system-df.answer").trim_end(),
            Refused
        ),
    ]
}

fn of_images() -> Vec<Case> {
    use Kind::{Mutation, Query};
    vec![
        case!(
            query,
            Query,
            ListImages,
            ListImages::labelled([label()]),
            format!("{{\"ID\":\"sha256:{ID}\",\"Repository\":\"example/image\",\"Tag\":\"1\"}}\n"),
            format!("[ImageRow {{ id: \"sha256:{ID}\", tags: [\"example/image:1\"] }}]"),
            Refused
        ),
        case!(
            mutate,
            Mutation(&[]),
            RemoveImage,
            RemoveImage::new(image_id()),
            format!("Untagged: example/image:1\nDeleted: sha256:{ID}\n"),
            "Removed",
            Refused
        ),
        case!(
            query,
            Query,
            Build,
            Build::new("/folder").unwrap(),
            "Step 1/1 : FROM scratch\n",
            format!("\"sha256:{ID}\""),
            Ignored
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
            Refused
        ),
        case!(
            mutate,
            Mutation(&[]),
            KillContainer,
            KillContainer::new(id(), Signal::Usr1),
            id_line.clone(),
            "()",
            Refused
        ),
        case!(
            mutate,
            Mutation(&["unpause"]),
            PauseContainer,
            PauseContainer::new(id()),
            id_line.clone(),
            "()",
            Refused
        ),
        case!(
            mutate,
            Mutation(&[]),
            UnpauseContainer,
            UnpauseContainer::new(id()),
            id_line.clone(),
            "()",
            Refused
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
            Refused
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
fn every_verb_is_told_by_its_words() {
    for case in all() {
        assert_eq!(case.told, Some(case.verb), "{}", case.name);
    }
}

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
