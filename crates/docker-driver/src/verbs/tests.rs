//! Every parser against pieces of good answers, and against none.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::argv::{ContainerId, ContainerName, CreationMark, ImageRef, Label, VolumeName};
use crate::verb::{Exit, Output, ParseError, Verb};

const CONTAINER: &str = include_str!("../../tests/golden/28.5.2/container-inspect.json");
const IMAGE: &str = include_str!("../../tests/golden/28.5.2/image-inspect.json");
const VOLUME: &str = include_str!("../../tests/golden/28.5.2/volume-inspect.json");
const VERSION: &str = include_str!("../stand_in/engine/version.json");
const INFO: &str = include_str!("../stand_in/engine/info.json");
const ID: &str = "4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824";
const ROW: &str = r#"{"ID":"4a20c3e5695be2dad05290b041581119d4f6bae62511af6014a1bc06fbbf5824","Names":"a","State":"running"}"#;

type Parse = Box<dyn Fn(&[u8]) -> Result<(), ParseError>>;

fn parser<V: Verb>(verb: V) -> Parse {
    Box::new(move |stdout| {
        let output = Output {
            exit: Exit::Code(0),
            stdout: Bytes::copy_from_slice(stdout),
            stderr: Bytes::new(),
            made: None,
            built: None,
        };
        verb.parse(&output).map(drop)
    })
}

/// Each parser that reads its output, and something that it reads.
fn parsers() -> Vec<(&'static str, Parse, &'static str)> {
    let id = || ContainerId::new(ID).unwrap();
    let volume = || VolumeName::new("some-volume").unwrap();
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
        ("version", parser(Version), VERSION),
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
        let first = usize::from(matches!(name, "ps" | "volume ls" | "rm"));
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
    for (name, parse, good) in parsers().into_iter().take(3) {
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

#[test]
fn lists_hold_one_object_a_line_and_may_be_empty() {
    let output = |stdout: &str| Output {
        exit: Exit::Code(0),
        stdout: stdout.to_owned().into(),
        stderr: Bytes::new(),
        made: None,
        built: None,
    };
    let rows = ListContainers::default()
        .parse(&output(&format!("{ROW}\n{ROW}\n\n")))
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
