//! What goes in comes out, and what is there is told.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use stockade_wire::files::{Answer, FileFault, FileKind, Item, Time, WriteKind};

use crate::support::files::{Ask, fault, list, look, make, measure, read, seen, write};
use crate::support::{Options, Sandbox, argv, now, shell};

#[test]
fn a_file_goes_in_with_its_attributes_and_comes_out_as_it_was() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .flat_map(u32::to_le_bytes)
        .take(10_000_001)
        .collect();
    let item = Item::Write {
        path: "a/b/file".into(),
        kind: WriteKind::File {
            size: bytes.len() as u64,
        },
        mode: 0o4751,
        modified: Some(Time {
            seconds: 1,
            nanos: 999_999_999,
        }),
    };
    let ask = Ask {
        item,
        data: bytes.clone(),
    };
    let served = client.batch(&work, &[ask, read("a/b/file"), look("a/b/file"), look("a")]);
    let served = served.whole();
    assert_eq!(served.last(0), Answer::Done);
    assert!(served.items[1].data == bytes);
    let stat = seen(served.last(2));
    assert_eq!(
        served.items[1].answers,
        [Answer::Opened(stat.clone()), Answer::Done]
    );
    assert_eq!((stat.kind, stat.size), (FileKind::File, Some(10_000_001)));
    assert_eq!(stat.mode, 0o751, "no setuid");
    assert_eq!(
        (stat.modified.seconds, stat.modified.nanos),
        (1, 999_999_999)
    );
    assert_eq!((stat.uid, stat.gid), (client.hello.uid, client.hello.gid));
    assert_eq!(stat.links, 1);
    let parent = seen(served.last(3));
    assert_eq!(
        (parent.kind, parent.size, parent.mode),
        (FileKind::Directory, None, 0o755)
    );
}

#[test]
fn a_write_replaces_and_leaves_an_existing_directory_as_it_was() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .batch(&work, &[make("d", 0o700), write("d/f", b"long before")])
        .done();
    client
        .run(&shell("touch -d @5 d; chmod 711 d; ln d/f hard"))
        .code();
    client
        .batch(
            &work,
            &[
                make("d", 0o777),
                write("d/f", b"short"),
                write("d/empty", b""),
            ],
        )
        .done();
    let served = client.batch(
        &work,
        &[read("d/f"), read("d/empty"), look("d"), read("hard")],
    );
    let served = served.whole();
    assert_eq!(served.items[0].data, b"short");
    assert_eq!(served.items[1].data, b"");
    assert_eq!(seen(served.last(2)).mode, 0o711);
    // Replaced, not written through: another name keeps what it had.
    assert_eq!(served.items[3].data, b"long before");
    let outcome = client.run(&argv(&["find", ".", "-name", "*.part"]));
    assert_eq!(outcome.text(), "");
}

#[test]
fn every_byte_that_a_name_may_hold_survives() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let names: Vec<Vec<u8>> = (1..=255_u8)
        .filter(|byte| !matches!(byte, b'/' | b'.'))
        .map(|byte| vec![byte])
        .chain([vec![b'.', 0xff], vec![0xfe; 255], b"...".to_vec()])
        .collect();
    let writes: Vec<Ask> = names
        .iter()
        .map(|name| write(name.as_slice(), name))
        .collect();
    client.batch(&work, &writes).done();
    let reads: Vec<Ask> = names.iter().map(|name| read(name.as_slice())).collect();
    let served = client.batch(&work, &reads).done();
    for (told, name) in served.items.iter().zip(&names) {
        assert_eq!(&told.data, name);
    }
    let served = client.batch(&work, &[list(".", false, u64::MAX)]).whole();
    let mut listed: Vec<Vec<u8>> = served.items[0]
        .entries()
        .into_iter()
        .map(|entry| entry.path.into_bytes())
        .collect();
    listed.sort();
    let mut names = names;
    names.sort();
    assert_eq!(listed, names);
}

#[test]
fn a_look_names_what_is_there_and_follows_nothing() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell(
            "echo x > file; mkdir dir; ln -s /etc/passwd link; ln -s gone dangling; mkfifo fifo",
        ))
        .code();
    let served = client.batch(
        &work,
        &[
            "file",
            "dir",
            "link",
            "dangling",
            "fifo",
            ".",
            "none",
            "none/deeper",
        ]
        .map(look),
    );
    let served = served.whole();
    let kinds: Vec<Option<FileKind>> = (0..8)
        .map(|item| match served.last(item) {
            Answer::Seen(stat) => stat.map(|stat| stat.kind),
            answer => panic!("{answer:?}"),
        })
        .collect();
    let (link, directory) = (Some(FileKind::Link), Some(FileKind::Directory));
    assert_eq!(
        kinds,
        [
            Some(FileKind::File),
            directory,
            link,
            link,
            Some(FileKind::Fifo),
            directory,
            None,
            None
        ]
    );
    assert_eq!(seen(served.last(2)).size, None);
}

#[test]
fn a_listing_is_whole_or_says_that_it_is_not() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell("mkdir -p a/b/c; for i in $(seq 3000); do : > a/file-with-some-name-$i; done; echo x > a/b/c/leaf; ln -s / a/b/root"))
        .code();
    let asks = [
        list("a", true, u64::MAX),
        list("a", false, u64::MAX),
        list("a", true, 10),
        list("a", true, 3004),
        list(".", false, 1),
    ];
    let served = client.batch(&work, &asks).whole();
    let paths = |item: usize| -> Vec<String> {
        let entries = served.items[item].entries();
        let paths = entries
            .iter()
            .map(|entry| String::from_utf8_lossy(entry.path.as_bytes()).into_owned());
        paths.collect()
    };
    let all = paths(0);
    assert_eq!(all.len(), 3004);
    let at = |path: &str| all.iter().position(|known| known == path).unwrap();
    assert!(at("b") < at("b/c") && at("b/c") < at("b/c/leaf"));
    assert!(at("b/root") > 0 && !all.iter().any(|path| path.starts_with("b/root/")));
    assert!(served.items[0].answers.len() > 10, "in parts");
    assert_eq!(paths(1).len(), 3001);
    assert_eq!(paths(2).len(), 10);
    let ends: Vec<Answer> = (0..5).map(|item| served.last(item)).collect();
    let truncated = [false, false, true, false, false];
    assert_eq!(
        ends,
        truncated.map(|truncated| Answer::Listed {
            truncated,
            closed: Vec::new(),
        })
    );
}

#[test]
fn a_measure_counts_a_subtree_and_stops_at_its_bounds() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .run(&shell("mkdir -p a/b; printf 12345 > a/f; printf 123 > a/b/g; ln -s / a/l; mkdir a/locked; chmod 0 a/locked"))
        .code();
    let asks = [
        measure("a/b", 4096, 1000),
        measure("a", 4096, 1000),
        measure("a", 2, 1000),
        measure("a", 4096, 1),
        measure("a/f", 1, 1),
        measure("none", 1, 1),
    ];
    let served = client.batch(&work, &asks).whole();
    let measured = |entries, bytes, more| Answer::Measured {
        entries,
        bytes,
        more,
    };
    assert_eq!(served.last(0), measured(1, 3, false));
    assert_eq!(served.last(1), measured(5, 8, true), "one is not readable");
    assert!(matches!(
        served.last(2),
        Answer::Measured {
            entries: 2,
            more: true,
            ..
        }
    ));
    assert!(matches!(
        served.last(3),
        Answer::Measured { more: true, .. }
    ));
    let not_directory = FileFault::NotDirectory {
        kind: FileKind::File,
    };
    assert_eq!(fault(served.last(4)), not_directory);
    assert_eq!(fault(served.last(5)), FileFault::Missing);
}

#[test]
fn a_hundred_files_and_many_megabytes_take_no_time_to_speak_of() {
    let Some(sandbox) = Sandbox::with(&Options {
        processes: 200,
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let small: Vec<Ask> = (0..100)
        .map(|i| write(format!("d/{i}"), b"some bytes\n"))
        .collect();
    let began = now();
    let served = client.batch(&work, &small).done();
    let (whole, inside) = (began.elapsed(), served.exit.wall_ms);
    let large = vec![0x5a; 64 << 20];
    let began = now();
    client.batch(&work, &[write("large", &large)]).done();
    let written = began.elapsed();
    let began = now();
    let served = client.batch(&work, &[read("large")]).done();
    eprintln!(
        "100 files: {whole:?}, {inside} ms inside; 64 MiB: in {written:?}, out {:?}; worker's peak {} KiB",
        began.elapsed(),
        served.exit.peak_memory / 1024
    );
    assert!(served.items[0].data == large);
    assert!(served.exit.peak_memory < 8 << 20, "the content is not held");
    assert!(whole < Duration::from_secs(10));
}

#[test]
fn a_path_may_lead_into_another_mount() {
    let Some(sandbox) = Sandbox::with(&Options {
        prepare: "mkdir WORK/tmp && mount -t tmpfs -o mode=1777 tmp WORK/tmp",
        ..Options::default()
    }) else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client.batch(&work, &[write("tmp/a/f", b"there")]).done();
    assert_eq!(client.run(&argv(&["cat", "tmp/a/f"])).text(), "there");
    let served = client
        .batch(&work, &[read("tmp/a/f"), list("tmp", true, 9)])
        .whole();
    assert_eq!(served.items[0].data, b"there");
    assert_eq!(served.items[1].entries().len(), 2);
    let answer = client.one(&work, crate::support::files::remove("tmp", true));
    // Not ours: the mount belongs to root.
    assert!(matches!(fault(answer), FileFault::Busy | FileFault::Denied));
}

#[test]
fn everything_is_the_guests_own() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client
        .batch(&work, &[write("d/f", b"x"), make("e", 0o750)])
        .done();
    let outside = sandbox.outside(&work);
    for (path, mode) in [("d", 0o755), ("d/f", 0o644), ("e", 0o750)] {
        let metadata = std::fs::metadata(outside.join(path)).unwrap();
        assert_eq!(metadata.uid(), client.hello.uid);
        assert_eq!(metadata.permissions().mode() & 0o7777, mode, "{path}");
    }
}
