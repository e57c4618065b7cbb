//! What is refused, by its own name, and what that leaves.

use std::path::Path;

use stockade_wire::files::{
    Answer, BATCH, Batch, EXIT_PROTOCOL, FileFault, FileKind, Item, Time, WriteKind,
};
use stockade_wire::message::{Status, to_payload};
use stockade_wire::{Kind, encode};

use crate::support::files::{
    Ask, Served, encoded, fault, files, list, look, make, measure, read, reclaim, remove, write,
};
use crate::support::{Client, Options, Sandbox, argv, shell};

/// One of each operation on a path.
fn each(path: &str) -> Vec<Ask> {
    vec![
        look(path),
        measure(path, 9, 9),
        list(path, true, 9),
        read(path),
        write(path, b"planted"),
        make(path, 0o755),
        remove(path, false),
        remove(path, true),
        reclaim(path),
    ]
}

/// The fault of each operation on a path, each in its own batch.
fn faults(client: &mut Client, work: &Path, path: &str) -> Vec<Option<FileFault>> {
    each(path)
        .into_iter()
        .map(|ask| match client.one(work, ask) {
            Answer::Fault(fault) => Some(fault),
            _ => None,
        })
        .collect()
}

#[test]
fn no_operation_passes_a_linked_parent() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell("mkdir -p w/d out/sub; echo secret > out/secret; ln -s ../out w/link; ln -s ../../out w/d/link"))
        .code();
    let inside = work.join("w");
    for (path, at) in [
        ("link/secret", "link"),
        ("link/sub/new", "link"),
        ("d/link/secret", "d/link"),
    ] {
        let expected = FileFault::LinkedParent { at: at.into() };
        for found in faults(&mut client, &inside, path) {
            assert_eq!(found, Some(expected.clone()), "{path}");
        }
    }
    assert_eq!(
        client.run(&shell("find out | sort; cat out/secret")).text(),
        "out\nout/secret\nout/sub\nsecret\n"
    );
}

#[test]
fn a_link_at_the_leaf_is_seen_and_never_followed() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell("mkdir dir; echo kept > target; ln -s target to-file; ln -s dir to-dir; ln -s none to-none"))
        .code();
    for path in ["to-file", "to-dir", "to-none"] {
        for ask in [
            measure(path, 9, 9),
            list(path, true, 9),
            read(path),
            write(path, b"x"),
            make(path, 0o755),
        ] {
            assert_eq!(fault(client.one(&work, ask)), FileFault::Link, "{path}");
        }
    }
    let answers = [
        remove("to-file", false),
        remove("to-dir", true),
        reclaim("to-none"),
    ];
    client.batch(&work, &answers).done();
    assert_eq!(
        client.run(&shell("ls; cat target")).text(),
        "dir\ntarget\nkept\n"
    );
}

#[test]
fn a_parent_that_is_no_directory_is_named() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell("mkdir d; echo x > d/plain; mkfifo fifo"))
        .code();
    for (path, at) in [
        ("d/plain/deeper", "d/plain"),
        ("d/plain/a/b", "d/plain"),
        ("fifo/x", "fifo"),
    ] {
        let expected = FileFault::ParentNotDirectory { at: at.into() };
        for found in faults(&mut client, &work, path) {
            assert_eq!(found, Some(expected.clone()), "{path}");
        }
    }
}

#[test]
fn a_linked_work_directory_is_refused_wherever_the_link_is() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell(
            "mkdir -p real/sub; echo x > real/sub/f; ln -s real link; echo x > plain",
        ))
        .code();
    for (below, at) in [("link", "link"), ("link/sub", "link")] {
        let at = work.join(at).display().to_string();
        let expected = FileFault::WorkDirLinked { at: at.into() };
        for path in [".", "f", "new", "d/new"] {
            for found in faults(&mut client, &work.join(below), path) {
                let itself = path == "." && found == Some(FileFault::WorkDir);
                assert!(found == Some(expected.clone()) || itself, "{found:?}");
            }
        }
    }
    let at = work.join("plain").display().to_string();
    let expected = FileFault::WorkDirNotDirectory { at: at.into() };
    assert_eq!(
        fault(client.one(&work.join("plain/x"), look("f"))),
        expected
    );
    assert_eq!(
        client.run(&shell("find real | sort")).text(),
        "real\nreal/sub\nreal/sub/f\n"
    );
}

#[test]
fn a_missing_work_directory_is_a_fault_but_for_a_reclaim() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let missing = work.join("a/b");
    let mut found = faults(&mut client, &missing, "x");
    assert_eq!(found.pop(), Some(None));
    assert!(
        found
            .iter()
            .all(|fault| *fault == Some(FileFault::WorkDirMissing)),
        "{found:?}"
    );
    assert_eq!(
        fault(client.one(Path::new("relative"), look("x"))),
        FileFault::InvalidPath
    );
    assert_eq!(
        fault(client.one(Path::new("/a/../b"), look("x"))),
        FileFault::InvalidPath
    );
}

#[test]
fn the_work_directory_itself_is_only_looked_at() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client.run(&shell("echo x > control")).code();
    let itself = Some(FileFault::WorkDir);
    let found = faults(&mut client, &work, ".");
    assert_eq!(found[..3], [None, None, None]);
    assert_eq!(found[3], Some(FileFault::IsDirectory));
    assert!(found[4..].iter().all(|fault| *fault == itself), "{found:?}");
    for path in [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/",
        "nul\0",
        "./a",
    ] {
        for found in faults(&mut client, &work, path) {
            assert_eq!(found, Some(FileFault::InvalidPath), "{path:?}");
        }
    }
    assert_eq!(client.run(&argv(&["ls"])).text(), "control\n");
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_replaced_and_waits_for_nobody() {
    let Some(sandbox) = Sandbox::with(&Options {
        prepare: "mknod -m 666 WORK/null c 1 3; mknod WORK/block b 7 0; chmod 666 WORK/block",
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let make = "mkfifo fifo; mkdir dir; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'";
    client.run(&shell(make)).code();
    for (path, kind) in [
        ("fifo", FileKind::Fifo),
        ("socket", FileKind::Socket),
        ("null", FileKind::CharDevice),
        ("block", FileKind::BlockDevice),
    ] {
        for ask in [read(path), write(path, b"x")] {
            assert_eq!(
                fault(client.one(&work, ask)),
                FileFault::NotRegular { kind }
            );
        }
        assert_eq!(
            fault(client.one(&work, list(path, false, 1))),
            FileFault::NotDirectory { kind }
        );
        assert_eq!(client.one(&work, remove(path, false)), Answer::Done);
    }
    for ask in [read("dir"), write("dir", b"x")] {
        assert_eq!(fault(client.one(&work, ask)), FileFault::IsDirectory);
    }
    assert_eq!(client.run(&argv(&["ls"])).text(), "dir\n");
}

#[test]
fn a_file_larger_than_asked_for_is_refused_before_any_byte() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell("truncate -s 1T sparse; printf 12345 > small"))
        .code();
    let read = |path: &str, max_bytes| {
        Ask::of(Item::Read {
            path: path.into(),
            max_bytes,
        })
    };
    let served = client
        .batch(&work, &[read("small", 5), read("sparse", 1 << 30)])
        .whole();
    assert_eq!(served.items[0].data, b"12345");
    assert_eq!(fault(served.last(1)), FileFault::TooLarge { size: 1 << 40 });
    assert_eq!(
        fault(client.one(&work, read("small", 4))),
        FileFault::TooLarge { size: 5 }
    );
}

#[test]
fn a_full_work_directory_is_no_space_and_leaves_earlier_files_whole() {
    let Some(sandbox) = Sandbox::with(&Options {
        work: ",size=1m,nr_inodes=64",
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let asks = [
        write("first", &[1; 300_000]),
        write("second", &[2; 900_000]),
        write("third", b"x"),
    ];
    let served = client.batch(&work, &asks).whole();
    assert_eq!(served.last(0), Answer::Done);
    assert_eq!(fault(served.last(1)), FileFault::NoSpace);
    assert_eq!(fault(served.last(2)), FileFault::NotTried);
    assert_eq!(
        client.run(&shell("ls -A; wc -c < first")).text(),
        "first\n300000\n"
    );
    // An existing file survives a failed replacement.
    assert_eq!(
        fault(client.one(&work, write("first", &[3; 2_000_000]))),
        FileFault::NoSpace
    );
    let served = client.batch(&work, &[read("first")]).done();
    assert!(served.items[0].data == [1; 300_000]);
    // Full to the last byte, and to the last inode: removing still works.
    client.run(&shell("cat /dev/zero > fill 2>/dev/null; mkdir d; i=0; while : > d/$i; do i=$((i+1)); done 2>/dev/null; true"));
    assert_eq!(
        fault(client.one(&work, write("more", b"x"))),
        FileFault::NoSpace
    );
    assert_eq!(
        fault(client.one(&work, make("more", 0o755))),
        FileFault::NoSpace
    );
    client
        .batch(
            &work,
            &[
                remove("fill", false),
                remove("d", true),
                write("more", b"x"),
            ],
        )
        .done();
}

#[test]
fn a_read_only_or_forbidden_place_is_named() {
    let Some(sandbox) = Sandbox::with(&Options {
        prepare: "mkdir WORK/ro WORK/roots; echo x > WORK/roots/f; chmod 600 WORK/roots/f; mount -t tmpfs -o ro ro WORK/ro",
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    for ask in [
        write("ro/f", b"x"),
        write("ro/d/f", b"x"),
        make("ro/d", 0o755),
    ] {
        assert_eq!(fault(client.one(&work, ask)), FileFault::ReadOnly);
    }
    for ask in [
        write("roots/g", b"x"),
        write("roots/f", b"x"),
        make("roots/d", 0o755),
        read("roots/f"),
        remove("roots/f", false),
        remove("roots", true),
    ] {
        assert_eq!(fault(client.one(&work, ask)), FileFault::Denied);
    }
    assert_eq!(client.run(&shell("stat -c %s roots/f")).text(), "2\n");
}

#[test]
fn a_fault_stops_what_changes_and_nothing_that_only_looks() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client.run(&shell("echo x > plain")).code();
    let big = vec![7; 500_000];
    let asks = [
        look("plain/x"),
        list("none", false, 1),
        write("a", b"1"),
        write("plain/x", &big),
        write("b", &big),
        look("a"),
    ];
    let served = client.batch(&work, &asks).whole();
    let at = || "plain".into();
    assert_eq!(
        fault(served.last(0)),
        FileFault::ParentNotDirectory { at: at() }
    );
    assert_eq!(fault(served.last(1)), FileFault::Missing);
    assert_eq!(served.last(2), Answer::Done);
    assert_eq!(
        fault(served.last(3)),
        FileFault::ParentNotDirectory { at: at() }
    );
    assert_eq!(fault(served.last(4)), FileFault::NotTried);
    assert_eq!(fault(served.last(5)), FileFault::NotTried);
    assert_eq!(client.run(&argv(&["ls"])).text(), "a\nplain\n");
}

#[test]
fn a_time_that_no_file_has_is_refused_and_leaves_nothing() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let item = Item::Write {
        path: "f".into(),
        kind: WriteKind::File { size: 0 },
        mode: 0o644,
        modified: Some(Time {
            seconds: 0,
            nanos: 1_000_000_000,
        }),
    };
    let errno = 22;
    assert_eq!(
        fault(client.one(&work, Ask::of(item))),
        FileFault::Other { errno }
    );
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}

/// Sends a stream as it is, and answers what came of it.
fn raw(client: &mut Client, bytes: &[u8], items: usize) -> Served {
    let run = client.start(&files());
    client.write(run, bytes);
    client.end_input(run);
    let outcome = client.outcome(run);
    Served::from_outcome(&outcome, items)
}

#[test]
fn data_of_the_wrong_size_ends_the_batch_and_leaves_nothing() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let asks = |size| {
        let mut ask = write("f", b"12345");
        if let Item::Write { kind, .. } = &mut ask.item {
            *kind = WriteKind::File { size };
        }
        [ask, write("g", b"x")]
    };
    for (size, received) in [(4, 5), (6, 5)] {
        let served = raw(&mut client, &encoded(&work, &asks(size)), 2);
        let expected = FileFault::WrongSize {
            expected: size,
            received,
        };
        assert_eq!(fault(served.last(0)), expected);
        assert!(served.items[1].answers.is_empty() && !served.finished);
        assert_eq!(served.exit.status, Status::Exited(EXIT_PROTOCOL.into()));
    }
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}

#[test]
fn what_is_no_batch_ends_at_once() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let whole = encoded(&work, &[write("f", b"12345")]);
    let mut wrong_item = Vec::new();
    let batch = Batch {
        work: work.display().to_string().into(),
        items: u32::MAX,
    };
    let payload = to_payload(Kind::FileRequest, &batch).unwrap();
    encode(Kind::FileRequest, BATCH, &payload, &mut wrong_item);
    encode(
        Kind::FileRequest,
        1,
        br#"{"look":{"path":"."}}"#,
        &mut wrong_item,
    );
    let mut streams: Vec<Vec<u8>> = (0..whole.len())
        .map(|cut| whole[..cut].to_vec())
        .step_by(7)
        .collect();
    streams.push(wrong_item);
    streams.push(vec![0xff; 100_000]);
    for stream in streams {
        let served = raw(&mut client, &stream, 1);
        assert!(!served.finished);
        assert_eq!(served.exit.status, Status::Exited(EXIT_PROTOCOL.into()));
        assert!(served.exit.tree_ended);
    }
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}
