//! Containers of a real engine, from their making to their removal.

use docker_driver::{
    Bounds, CallErrorKind, CopyIn, CreateContainer, CreateVolume, CreationMark, EnvVar, ExecStream,
    Exit, InspectContainer, InspectVolume, KillContainer, Label, ListContainers, Mount,
    PauseContainer, Removal, RemoveContainer, RemoveVolume, RunForeground, Signal, StartContainer,
    TmpfsVolume, UnpauseContainer, User,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Bench, path, unique};

/// Runs a Python program and gives what it printed.
async fn python(bench: &Bench, options: docker_driver::RunOptions, program: &str) -> String {
    let options = options.program("python3", ["-c", program]).remove_at_end();
    let run = RunForeground::new(options, 1024 * 1024);
    let output = bench.docker.mutate(&Bounds::patient(), run).await.unwrap();
    assert_eq!(output.code, 0, "{output:?}");
    String::from_utf8(output.stdout.to_vec()).unwrap()
}

#[tokio::test]
async fn every_option_has_its_effect() {
    let bench = Bench::new().await;
    let volume = bench.volume_name();
    let options = bench
        .options()
        .user(User {
            uid: 1234,
            gid: 567,
        })
        .groups([89])
        .work_dir(path("/work"))
        .hostname(docker_driver::ContainerName::new("inside").unwrap())
        .read_only()
        .memory_without_swap(256 << 20)
        .milli_cpus(500)
        .pids(64)
        .shm_bytes(1 << 20)
        .open_files(512, 1024)
        .core_bytes(0)
        .mounts([
            Mount::volume(volume.clone(), path("/volume, \"quoted\"")).read_only(),
            Mount::tmpfs(path("/tmp"), 2 << 20, 0o1777),
            Mount::tmpfs_volume(TmpfsVolume {
                path: path("/work"),
                bytes: 4 << 20,
                inodes: 100,
                owner: Some((1234, 567)),
                mode: 0o700,
                labels: vec![Label::new("said", "a, \"b\" = c").unwrap(), bench.label()],
            }),
        ]);
    let program = r#"
import json, os, resource, socket, stat
def size(path):
    s = os.statvfs(path); return s.f_blocks * s.f_frsize
def writable(path):
    try: open(path + "/x", "w").close(); return True
    except OSError: return False
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
work = os.stat("/work")
print(json.dumps({
    "user": [os.getuid(), os.getgid(), sorted(os.getgroups())],
    "cwd": os.getcwd(),
    "host": socket.gethostname(),
    "net": sorted(os.listdir("/sys/class/net")),
    "sizes": [size("/work"), size("/tmp"), size("/dev/shm")],
    "inodes": os.statvfs("/work").f_files,
    "work": [work.st_uid, work.st_gid, stat.S_IMODE(work.st_mode)],
    "writable": [writable(p) for p in ["/", "/work", "/tmp", '/volume, "quoted"']],
    "limits": [resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE)],
    "caps": [status["CapEff"], status["CapBnd"]],
    "no_new_privs": status["NoNewPrivs"],
    "pid": os.getpid(),
}))
"#;
    let found: serde_json::Value =
        serde_json::from_str(&python(&bench, options, program).await).unwrap();
    let expected = serde_json::json!({
        "user": [1234, 567, [89, 567]],
        "cwd": "/work",
        "host": "inside",
        "net": ["lo"],
        "sizes": [4 << 20, 2 << 20, 1 << 20],
        "inodes": 100,
        "work": [1234, 567, 0o700],
        "writable": [false, true, true, false],
        "limits": [[512, 1024], [0, 0]],
        "caps": ["0000000000000000", "0000000000000000"],
        "no_new_privs": "1",
        "pid": 1,
    });
    assert_eq!(found, expected);
    let removed = bench
        .docker
        .mutate(&Bounds::patient(), RemoveVolume::new(volume))
        .await
        .unwrap();
    assert_eq!(removed, Removal::Removed);
    assert_eq!(bench.containers().await, 0);
    bench.finish().await;
}

#[tokio::test]
async fn the_environment_arrives_exactly_by_both_roads() {
    let bench = Bench::new().await;
    let longest = "x".repeat(64 * 1024 - 2 - "NO_PROXY=".len());
    let pairs = [
        ("PLAIN", "value"),
        ("EMPTY", ""),
        ("QUOTED", "a=b \"c\" 'd' $HOME `x` # \\"),
        ("LINES", "one\ntwo\r\n"),
        ("UNICODE", "\u{e9}\u{1f980}"),
        ("DOCKER_HOST", "tcp://evil.example:1"),
        ("HTTP_PROXY", " #http://proxy \"quoted\" "),
        ("http_proxy", ""),
        ("NO_PROXY", &longest),
    ];
    let variables = pairs.map(|(name, value)| EnvVar::new(name, value).unwrap());
    let names = pairs.map(|(name, _)| name);
    let program =
        format!("import json, os; print(json.dumps([os.environ.get(n) for n in {names:?}]))");
    let options = bench.options().environment(variables);
    let printed = python(&bench, options, &program).await;
    let found: Vec<Option<String>> = serde_json::from_str(&printed).unwrap();
    for ((name, value), found) in pairs.iter().zip(found) {
        assert_eq!(found.as_deref(), Some(*value), "{name}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_container_is_made_filled_started_looked_at_and_removed() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let options = bench.options().program("sleep", ["1000"]);
    let name = options.name().clone();
    let id = bench
        .docker
        .mutate(&bounds, CreateContainer(options.clone()))
        .await
        .unwrap();
    let look = || bench.docker.query(&bounds, InspectContainer::new(&id));
    let made = look().await.unwrap().unwrap();
    assert_eq!(
        (made.name.as_str(), made.state.status.as_str()),
        (name.as_str(), "created")
    );
    assert_eq!(made.labels[bench.label().key()], bench.label().value());
    let conflict = bench
        .docker
        .mutate(&bounds, CreateContainer(options))
        .await
        .unwrap_err();
    assert_eq!(conflict.kind(), CallErrorKind::NameConflict);
    // An empty archive: two blocks of zeros.
    let tar = bytes::Bytes::from(vec![0; 1024]);
    bench
        .docker
        .mutate(&bounds, CopyIn::new(&id, path("/tmp"), tar.clone()))
        .await
        .unwrap();
    let absent = bench
        .docker
        .mutate(&bounds, CopyIn::new(bench.name(), path("/tmp"), tar))
        .await;
    assert_eq!(absent.unwrap_err().kind(), CallErrorKind::NoSuchContainer);
    bench
        .docker
        .mutate(&bounds, StartContainer::new(&id))
        .await
        .unwrap();
    bench
        .docker
        .mutate(&bounds, StartContainer::new(&id))
        .await
        .unwrap();
    assert!(look().await.unwrap().unwrap().state.running);
    let list = ListContainers::labelled([bench.label()]).only(&name);
    let rows = bench.docker.query(&bounds, list).await.unwrap();
    assert_eq!(
        (&rows[0].id, rows[0].state.as_str(), rows.len()),
        (&id, "running", 1)
    );
    for expected in [Removal::Removed, Removal::Absent] {
        let removal = bench
            .docker
            .mutate(&bounds, RemoveContainer::new(&name))
            .await
            .unwrap();
        assert_eq!(removal, expected);
    }
    assert_eq!(look().await.unwrap(), None);
    bench.finish().await;
}

#[tokio::test]
async fn pausing_is_exclusive_and_signals_arrive() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let id = bench.running().await;
    bench
        .docker
        .mutate(&bounds, PauseContainer::new(&id))
        .await
        .unwrap();
    let second = bench
        .docker
        .mutate(&bounds, PauseContainer::new(&id))
        .await
        .unwrap_err();
    assert_eq!(second.kind(), CallErrorKind::AlreadyPaused);
    let state = bench
        .docker
        .query(&bounds, InspectContainer::new(&id))
        .await
        .unwrap()
        .unwrap()
        .state;
    assert!(state.paused && state.running);
    bench
        .docker
        .mutate(&bounds, UnpauseContainer::new(&id))
        .await
        .unwrap();
    let second = bench
        .docker
        .mutate(&bounds, UnpauseContainer::new(&id))
        .await
        .unwrap_err();
    assert_eq!(second.kind(), CallErrorKind::NotPaused);
    bench
        .docker
        .mutate(&bounds, KillContainer::new(&id, Signal::Kill))
        .await
        .unwrap();
    let late = bench
        .docker
        .mutate(&bounds, KillContainer::new(&id, Signal::Kill))
        .await
        .unwrap_err();
    assert_eq!(late.kind(), CallErrorKind::NotRunning);
    let state = bench
        .docker
        .query(&bounds, InspectContainer::new(&id))
        .await
        .unwrap()
        .unwrap()
        .state;
    assert_eq!((state.running, state.exit_code), (false, 137));
    let absent = KillContainer::new(bench.name(), Signal::Kill);
    let error = bench.docker.mutate(&bounds, absent).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NoSuchContainer);
    bench.finish().await;
}

#[tokio::test]
async fn a_stream_carries_bytes_both_ways_and_tells_why_it_ended() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let id = bench.running().await;
    let cat = ExecStream::new(&id, "cat", [""; 0]);
    let (mut input, mut output, mut control) = bench
        .docker
        .open_stream(&bounds, cat)
        .await
        .unwrap()
        .split();
    let sent: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let write = async {
        input.write_all(&sent).await.unwrap();
        input.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let ((), read) = tokio::join!(write, output.read_to_end(&mut received));
    read.unwrap();
    assert!(received == sent);
    assert_eq!(control.wait().await.exit, Exit::Code(0));
    let absent = ExecStream::new(bench.name(), "cat", [""; 0]);
    let (_, _, mut control) = bench
        .docker
        .open_stream(&bounds, absent)
        .await
        .unwrap()
        .split();
    assert_eq!(
        control.wait().await.complaint(),
        Some(CallErrorKind::NoSuchContainer)
    );
    bench.finish().await;
}

#[tokio::test]
async fn volumes_are_made_looked_at_and_removed_unless_they_are_in_use() {
    let bench = Bench::new().await;
    let bounds = Bounds::patient();
    let name = bench.volume_name();
    let mark = CreationMark::new(Label::new("docker-driver.mark", unique()).unwrap());
    let create = CreateVolume::new(name.clone(), mark).labels([bench.label()]);
    bench.docker.mutate(&bounds, create).await.unwrap();
    let found = bench
        .docker
        .query(&bounds, InspectVolume::new(name.clone()))
        .await
        .unwrap();
    assert_eq!(
        found.unwrap().labels[bench.label().key()],
        bench.label().value()
    );
    let user = bench
        .options()
        .mounts([Mount::volume(name.clone(), path("/v"))]);
    let id = bench
        .docker
        .mutate(&bounds, CreateContainer(user))
        .await
        .unwrap();
    let error = bench
        .docker
        .mutate(&bounds, RemoveVolume::new(name.clone()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::VolumeInUse);
    bench
        .docker
        .mutate(&bounds, RemoveContainer::new(&id))
        .await
        .unwrap();
    for expected in [Removal::Removed, Removal::Absent] {
        let removal = bench
            .docker
            .mutate(&bounds, RemoveVolume::new(name.clone()))
            .await
            .unwrap();
        assert_eq!(removal, expected);
    }
    assert_eq!(
        bench
            .docker
            .query(&bounds, InspectVolume::new(name))
            .await
            .unwrap(),
        None
    );
    bench.finish().await;
}
