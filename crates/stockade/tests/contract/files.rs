//! Files: paths, batches, sources, content that is set aside, and the tree of
//! the backend in memory.

use std::io::{self, Cursor, Seek, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use proptest::prelude::*;
use stockade::exec::{ExecStatus, NotStartedWhy};
use stockade::files::{EntryKind, FileContent, Spool};
use stockade::memory::{GuestFiles, MemoryBackend};
use stockade::spec::WorkDir;
use stockade::{
    Backend, Call, Content, Error, ErrorKind, ExecRequest, FileRead, FileWrite, GuestPath,
    ReadRequest, Refusal, ResourceLimits, Sandbox, TransferLimits, Which,
};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::{acquire, builder, call, key};

const MIB: usize = 1024 * 1024;

/// The code of a path's refusal.
fn code(path: impl AsRef<[u8]>) -> &'static str {
    let parsed = GuestPath::new(path);
    parsed.map_or_else(|refusal| refusal.code(), |_| "none")
}

fn path(text: &str) -> GuestPath {
    GuestPath::new(text).expect("the path is valid")
}

fn code_of(error: &Error) -> Option<&'static str> {
    error.refusal().map(Refusal::code)
}

// Paths.

#[test]
fn a_path_that_breaks_a_rule_is_refused_by_the_name_of_that_rule() {
    assert_eq!(code(""), "file_path_empty");
    assert_eq!(code("a\0b"), "file_path_nul");
    assert_eq!(code("a\\b"), "file_path_backslash");
    assert_eq!(code("/work/a"), "file_path_absolute");
    assert_eq!(code("a/../b"), "file_path_parent");
    assert_eq!(code(".."), "file_path_parent");
    // The first rule in the documented order counts.
    assert_eq!(code("/..\\\0"), "file_path_nul");
    assert_eq!(code("/..\\"), "file_path_backslash");
    assert_eq!(code("/../a"), "file_path_absolute");
}

#[test]
fn limits_of_paths_hold_at_their_edges() {
    assert_eq!(code("n".repeat(255)), "none");
    assert_eq!(code("n".repeat(256)), "file_name_too_long");
    assert_eq!(code(["d"; 64].join("/")), "none");
    assert_eq!(code(["d"; 65].join("/")), "file_path_too_deep");
    // 16 names of 255 bytes and their slashes are 4,095 bytes.
    let longest = vec!["n".repeat(255); 16].join("/");
    assert_eq!((longest.len(), code(&longest)), (4095, "none"));
    assert_eq!(code(format!("{longest}/")), "file_path_too_long");
    // Empty names and dots are dropped, and do not count as names.
    assert_eq!(code(format!("{}a", "./".repeat(2000))), "none");
}

#[test]
fn every_byte_but_three_may_be_in_a_name() {
    let all: Vec<u8> = (1..=u8::MAX)
        .filter(|byte| !b"/\\".contains(byte))
        .collect();
    let parsed = GuestPath::new(&all).unwrap();
    assert_eq!(parsed.name(), Some(all.as_slice()));
    for byte in all {
        assert_eq!(code([b'a', byte]), "none", "byte {byte:#x}");
    }
}

#[test]
fn what_only_spells_otherwise_is_one_path() {
    for spelling in ["a/b", "./a/b", "a//b", "a/./b/", ".//a/b/."] {
        assert_eq!(path(spelling), path("a/b"));
    }
    for spelling in [".", "./", ".//."] {
        assert!(path(spelling).is_work_dir());
        assert_eq!(path(spelling).as_bytes(), b".");
    }
}

#[test]
fn absolute_paths_are_taken_at_and_below_the_work_directory_only() {
    let spec = builder().work_dir("/srv/work").build().unwrap();
    let resolve = |text: &str| GuestPath::resolve(spec.work_dir(), text);
    assert_eq!(resolve("/srv/work/a/b").unwrap(), path("a/b"));
    assert_eq!(resolve("//srv/./work//a/").unwrap(), path("a"));
    assert!(resolve("/srv/work").unwrap().is_work_dir());
    assert_eq!(resolve("a").unwrap(), path("a"));
    for outside in ["/", "/srv", "/srv/work-outside/a", "/srv/workshop", "/etc"] {
        assert_eq!(resolve(outside).unwrap_err().code(), "file_path_outside");
    }
    for parent in ["/srv/work/../etc", "/../srv/work/a", "/etc/.."] {
        assert_eq!(resolve(parent).unwrap_err().code(), "file_path_parent");
    }
    let absolute = path("a/b").absolute(spec.work_dir());
    assert_eq!(absolute, b"/srv/work/a/b");
}

#[test]
fn a_path_knows_what_is_above_and_below_it() {
    let deep = path("a/b/c");
    assert_eq!(
        deep.ancestors().collect::<Vec<_>>(),
        [path("a"), path("a/b")]
    );
    assert_eq!(deep.parent(), Some(path("a/b")));
    assert_eq!(path("a").parent(), Some(GuestPath::work_dir()));
    assert_eq!(GuestPath::work_dir().parent(), None);
    assert!(deep.is_below(&path("a")) && deep.is_below(&GuestPath::work_dir()));
    assert!(!deep.is_below(&deep) && !path("ab").is_below(&path("a")));
    assert_eq!(path("a").join(&path("b/c")).unwrap(), deep);
    assert_eq!(path("a").join(&GuestPath::work_dir()).unwrap(), path("a"));
    let too_deep = path(&["d"; 40].join("/"));
    assert!(too_deep.join(&too_deep).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_a_path_panic_or_break_its_rules(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let Ok(parsed) = GuestPath::new(&bytes) else { return Ok(()) };
        for name in parsed.names() {
            prop_assert!(!name.is_empty() && name.len() <= 255);
            prop_assert!(name != b"." && name != b"..");
            prop_assert!(!name.iter().any(|byte| b"/\\\0".contains(byte)));
        }
        // Parsed once, it is the same for ever.
        prop_assert_eq!(&GuestPath::new(parsed.as_bytes()).unwrap(), &parsed);
        let absolute = parsed.absolute(&WorkDir::default());
        prop_assert_eq!(&GuestPath::resolve(&WorkDir::default(), absolute).unwrap(), &parsed);
        prop_assert!(!parsed.to_string().chars().any(char::is_control));
    }

    #[test]
    fn names_of_a_path_are_those_that_were_given(names in prop::collection::vec("[a-z .-]{1,12}", 1..20)) {
        let names: Vec<String> = names.into_iter().filter(|name| name != "." && name != "..").collect();
        prop_assume!(!names.is_empty());
        let parsed = GuestPath::new(names.join("/")).unwrap();
        let found: Vec<&[u8]> = parsed.names().collect();
        prop_assert_eq!(found, names.iter().map(String::as_bytes).collect::<Vec<_>>());
        prop_assert_eq!(parsed.ancestors().count(), names.len() - 1);
        for ancestor in parsed.ancestors() {
            prop_assert!(parsed.is_below(&ancestor));
        }
    }
}

// Batches and their limits.

/// A sandbox of these limits in both directions, and its files.
async fn limited(limits: TransferLimits) -> (Sandbox, GuestFiles) {
    let backend = MemoryBackend::new();
    let spec = builder()
        .files_in(limits)
        .files_out(limits)
        .build()
        .expect("the spec is valid");
    let sandbox = backend
        .acquire(&call(), &key(), &spec)
        .await
        .expect("it is served");
    let files = backend.files(sandbox.id()).expect("it is there");
    (sandbox, files)
}

async fn write(sandbox: &Sandbox, files: Vec<FileWrite>) -> Result<(), &'static str> {
    let written = sandbox.write_files(&call(), files).await;
    written.map_err(|error| code_of(&error).expect("a refusal"))
}

fn file(name: &str, size: usize) -> FileWrite {
    FileWrite::new(path(name), vec![b'x'; size])
}

#[tokio::test]
async fn limits_of_a_batch_hold_at_their_edges_and_nothing_moves_above_them() {
    let (sandbox, files) = limited(TransferLimits::new(10, 25, 3)).await;
    write(&sandbox, vec![file("a", 10), file("b", 10), file("c", 5)])
        .await
        .unwrap();
    for (batch, wanted) in [
        (vec![file("d", 1), file("e", 11)], "file_too_large"),
        (
            vec![file("d", 10), file("e", 10), file("f", 6)],
            "file_batch_too_large",
        ),
        (
            vec![file("d", 0), file("e", 0), file("f", 0), file("g", 0)],
            "file_too_many",
        ),
    ] {
        assert_eq!(write(&sandbox, batch).await, Err(wanted));
        assert_eq!(files.stat("d").unwrap(), None, "{wanted}");
    }
}

#[tokio::test]
async fn limits_of_a_read_hold_at_their_edges() {
    let (sandbox, files) = limited(TransferLimits::new(10, 25, 3)).await;
    for (name, size) in [("a", 10), ("b", 10), ("c", 5), ("d", 6), ("e", 11)] {
        files.write(name, vec![b'x'; size]).unwrap();
    }
    let read = async |names: &[&str]| {
        let request = ReadRequest::of(names.iter().map(|name| path(name)));
        let read = sandbox.read_files(&call(), request).await;
        read.map(|read| read.len())
            .map_err(|error| code_of(&error).expect("a refusal"))
    };
    assert_eq!(read(&["a", "b", "c"]).await, Ok(3));
    assert_eq!(read(&["a", "b", "d"]).await, Err("file_batch_too_large"));
    assert_eq!(read(&["e"]).await, Err("file_too_large"));
    assert_eq!(read(&["a", "b", "c", "d"]).await, Err("file_too_many"));
    // A request lowers the limit of a file, and never raises it.
    let request = |most| ReadRequest::new([FileRead::new(path("a")).max_bytes(most)]);
    assert!(sandbox.read_files(&call(), request(10)).await.is_ok());
    assert!(sandbox.read_files(&call(), request(9)).await.is_err());
    let raised = ReadRequest::new([FileRead::new(path("e")).max_bytes(u64::MAX)]);
    assert!(sandbox.read_files(&call(), raised).await.is_err());
}

#[tokio::test]
async fn a_batch_that_contradicts_itself_moves_nothing() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    let twice = vec![file("a", 1), file("./a", 1)];
    assert_eq!(write(&sandbox, twice).await, Err("file_duplicate"));
    // `a.b` sorts between `a` and `a/b`.
    let both = vec![file("a/b", 1), file("a.b", 1), file("a", 1)];
    assert_eq!(write(&sandbox, both).await, Err("file_also_directory"));
    let work_dir = vec![file("a", 1), file(".", 1)];
    assert_eq!(write(&sandbox, work_dir).await, Err("file_work_dir"));
    assert_eq!(files.stat("a").unwrap(), None);
    assert_eq!(files.stat("a.b").unwrap(), None);
    // A directory and what is in it is no contradiction.
    let tree = vec![file("t/f", 1), FileWrite::directory(path("t"))];
    write(&sandbox, tree).await.unwrap();
}

#[tokio::test]
async fn modes_are_masked_and_times_before_1970_are_1970() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    let before = UNIX_EPOCH - Duration::from_secs(60);
    let special = file("f", 1).mode(0o7777).modified(before);
    write(&sandbox, vec![special, file("g", 1)]).await.unwrap();
    let stat = files.stat("f").unwrap().unwrap();
    assert_eq!((stat.mode, stat.modified), (0o777, UNIX_EPOCH));
    let stat = files.stat("g").unwrap().unwrap();
    assert_eq!(stat.mode, 0o644);
    assert!(stat.modified > UNIX_EPOCH);
}

// Sources.

#[tokio::test]
async fn a_source_must_keep_the_size_that_it_said() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    for (said, wanted) in [(11, "file_source_short"), (9, "file_source_long")] {
        let source = Content::reader(said, Cursor::new(b"ten bytes."));
        let batch = vec![file("before", 1), FileWrite::new(path("f"), source)];
        assert_eq!(write(&sandbox, batch).await, Err(wanted));
        assert_eq!(files.stat("before").unwrap(), None);
    }
    // One that never ends is long, and is not read to the end of time.
    let endless = Content::reader(3, tokio::io::repeat(b'x'));
    let batch = vec![FileWrite::new(path("f"), endless)];
    assert_eq!(write(&sandbox, batch).await, Err("file_source_long"));
    let right = Content::reader(10, Cursor::new(b"ten bytes."));
    write(&sandbox, vec![FileWrite::new(path("f"), right)])
        .await
        .unwrap();
    assert_eq!(files.read("f").unwrap(), &b"ten bytes."[..]);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_gives_nothing_does_not_outlast_the_call() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    let (mute, _kept_open) = tokio::io::duplex(1);
    let brief = Call::with_timeout(Duration::from_secs(5));
    let error = sandbox
        .write_file(&brief, "f", Content::reader(1, mute))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.arrived(), None);
    assert_eq!(files.stat("f").unwrap(), None);
}

#[tokio::test]
async fn a_source_that_fails_is_named_with_its_reason() {
    struct Broken;
    impl AsyncRead for Broken {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::other("the disk is gone")))
        }
    }
    let (sandbox, _) = limited(TransferLimits::CEILING).await;
    let error = sandbox
        .write_file(&call(), "f", Content::reader(1, Broken))
        .await
        .unwrap_err();
    assert_eq!(code_of(&error), Some("file_source_unreadable"));
    assert!(error.to_string().contains("the disk is gone"), "{error}");
}

#[tokio::test]
async fn a_file_of_the_host_is_sent_and_a_directory_is_not() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    let mut source = tempfile::tempfile().unwrap();
    source.write_all(&vec![7; MIB + 1]).unwrap();
    source.rewind().unwrap();
    let batch = vec![FileWrite::new(path("f"), Content::File(source))];
    write(&sandbox, batch).await.unwrap();
    assert_eq!(files.read("f").unwrap(), vec![7; MIB + 1]);
    let directory = std::fs::File::open(std::env::temp_dir()).unwrap();
    let batch = vec![FileWrite::new(path("g"), Content::File(directory))];
    assert_eq!(write(&sandbox, batch).await, Err("file_source_not_regular"));
}

#[tokio::test]
async fn a_batch_of_sources_over_the_memory_of_a_spool_is_kept_apart() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    let batch = (0..5_u8).map(|number| {
        let content = vec![number; 300_000 + usize::from(number)];
        let source = Content::reader(content.len() as u64, Cursor::new(content));
        FileWrite::new(path(&number.to_string()), source)
    });
    write(&sandbox, batch.collect()).await.unwrap();
    for number in 0..5_u8 {
        let wanted = vec![number; 300_000 + usize::from(number)];
        assert!(
            files.read(number.to_string()).unwrap() == wanted,
            "{number}"
        );
    }
}

// Content.

/// Content of these bytes, taken in by pieces.
async fn spooled(bytes: &[u8], piece: usize) -> FileContent {
    let mut spool = Spool::new();
    for piece in bytes.chunks(piece) {
        spool.push(piece).await.expect("there is room");
    }
    assert_eq!(spool.len(), bytes.len() as u64);
    let kept = spool.finish().await.expect("there is room");
    kept.part(0, bytes.len() as u64)
}

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn content_is_the_same_whole_by_range_and_as_a_stream() {
    for size in [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 17] {
        let bytes = pattern(size);
        let content = spooled(&bytes, 100_003).await;
        assert_eq!(
            (content.len(), content.is_empty()),
            (size as u64, size == 0)
        );
        assert!(content.to_bytes().await.unwrap() == bytes, "{size} whole");
        let mut copied = Vec::new();
        content.copy_to(&mut copied).await.unwrap();
        assert!(copied == bytes, "{size} copied");
        let mut streamed = Vec::new();
        content.reader().read_to_end(&mut streamed).await.unwrap();
        assert!(streamed == bytes, "{size} streamed");
        let end = content.read_at(size as u64, 10).await.unwrap();
        assert!(end.is_empty(), "{size} at its end");
        let beyond = content.read_at(u64::MAX, 10).await.unwrap();
        assert!(beyond.is_empty(), "{size} beyond its end");
    }
}

#[tokio::test]
async fn parts_of_a_spool_do_not_show_each_other() {
    for size in [1000, 2 * MIB] {
        let mut spool = Spool::new();
        spool.push(&vec![1; size]).await.unwrap();
        spool.push(&vec![2; size]).await.unwrap();
        let kept = spool.finish().await.unwrap();
        let second = kept.part(size as u64, size as u64);
        assert!(second.to_bytes().await.unwrap() == vec![2; size]);
        let first = kept.part(0, size as u64);
        let last = first.read_at(size as u64 - 1, 10).await.unwrap();
        assert_eq!(last, &[1][..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_range_of_content_is_that_range(start in 0..2_200_000_u64, most in 0..300_000_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let bytes = pattern(2 * MIB);
            for content in [FileContent::from_bytes(bytes.clone().into()), spooled(&bytes, MIB).await] {
                let read = content.read_at(start, most).await.unwrap();
                let start = usize::try_from(start).unwrap().min(bytes.len());
                let end = start.saturating_add(most).min(bytes.len());
                // A file may give less at a time, but never nothing before its end.
                prop_assert!(bytes[start..end].starts_with(&read));
                prop_assert_eq!(read.is_empty(), start == end);
            }
            Ok(())
        })?;
    }
}

#[test]
fn content_is_never_shown() {
    let shown = format!(
        "{:?} {:?} {:?}",
        Content::from("secret"),
        FileContent::from_bytes("secret".into()),
        FileWrite::new(path("f"), "secret")
    );
    assert!(!shown.contains("secret"), "{shown}");
}

// The tree of the backend in memory.

#[tokio::test]
async fn a_program_sees_what_the_host_wrote_and_the_host_what_it_made() {
    let backend = MemoryBackend::new().with_program("double", async |mut guest| {
        let given = guest.files().read("in.txt").expect("it was written");
        guest.print(&given).await;
        let made = guest.files().write("out/made.txt", given.repeat(2));
        i32::from(made.is_err())
    });
    let sandbox = acquire(&backend).await;
    sandbox
        .write_file(&call(), "sub/in.txt", "ab")
        .await
        .unwrap();
    sandbox
        .write_files(&call(), vec![FileWrite::directory(path("sub/out"))])
        .await
        .unwrap();
    let request = ExecRequest::argv(["double"]).cwd("sub").build().unwrap();
    let outcome = sandbox.exec(&call(), request).await.unwrap();
    assert_eq!((outcome.code(), &outcome.stdout[..]), (Some(0), &b"ab"[..]));
    let read = sandbox.read_file(&call(), "sub/out/made.txt").await;
    assert_eq!(read.unwrap(), &b"abab"[..]);
}

#[tokio::test]
async fn a_command_in_a_directory_that_is_missing_never_runs() {
    let backend = MemoryBackend::new().with_program("true", async |_| 0);
    let sandbox = acquire(&backend).await;
    for cwd in ["missing", "/missing", "/etc/passwd"] {
        let request = ExecRequest::argv(["true"]).cwd(cwd).build().unwrap();
        let status = sandbox.exec(&call(), request).await.unwrap().status;
        assert!(
            matches!(status, ExecStatus::NotStarted(not) if not.why == NotStartedWhy::WorkingDirectory),
            "{cwd}: {status}"
        );
    }
}

#[tokio::test]
async fn a_guest_follows_links_as_a_kernel_does() {
    let (_, files) = limited(TransferLimits::CEILING).await;
    files.make_directories("/outside/deep").unwrap();
    files.symlink("/outside/deep", "link").unwrap();
    files.write("link/escaped", &b"out"[..]).unwrap();
    assert_eq!(files.read("/outside/deep/escaped").unwrap(), &b"out"[..]);
    files
        .symlink("../outside/deep/escaped", "relative")
        .unwrap();
    assert_eq!(files.read("relative").unwrap(), &b"out"[..]);
    files.symlink("/outside/new", "dangling").unwrap();
    files.write("dangling", &b"new"[..]).unwrap();
    assert_eq!(files.read("/outside/new").unwrap(), &b"new"[..]);
    files.symlink("loop", "loop").unwrap();
    let error = files.read("loop").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(40), "{error}");
    let kind = files.stat("link").unwrap().unwrap().kind;
    assert_eq!(kind, EntryKind::Link, "a look follows nothing at the end");
}

#[tokio::test]
async fn a_guest_has_its_own_rights_and_no_others() {
    let (_, files) = limited(TransferLimits::CEILING).await;
    let denied = |done: io::Result<()>| {
        let kind = done.map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::PermissionDenied));
    };
    denied(files.write("/etc/new", Bytes::new()));
    denied(files.write("/etc/passwd", Bytes::new()));
    denied(files.remove_file("/etc/passwd"));
    denied(files.set_mode("/etc/passwd", 0o777));
    assert!(files.remove_tree("/work").is_err(), "it is mounted");
    let host = files.clone().as_host();
    host.write("hosts", &b"only"[..]).unwrap();
    host.set_mode("hosts", 0o600).unwrap();
    denied(files.read("hosts").map(drop));
    // It is in the guest's own directory, so it can be removed.
    files.remove_file("hosts").unwrap();
}

#[tokio::test]
async fn a_work_directory_is_bounded_in_bytes_and_in_files() {
    let backend = MemoryBackend::new();
    let mut limits = ResourceLimits::default();
    limits.work_bytes = 1024 * 1024;
    limits.work_inodes = 8;
    let spec = builder().limits(limits).build().unwrap();
    let sandbox = backend.acquire(&call(), &key(), &spec).await.unwrap();
    let files = backend.files(sandbox.id()).unwrap();
    let batch = vec![file("a", 1000), file("b", MIB), file("c", 1)];
    let error = sandbox.write_files(&call(), batch).await.unwrap_err();
    assert_eq!(
        (error.kind(), code_of(&error)),
        (ErrorKind::LimitExceeded, Some("file_no_space"))
    );
    let arrived = error.arrived().unwrap();
    assert_eq!(arrived.whole, [path("a")]);
    assert!(arrived.partial.is_empty() && arrived.unknown.is_empty());
    assert!(files.stat("b").unwrap().is_none() && files.stat("c").unwrap().is_none());
    assert!(error.to_string().contains("arrived whole: a"), "{error}");
    // What is removed gives its space back.
    assert_eq!(
        (files.free_bytes(), files.free_inodes()),
        (MIB as u64 - 4096, 7)
    );
    files.write("big", vec![0; MIB - 4096]).unwrap();
    assert_eq!(files.free_bytes(), 0);
    sandbox.remove(&call(), "big", false).await.unwrap();
    assert_eq!(
        (files.free_bytes(), files.free_inodes()),
        (MIB as u64 - 4096, 7)
    );
    for number in 0..7 {
        files.write(number.to_string(), Bytes::new()).unwrap();
    }
    assert!(files.write("7", Bytes::new()).is_err());
    // Another content of a file takes no other file.
    files.write("6", &b"again"[..]).unwrap();
    let error = sandbox.write_file(&call(), "8", "").await.unwrap_err();
    assert_eq!(code_of(&error), Some("file_no_space"));
    // What is outside does not count.
    files.write("/outside/large", vec![0; 2 * MIB]).unwrap();
}

#[tokio::test]
async fn files_of_a_sandbox_that_is_gone_are_lost() {
    let backend = MemoryBackend::new();
    let sandbox = acquire(&backend).await;
    let disposed = backend.dispose(&call(), &key(), Which::All).await.unwrap();
    assert_eq!(disposed.count, 1);
    let lost = |error: Error| assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    let call = call();
    lost(sandbox.write_file(&call, "f", "x").await.unwrap_err());
    lost(sandbox.read_file(&call, "f").await.unwrap_err());
    lost(sandbox.stat(&call, "f").await.unwrap_err());
    lost(sandbox.remove(&call, "f", true).await.unwrap_err());
    lost(sandbox.reclaim(&call, "f").await.unwrap_err());
    assert!(backend.files(sandbox.id()).is_none());
}

#[tokio::test]
async fn a_call_that_is_over_moves_nothing() {
    let (sandbox, files) = limited(TransferLimits::CEILING).await;
    files.write("f", &b"kept"[..]).unwrap();
    let over = call();
    over.cancel();
    let ended = |error: Error| assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    ended(sandbox.write_file(&over, "f", "x").await.unwrap_err());
    ended(sandbox.read_file(&over, "f").await.unwrap_err());
    ended(sandbox.stat(&over, "f").await.unwrap_err());
    ended(sandbox.remove(&over, "f", true).await.unwrap_err());
    ended(sandbox.reclaim(&over, "f").await.unwrap_err());
    assert_eq!(files.read("f").unwrap(), &b"kept"[..]);
}
