//! Every parser against pieces of good answers, and against none.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use std::time::{Duration, SystemTime};

use crate::argv::{ContainerId, ContainerName, CreationMark, ImageId, ImageRef, Label, VolumeName};
use crate::verb::{Exit, Output, ParseError, Verb};

const CONTAINER: &str = include_str!("../../tests/golden/28.5.2/container-inspect.json");
const IMAGE: &str = include_str!("../../tests/golden/28.5.2/image-inspect.json");
const VOLUME: &str = include_str!("../../tests/golden/28.5.2/volume-inspect.json");
const VERSION: &str = include_str!("../stand_in/engine/version.json");
const INFO: &str = include_str!("../stand_in/engine/info.json");
/// Whose facts `CONTAINER` holds.
const GOLDEN: &str = "430136625dabd4c0cf8f2e73e0e80d8d487ada2856e4dc80faa60ba392739edb";
const ID: &str = "4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824";
const USAGE: &str = include_str!("../../tests/golden/28.5.2/system-df.json");
const EVENT: &str = r#"{"Type":"container","Action":"die","Actor":{"ID":"a"},"timeNano":5}"#;
const IMAGE_ROW: &str = r#"{"ID":"sha256:4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824","Repository":"<none>","Tag":"<none>"}"#;
const ROW: &str = r#"{"ID":"4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824","Names":"a","State":"running"}"#;

fn past() -> PastEvents {
    PastEvents::between(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH)
}

fn output(stdout: &[u8]) -> Output {
    Output {
        exit: Exit::Code(0),
        stdout: Bytes::copy_from_slice(stdout),
        stderr: Bytes::new(),
        made: None,
        built: None,
    }
}

type Parse = Box<dyn Fn(&[u8]) -> Result<(), ParseError>>;

fn parser<V: Verb>(verb: V) -> Parse {
    Box::new(move |stdout| verb.parse(&output(stdout)).map(drop))
}

/// Each parser that reads its output, and something that it reads.
fn parsers() -> Vec<(&'static str, Parse, &'static str)> {
    let id = || ContainerId::new(ID).unwrap();
    let volume = || VolumeName::new("some-volume").unwrap();
    let golden = || ContainerId::new(GOLDEN).unwrap();
    let image = || ImageRef::new("example/image:1").unwrap();
    let mark = || CreationMark::new(Label::new("a", "b").unwrap());
    let options = RunOptions::new(ContainerName::new("ab").unwrap(), mark(), image());
    vec![
        (
            "container inspect",
            parser(InspectContainer::new(id())),
            CONTAINER,
        ),
        ("image inspect", parser(InspectImage::new(image())), IMAGE),
        (
            "volume inspect",
            parser(InspectVolume::new(volume())),
            VOLUME,
        ),
        (
            "container inspect of many",
            parser(InspectContainers::of([golden()]).pop().unwrap()),
            CONTAINER,
        ),
        ("version", parser(Version), VERSION),
        ("engine time", parser(EngineTime), INFO),
        ("system df", parser(DiskUsage), USAGE),
        ("events", parser(past()), EVENT),
        ("image ls", parser(ListImages::default()), IMAGE_ROW),
        ("info", parser(Info), INFO),
        ("ps", parser(ListContainers::default()), ROW),
        (
            "volume ls",
            parser(ListVolumes::default()),
            r#"{"Name":"some-volume"}"#,
        ),
        ("run", parser(RunDetached(options)), ID),
        ("rm", parser(RemoveContainer::new(id())), ID),
        (
            "volume create",
            parser(CreateVolume::new(volume(), mark())),
            "some-volume",
        ),
        (
            "volume rm",
            parser(RemoveVolume::new(volume())),
            "some-volume",
        ),
    ]
}

#[test]
fn no_beginning_of_an_answer_is_an_answer() {
    for (name, parse, good) in parsers() {
        assert!(parse(good.as_bytes()).is_ok(), "{name}");
        let good = good.trim_end().as_bytes();
        // Nothing is an answer where it means that there was none.
        let first = usize::from(matches!(
            name,
            "ps" | "volume ls" | "image ls" | "events" | "rm"
        ));
        for end in first..good.len() {
            assert!(
                parse(&good[..end]).is_err(),
                "{name}: {end} of {}",
                good.len()
            );
        }
    }
}

#[test]
fn an_answer_with_something_after_it_is_no_answer() {
    for (name, parse, good) in parsers() {
        let twice = format!("{} {good}", good.trim_end());
        assert!(parse(twice.as_bytes()).is_err(), "{name}");
    }
}

#[test]
fn two_objects_where_one_was_asked_for_are_no_answer() {
    for (name, parse, good) in parsers().into_iter().take(4) {
        let inner = good.trim().trim_start_matches('[').trim_end_matches(']');
        assert!(
            parse(format!("[{inner},{inner}]").as_bytes()).is_err(),
            "{name}"
        );
        assert!(parse(b"[]").is_err(), "{name}");
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "[".repeat(1_000_000);
    for (name, parse, _) in parsers() {
        assert!(parse(deep.as_bytes()).is_err(), "{name}");
    }
}

#[test]
fn fields_that_a_newer_engine_leaves_out_are_empty() {
    let image = r#"[{"Id":"sha256:1","Os":"linux","Architecture":"amd64","Config":{}}]"#;
    let bare = r#"[{"Id":"sha256:1","Os":"linux","Architecture":"amd64"}]"#;
    let (_, parse, _) = &parsers()[1];
    parse(image.as_bytes()).unwrap();
    parse(bare.as_bytes()).unwrap();
}

fn other_row() -> String {
    ROW.replace(ID, &"0".repeat(64))
}

#[test]
fn lists_hold_one_object_a_line_and_may_be_empty() {
    let output = |stdout: &str| output(stdout.as_bytes());
    let rows = ListContainers::default()
        .parse(&output(&format!("{ROW}\n{}\n\n", other_row())))
        .unwrap();
    assert_eq!(rows.len(), 2);
    assert!(
        ListContainers::default()
            .parse(&output(""))
            .unwrap()
            .is_empty()
    );
    let other = ListContainers::default().only(ContainerName::new("ab").unwrap());
    assert!(other.parse(&output(ROW)).unwrap().is_empty());
    let names = r#"{"Name":"some-volume"}
{"Name":"some-volume-too"}
"#;
    let only = ListVolumes::default().only(VolumeName::new("some-volume").unwrap());
    assert_eq!(only.parse(&output(names)).unwrap(), ["some-volume"]);
}

#[test]
fn names_that_links_give_are_told_from_a_containers_own() {
    let row = |names: &str| ROW.replace("\"a\"", &format!("{names:?}"));
    let parse = |names: &str| ListContainers::default().parse(&output(row(names).as_bytes()));
    let rows = parse("other/alias,own,third/alias").unwrap();
    assert_eq!(rows[0].name, "own");
    assert_eq!(rows[0].aliases, ["other/alias", "third/alias"]);
    assert!(parse("other/alias").is_err(), "no name of its own");
    assert!(parse("one,two").is_err(), "two names of its own");
}

#[test]
fn an_image_is_one_row_with_all_of_its_names() {
    let row = |tag: &str| {
        IMAGE_ROW
            .replacen("<none>", "example/image", 1)
            .replacen("<none>", tag, 1)
    };
    let rows = format!("{}\n{IMAGE_ROW}\n{}\n", row("1"), row("2"));
    let found = ListImages::default()
        .parse(&output(rows.as_bytes()))
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].tags, ["example/image:1", "example/image:2"]);
    let other = ImageId::new(format!("sha256:{GOLDEN}")).unwrap();
    let none = ListImages::default().only(other);
    assert_eq!(none.parse(&output(rows.as_bytes())).unwrap(), []);
}

#[test]
fn no_word_of_an_exec_is_in_an_event() {
    let secret = "exec_start: /bin/sh -c echo s3cret: too";
    let event = EVENT.replace("\"die\"", &format!("{secret:?}"));
    let found = past().parse(&output(event.as_bytes())).unwrap();
    assert_eq!(found[0].action, "exec_start");
    assert!(!format!("{found:?}").contains("s3cret"));
    assert_eq!(
        found[0].time,
        SystemTime::UNIX_EPOCH + Duration::from_nanos(5)
    );
}

#[test]
fn events_of_another_container_whose_name_only_begins_so_are_left_out() {
    let named = |name: &str| {
        let attributes = format!(r#""ID":"a","Attributes":{{"name":"{name}"}}"#);
        EVENT.replace(r#""ID":"a""#, &attributes)
    };
    let events = format!(
        "{}\n{}\n{EVENT}\n",
        named("some-box"),
        named("some-box-too")
    );
    let of = past().container(ContainerName::new("some-box").unwrap());
    let found = of.parse(&output(events.as_bytes())).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].attributes["name"], "some-box");
    let of = past().container(ContainerId::new(ID).unwrap());
    assert_eq!(of.parse(&output(events.as_bytes())).unwrap(), []);
}

#[test]
fn each_call_looks_at_as_many_containers_as_it_may_and_at_none_twice() {
    let id = |number: usize| ContainerId::new(format!("{number:064x}")).unwrap();
    let all = (0..2 * InspectContainers::MOST + 1).chain(0..5).map(id);
    let calls = InspectContainers::of(all);
    let words: Vec<_> = calls
        .iter()
        .map(|call| call.argv().words().count() - 2)
        .collect();
    assert_eq!(words, [InspectContainers::MOST, InspectContainers::MOST, 1]);
    assert_eq!(InspectContainers::of([]), []);
}

proptest! {
    #[test]
    fn bytes_of_any_kind_make_no_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, parse, _) in parsers() {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn an_answer_with_a_byte_changed_makes_no_parser_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for (_, parse, good) in parsers() {
            let mut bytes = good.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = parse(&bytes);
        }
    }
}
