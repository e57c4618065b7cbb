//! Requests of every kind of wrongness, in one process, beside something that
//! must stay as it is.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use proptest::prelude::*;
use stockade_wire::files::{Answer, BATCH, Batch, EXIT_PROTOCOL, Item, Time, WriteKind};
use stockade_wire::{Decoder, Kind, Text, encode, message};

use super::serve;

/// What a host may say, and what it may not.
#[derive(Debug, Clone)]
struct Said {
    kind: Kind,
    run: u32,
    payload: Vec<u8>,
}

/// Names that lead somewhere, and names that should not.
const PATHS: [&str; 16] = [
    ".",
    "f",
    "d",
    "d/f",
    "d/e/f",
    "link",
    "link/f",
    "f/x",
    "..",
    "../out/kept",
    "/etc/passwd",
    "",
    "d/../../out/kept",
    "a//b",
    "nul\0",
    "missing",
];

fn item() -> impl Strategy<Value = Item> {
    let path = proptest::sample::select(PATHS.to_vec()).prop_map(Text::from);
    (path, 0..8_u8, 0..40_u64, any::<u32>(), any::<bool>()).prop_map(
        |(path, which, number, mode, flag)| match which {
            0 => Item::Look { path },
            1 => Item::Measure {
                path,
                max_entries: number,
                max_bytes: number,
            },
            2 => Item::List {
                path,
                recursive: flag,
                max_entries: number,
            },
            3 => Item::Read {
                path,
                max_bytes: number,
            },
            4 => Item::Remove {
                path,
                recursive: flag,
            },
            5 => Item::Reclaim { path },
            6 => Item::Write {
                path,
                kind: WriteKind::Directory,
                mode,
                modified: None,
            },
            _ => Item::Write {
                path,
                kind: WriteKind::File { size: number },
                mode,
                modified: flag.then_some(Time {
                    seconds: i64::from(mode) - 5,
                    nanos: mode,
                }),
            },
        },
    )
}

/// Items with the data that belongs to them, or nearly so.
fn plausible() -> impl Strategy<Value = Vec<Said>> {
    let piece = (item(), 0..20_u8);
    proptest::collection::vec(piece, 0..8).prop_map(|items| {
        let mut said = Vec::new();
        for (run, (item, wrong)) in (0..).zip(items) {
            let size = usize::try_from(item.data()).unwrap() + usize::from(wrong == 0);
            said.push(Said {
                kind: Kind::FileRequest,
                run,
                payload: message::to_payload(Kind::FileRequest, &item).unwrap(),
            });
            for piece in vec![b'x'; size].chunks(16) {
                said.push(Said {
                    kind: Kind::FileData,
                    run: run + u32::from(wrong == 1),
                    payload: piece.to_vec(),
                });
            }
        }
        said
    })
}

fn arbitrary() -> impl Strategy<Value = Vec<Said>> {
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..50),
        item().prop_map(|item| message::to_payload(Kind::FileRequest, &item).unwrap()),
        Just(br#"{"look":{"path":[1,2,999]}}"#.to_vec()),
        Just(vec![b'['; 5000]),
    ];
    let frame = (
        proptest::sample::select(Kind::ALL.to_vec()),
        0..4_u32,
        payload,
    );
    let said = frame.prop_map(|(kind, run, payload)| Said { kind, run, payload });
    proptest::collection::vec(said, 0..6)
}

/// Serves what is said in a work directory that has a link out of it. Answers
/// the exit code and the last answer about the batch.
fn serve_in(
    folder: &Path,
    head: Option<u32>,
    said: &[Said],
    cut: usize,
    with_processes: bool,
) -> (u8, Option<Answer>) {
    let work = folder.join("work");
    let mut bytes = Vec::new();
    if let Some(items) = head {
        let batch = Batch {
            work: work.display().to_string().into(),
            items,
        };
        let payload = message::to_payload(Kind::FileRequest, &batch).unwrap();
        encode(Kind::FileRequest, BATCH, &payload, &mut bytes);
    }
    for Said { kind, run, payload } in said {
        encode(*kind, *run, payload, &mut bytes);
    }
    bytes.truncate(bytes.len().saturating_sub(cut));
    let mut from = tempfile::tempfile().unwrap();
    from.write_all(&bytes).unwrap();
    from.rewind().unwrap();
    let mut to = tempfile::tempfile().unwrap();
    let processes = File::open("/proc").unwrap();
    let processes = with_processes.then(|| processes.as_fd());
    let code = serve(from.as_fd(), to.as_fd(), processes);
    let mut answered = Vec::new();
    to.rewind().unwrap();
    to.read_to_end(&mut answered).unwrap();
    let mut decoder = Decoder::new();
    decoder.buffer().extend_from_slice(&answered);
    let mut last = None;
    while let Some(frame) = decoder.next_frame().unwrap() {
        assert!(matches!(frame.kind, Kind::FileAnswer | Kind::FileData));
        if frame.kind == Kind::FileAnswer {
            let answer: Answer = message::from_payload(frame.kind, &frame.payload).unwrap();
            last = (frame.run == BATCH).then_some(answer);
        }
    }
    assert!(decoder.buffer().is_empty(), "whole frames only");
    (code, last)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for directory in ["work", "work/d", "out"] {
        std::fs::create_dir(at.join(directory)).unwrap();
    }
    for file in ["out/kept", "work/f", "work/d/f"] {
        std::fs::write(at.join(file), file).unwrap();
    }
    std::os::unix::fs::symlink("../out", at.join("work/link")).unwrap();
    folder
}

fn outside(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder.join("out")).unwrap().flatten();
    let named = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, std::fs::read(entry.path()).unwrap())
    });
    named.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_ends_and_leaves_the_outside_alone(
        head in proptest::option::weighted(0.9, 0..9_u32),
        said in prop_oneof![3 => plausible(), 1 => arbitrary()],
        cut in prop_oneof![4 => Just(0), 1 => 0..60_usize],
        with_processes: bool,
    ) {
        let folder = folder();
        let (code, last) = serve_in(folder.path(), head, &said, cut, with_processes);
        prop_assert_eq!(code == 0, last == Some(Answer::Finished));
        prop_assert!(code == 0 || code == EXIT_PROTOCOL);
        prop_assert_eq!(outside(folder.path()), [("kept".to_owned(), b"out/kept".to_vec())]);
        let left = std::fs::read_dir(folder.path().join("work")).unwrap().flatten();
        for entry in left {
            let name = entry.file_name().to_string_lossy().into_owned();
            prop_assert!(!name.contains(".part"), "{}", name);
        }
    }
}
