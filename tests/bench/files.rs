//! Files in and out, in both planes, beside the bare commands.

use std::process::Command;

use stockade::{Backend as _, SandboxKey, Which};
use stockade_docker::FilePlane;
use stockade_tests::engine::{Host, call, docker_ok, unique};
use stockade_tests::files::{batch, request, roomy};

use crate::ROUNDS;
use crate::series::{Series, row, timed, timed_command};

/// Bytes of a small file.
const SMALL: usize = 1000;

/// Bytes of a large one.
const LARGE: usize = 64 << 20;

/// How often large files are measured.
const LARGE_ROUNDS: usize = 5;

/// What bare docker needs for the same.
#[derive(Default)]
struct Floor {
    one_in: Series,
    many_in: Series,
    one_out: Series,
    many_out: Series,
    large_in: Series,
    large_out: Series,
}

/// What a plane needs.
#[derive(Default)]
struct Plane {
    one_in: Series,
    many_in: Series,
    one_out: Series,
    many_out: Series,
    large_in: Series,
    large_out: Series,
}

pub(crate) async fn measure() {
    let tar = Host::with(|config| config.file_plane(FilePlane::Tar)).await;
    let guest = Host::with(|config| config.file_plane(FilePlane::Guest)).await;
    let key = SandboxKey::new("bench", unique("bench"), "agent").with_call("1");
    let spec = roomy().build().expect("the spec is valid");
    let in_tar = tar.backend.acquire(&call(), &key, &spec).await;
    let in_tar = in_tar.expect("a sandbox");
    let in_guest = guest.backend.acquire(&call(), &key, &spec).await;
    let in_guest = in_guest.expect("a sandbox");
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Sources::make(&folder);
    let (mut by_tar, mut by_guest, mut floor) =
        (Plane::default(), Plane::default(), Floor::default());
    let container = in_tar.id().as_str();
    for _ in 0..ROUNDS {
        small(&in_tar, &mut by_tar).await;
        small(&in_guest, &mut by_guest).await;
        sources.small(container, &mut floor);
    }
    for _ in 0..LARGE_ROUNDS {
        large(&in_tar, &mut by_tar).await;
        large(&in_guest, &mut by_guest).await;
        sources.large(container, &mut floor);
    }
    print(&by_tar, &by_guest, &floor);
    drop((in_tar, in_guest));
    for host in [tar, guest] {
        let _ = host.backend.dispose(&call(), &key, Which::All).await;
        host.finish().await;
    }
}

async fn small(sandbox: &stockade::Sandbox, plane: &mut Plane) {
    let call = call();
    let write = sandbox.write_files(&call, batch("one", 1, SMALL));
    timed(&mut plane.one_in, write).await;
    let write = sandbox.write_files(&call, batch("many", 100, SMALL));
    timed(&mut plane.many_in, write).await;
    let read = sandbox.read_files(&call, request("one", 1));
    timed(&mut plane.one_out, read).await;
    let read = sandbox.read_files(&call, request("many", 100));
    let files = timed(&mut plane.many_out, read).await;
    assert_eq!(files.len(), 100);
}

async fn large(sandbox: &stockade::Sandbox, plane: &mut Plane) {
    let call = call();
    let write = sandbox.write_files(&call, batch("large", 1, LARGE));
    timed(&mut plane.large_in, write).await;
    let read = sandbox.read_files(&call, request("large", 1));
    let files = timed(&mut plane.large_out, read).await;
    assert_eq!(files[0].content.len(), LARGE as u64);
}

/// Tar archives on disk, as bare docker takes them.
struct Sources {
    one: String,
    many: String,
    large: String,
}

impl Sources {
    fn make(folder: &tempfile::TempDir) -> Self {
        let archive = |name: &str, count: usize, bytes: usize| {
            let directory = folder.path().join(name);
            std::fs::create_dir(&directory).expect("a directory");
            for number in 0..count {
                let file = directory.join(number.to_string());
                std::fs::write(file, vec![7; bytes]).expect("a file");
            }
            let archive = folder.path().join(format!("{name}.tar"));
            let made = Command::new("tar")
                .arg("-C")
                .arg(folder.path())
                .arg("-cf")
                .arg(&archive)
                .arg(name)
                .status();
            assert!(made.expect("tar runs").success());
            archive.display().to_string()
        };
        Self {
            one: archive("bare-one", 1, SMALL),
            many: archive("bare-many", 100, SMALL),
            large: archive("bare-large", 1, LARGE),
        }
    }

    fn small(&self, container: &str, floor: &mut Floor) {
        copy_in(&mut floor.one_in, container, &self.one);
        copy_in(&mut floor.many_in, container, &self.many);
        copy_out(&mut floor.one_out, container, "bare-one/0");
        copy_out(&mut floor.many_out, container, "bare-many");
    }

    fn large(&self, container: &str, floor: &mut Floor) {
        copy_in(&mut floor.large_in, container, &self.large);
        copy_out(&mut floor.large_out, container, "bare-large/0");
        docker_ok(["exec", container, "rm", "-rf", "/work/large"]);
    }
}

/// Pause, copy, thaw, without any check.
fn copy_in(series: &mut Series, container: &str, archive: &str) {
    let line = format!(
        "docker pause {container} && docker cp - {container}:/work < {archive} && \
         docker unpause {container}"
    );
    timed_command(series, Command::new("sh").args(["-c", &line]));
}

fn copy_out(series: &mut Series, container: &str, path: &str) {
    let line = format!(
        "docker pause {container} && docker cp {container}:/work/{path} - > /dev/null && \
         docker unpause {container}"
    );
    timed_command(series, Command::new("sh").args(["-c", &line]));
}

fn print(tar: &Plane, guest: &Plane, floor: &Floor) {
    let bare = "pause, cp, unpause";
    let one = "≤ 1.5×";
    let many = "≤ 2× of one";
    for (what, ours, floor, goal) in [
        ("one small file in, tar", &tar.one_in, &floor.one_in, one),
        (
            "100 small files in, tar",
            &tar.many_in,
            &floor.many_in,
            many,
        ),
        ("one small file out, tar", &tar.one_out, &floor.one_out, one),
        (
            "100 small files out, tar",
            &tar.many_out,
            &floor.many_out,
            many,
        ),
        ("one small file in, guest", &guest.one_in, &floor.one_in, ""),
        (
            "100 small files in, guest",
            &guest.many_in,
            &floor.many_in,
            "≤ 10 ms",
        ),
        (
            "one small file out, guest",
            &guest.one_out,
            &floor.one_out,
            "",
        ),
        (
            "100 small files out, guest",
            &guest.many_out,
            &floor.many_out,
            "≤ 10 ms",
        ),
        ("64 MiB file in, tar", &tar.large_in, &floor.large_in, ""),
        ("64 MiB file out, tar", &tar.large_out, &floor.large_out, ""),
        (
            "64 MiB file in, guest",
            &guest.large_in,
            &floor.large_in,
            "",
        ),
        (
            "64 MiB file out, guest",
            &guest.large_out,
            &floor.large_out,
            "",
        ),
    ] {
        row(what, ours, floor, bare, goal);
    }
}
