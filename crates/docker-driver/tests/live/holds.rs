//! Holds of containers of a real engine, and copies within them.

use std::time::Duration;

use bytes::Bytes;
use docker_driver::stand_in::until;
use docker_driver::tar::{self, Decoder, Event, ModifiedAt, NewEntry, NewEntryKind};
use docker_driver::{
    Bounds, CallError, CallErrorKind, ContainerEvent, ContainerId, ContainerPath, Hold,
    HoldRequest, InspectContainer, KillContainer, Mount, PauseContainer, RemoveContainer,
    RunDetached, Signal, TmpfsVolume, UnpauseContainer,
};
use futures_util::future::join_all;
use rustix::process::{Pid, Signal as Kill, kill_process};

use crate::support::{Bench, path};

/// A file's header, body and padding.
pub(crate) fn file(name: &[u8], body: &[u8]) -> Bytes {
    let size = body.len() as u64;
    let entry = NewEntry {
        path: name.to_vec(),
        kind: NewEntryKind::File,
        size,
        mode: 0o640,
        uid: 12,
        gid: 34,
        modified: ModifiedAt {
            seconds: 1_700_000_000,
            nanos: 0,
        },
    };
    let header = tar::encode_header(&entry).unwrap();
    [&header[..], body, tar::padding(size)].concat().into()
}

async fn hold(bench: &Bench, container: &ContainerId) -> Result<Hold, CallError> {
    let request = HoldRequest::new(container.clone());
    bench.docker.hold(&Bounds::patient(), request).await
}

async fn copy_in(hold: &Hold, directory: &str, parts: &[Bytes]) -> Result<(), CallError> {
    let mut copy = hold.copy_in(&path(directory)).await?;
    for part in parts {
        copy.write(part.clone()).await?;
    }
    copy.write(Bytes::from_static(tar::END)).await?;
    copy.finish().await
}

/// The names and bodies at a path.
async fn copy_out(hold: &Hold, from: &ContainerPath) -> Result<Vec<(Vec<u8>, Vec<u8>)>, CallError> {
    let mut copy = hold.copy_out(from).await?;
    let mut decoder = Decoder::new();
    let mut files: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while let Some(bytes) = copy.next().await? {
        decoder.feed(bytes);
        while let Some(event) = decoder.next().unwrap() {
            match event {
                Event::Entry(entry) => files.push((entry.path, Vec::new())),
                Event::Data(data) => files.last_mut().unwrap().1.extend_from_slice(&data),
                _ => {}
            }
        }
    }
    copy.finish().await?;
    decoder.finish().unwrap();
    Ok(files)
}

pub(crate) async fn status(bench: &Bench, container: &ContainerId) -> String {
    let inspect = InspectContainer::new(container);
    let facts = bench.docker.query(&Bounds::patient(), inspect).await;
    facts.unwrap().unwrap().state.status
}

#[tokio::test]
async fn a_held_container_is_paused_until_it_is_released_and_each_process_counts_once() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let before = bench.docker.log().counts();
    let hold = hold(&bench, &container).await.unwrap();
    assert!(hold.is_in_force());
    assert!(hold.remaining() > Duration::from_secs(10));
    assert_eq!(status(&bench, &container).await, "paused");
    let names: [&[u8]; 5] = [
        b"plain",
        b"\xff\xfe not text",
        "na\u{ef}ve-\u{65e5}\u{672c}\u{8a9e}.txt".as_bytes(),
        b"-dash, :colon, \\back\nand line",
        &[b'n'; 255],
    ];
    let body = vec![b'x'; 300_000];
    let files: Vec<_> = names.iter().map(|name| file(name, &body)).collect();
    copy_in(&hold, "/tmp", &files).await.unwrap();
    for name in names {
        let from = ContainerPath::from_bytes([b"/tmp/", name].concat()).unwrap();
        let found = copy_out(&hold, &from).await.unwrap();
        assert!(found == [(name.to_vec(), body.clone())], "{name:?}");
    }
    assert!(hold.is_in_force());
    hold.release().await.unwrap();
    assert_eq!(status(&bench, &container).await, "running");
    let counts = bench.docker.log().counts().since(&before);
    let of = |verb| counts.of(verb);
    assert_eq!(
        (of("pause"), of("cp in"), of("cp out"), of("unpause")),
        (1, 1, 5, 1)
    );
    assert_eq!(counts.total(), 10, "two were ours: {counts:?}");
    bench.finish().await;
}

#[tokio::test]
async fn a_copy_says_what_is_wrong_by_its_kind_and_keeps_dockers_words() {
    let bench = Bench::new().await;
    let volume = TmpfsVolume {
        path: path("/small"),
        bytes: 1 << 20,
        inodes: 100,
        owner: None,
        mode: 0o777,
        labels: vec![bench.label()],
    };
    let options = bench
        .options()
        .read_only()
        .mounts([Mount::tmpfs_volume(volume)])
        .program("sleep", ["1000"]);
    let run = RunDetached(options);
    let container = bench.docker.mutate(&Bounds::patient(), run).await.unwrap();
    let hold = hold(&bench, &container).await.unwrap();
    let before = bench.docker.log().counts();
    for missing in ["/nope", "/nope/deep", "/etc/passwd/x"] {
        let error = copy_out(&hold, &path(missing)).await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::NoSuchPath, "{error:?}");
        assert!(!error.detail().is_empty());
    }
    // What is certain costs no question.
    assert_eq!(bench.docker.log().counts().since(&before).total(), 3);
    let small = [file(b"a", b"x")];
    for (directory, kind) in [
        ("/nope", CallErrorKind::NotADirectory),
        ("/etc/passwd", CallErrorKind::NotADirectory),
        ("/etc", CallErrorKind::ReadOnly),
    ] {
        let error = copy_in(&hold, directory, &small).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
    }
    let large = [file(b"a", b"x"), file(b"b", &vec![b'x'; 3 << 20])];
    let error = copy_in(&hold, "/small", &large).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::DiskFull, "{error:?}");
    let garbage = [Bytes::from_static(&[b'x'; 2048])];
    let error = copy_in(&hold, "/small", &garbage).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TarRefused, "{error:?}");
    hold.release().await.unwrap();
    bench.finish().await;
}

#[tokio::test]
async fn a_stopped_copy_has_given_its_first_bytes_and_leaves_nothing() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let hold = hold(&bench, &container).await.unwrap();
    let mut copy = hold.copy_out(&path("/usr")).await.unwrap();
    let mut decoder = Decoder::new();
    decoder.feed(copy.next().await.unwrap().unwrap());
    let Ok(Some(Event::Entry(entry))) = decoder.next() else {
        panic!("no entry");
    };
    assert_eq!(entry.path, b"usr/");
    copy.stop().await.unwrap();
    hold.release().await.unwrap();
    assert_eq!(status(&bench, &container).await, "running");
    bench.finish().await;
}

#[tokio::test]
async fn one_of_many_who_want_a_container_holds_it_and_the_others_are_told() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let holds = join_all((0..8).map(|_| hold(&bench, &container))).await;
    let (held, refused): (Vec<_>, Vec<_>) = holds.into_iter().partition(Result::is_ok);
    assert_eq!(held.len(), 1);
    for error in refused {
        assert_eq!(error.unwrap_err().kind(), CallErrorKind::AlreadyPaused);
    }
    let held = held.into_iter().next().unwrap().unwrap();
    assert_eq!(status(&bench, &container).await, "paused");
    held.release().await.unwrap();
    hold(&bench, &container)
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    bench.finish().await;
}

#[tokio::test]
async fn a_dropped_hold_is_thawed_and_waited_for() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let hold = hold(&bench, &container).await.unwrap();
    let mut copy = hold.copy_in(&path("/tmp")).await.unwrap();
    copy.write(file(b"a", b"x")).await.unwrap();
    drop(copy);
    drop(hold);
    let settled = bench.docker.settle(Bounds::patient().deadline).await;
    assert_eq!((settled.unfinished, settled.failed), (0, vec![]));
    assert_eq!(status(&bench, &container).await, "running");
    bench.finish().await;
}

#[tokio::test]
async fn a_container_that_goes_while_it_is_held_is_told_by_its_kind() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let container = bench.running().await;
    let held = hold(&bench, &container).await.unwrap();
    let kill = KillContainer::new(&container, Signal::Kill);
    bench.docker.mutate(&bounds, kill).await.unwrap();
    let _ = held.release().await;
    let error = hold(&bench, &container).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotRunning);

    let container = bench.running().await;
    let held = hold(&bench, &container).await.unwrap();
    let remove = RemoveContainer::new(&container);
    bench.docker.mutate(&bounds, remove).await.unwrap();
    let error = copy_out(&held, &path("/etc/passwd")).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer, "{error:?}");
    let error = copy_in(&held, "/tmp", &[]).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer, "{error:?}");
    let error = held.release().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer);
    let error = hold(&bench, &container).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer);
    bench.finish().await;
}

#[tokio::test]
async fn a_killed_guard_ends_the_hold_and_the_container_is_thawed_without_it() {
    let bench = Bench::new().await;
    let container = bench.running().await;
    let hold = hold(&bench, &container).await.unwrap();
    let mut copy = hold.copy_in(&path("/tmp")).await.unwrap();
    let pid = Pid::from_raw(guard_of(&container)).unwrap();
    kill_process(pid, Kill::KILL).unwrap();
    until("the end of the hold", || !hold.is_in_force()).await;
    let error = copy.write(file(b"a", b"x")).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::HoldEnded);
    drop(copy);
    let error = hold.copy_out(&path("/etc")).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::HoldEnded);
    hold.release().await.unwrap();
    assert_eq!(status(&bench, &container).await, "running");
    bench.finish().await;
}

/// The process that holds a container.
fn guard_of(container: &ContainerId) -> i32 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_guard = |number: &i32| {
        let read = |what| std::fs::read(format!("/proc/{number}/{what}")).unwrap_or_default();
        let words = read("cmdline");
        let mut words = words.split(|byte| *byte == 0);
        let is_shell = words.next() == Some(b"/bin/sh");
        // The group is the third field behind the name.
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let leads = fields.split_whitespace().nth(2) == Some(&number.to_string());
        is_shell && leads && words.any(|word| word == container.as_str().as_bytes())
    };
    numbers.find(is_guard).unwrap()
}

#[tokio::test]
async fn what_happens_to_a_container_is_seen_from_the_moment_that_its_events_are_open() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let container = bench.running().await;
    let mut events = bench.docker.events(&bounds, &container).await.unwrap();
    bench
        .docker
        .mutate(&bounds, PauseContainer::new(&container))
        .await
        .unwrap();
    // Of a paused one they can be opened too.
    let mut others = bench.docker.events(&bounds, &container).await.unwrap();
    bench
        .docker
        .mutate(&bounds, UnpauseContainer::new(&container))
        .await
        .unwrap();
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Paused);
    assert_eq!(events.next().await.unwrap(), ContainerEvent::Unpaused);
    assert_eq!(others.next().await.unwrap(), ContainerEvent::Unpaused);
    let gone = ContainerId::new("0".repeat(64)).unwrap();
    let error = bench.docker.events(&bounds, &gone).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer);
    drop((events, others));
    bench.finish().await;
}
