//! A guest that swaps directories for links, files for pipes and names for
//! names while files are written and read: nothing lands outside of its reach,
//! and nothing that it could not read itself comes out.

use std::collections::BTreeSet;
use std::time::Duration;

use stockade::{ErrorKind, ExecRequest, Process};
use stockade_docker::FilePlane;
use stockade_tests::engine::{Fixture, call, docker_ok};

use super::{PLANES, patient, roomy, rounds, sandbox};

/// Runs in the guest for as long as it is let. `d` is by turns a directory
/// with files of its own and a link to `/etc`, `f` a file, a link to a file
/// that only root may read, a pipe and nothing, and `a` and `b` change places.
const SWAPPER: &str = "
import itertools, os
os.makedirs('real', exist_ok=True)
for name in ('shadow', 'planted'):
    with open('real/' + name, 'w') as file: file.write('benign')
os.makedirs('a/deep', exist_ok=True)
os.symlink('/etc', 'link')
os.rename('real', 'd')
print('swapping', flush=True)
def quietly(what, *args):
    try: what(*args)
    except OSError: pass
for turn in itertools.count():
    quietly(os.rename, 'd', 'aside')
    quietly(os.rename, 'link', 'd')
    quietly(os.rename, 'd', 'link')
    quietly(os.rename, 'aside', 'd')
    quietly(os.unlink, 'f')
    if turn % 3 == 0: quietly(os.symlink, '/etc/shadow', 'f')
    elif turn % 3 == 1: quietly(os.mkfifo, 'f')
    else:
        with open('g', 'w') as file: file.write('benign')
        quietly(os.rename, 'g', 'f')
    quietly(os.rename, 'a', 'b')
    quietly(os.symlink, '/root', 'a')
    quietly(os.unlink, 'a')
    quietly(os.rename, 'b', 'a')
";

async fn swapper(fixture: &Fixture) -> Process {
    let request = ExecRequest::argv(["python3", "-c", SWAPPER]).timeout(Duration::from_secs(900));
    let mut process = fixture.spawn(request).await;
    let mut output = process.take_output().expect("it has an output");
    let mut seen = String::new();
    stockade_tests::engine::read_until(&mut output, &mut seen, "swapping").await;
    process
}

/// What the engine sees changed outside of the work directory, which nothing
/// in the sandbox could have changed.
fn changed_outside(container: &str) -> BTreeSet<String> {
    let changes = docker_ok(["diff", container]);
    changes.lines().map(str::to_owned).collect()
}

async fn attacked(plane: FilePlane, times: usize) {
    let fixture = sandbox(plane, roomy()).await;
    let before = changed_outside(fixture.container());
    let process = swapper(&fixture).await;
    let sandbox = &fixture.sandbox;
    let (mut wrote, mut read) = (0, 0);
    for _ in 0..times {
        for name in ["d/planted", "a/deep/planted", "f"] {
            match sandbox.write_file(&patient(), name, "benign").await {
                Ok(()) => wrote += 1,
                Err(error) => expected(&error),
            }
        }
        for name in ["d/shadow", "d/planted", "f"] {
            match sandbox.read_file(&patient(), name).await {
                // Empty: it was opened by the guest to be written.
                Ok(bytes) => {
                    assert!(
                        bytes.is_empty() || &bytes[..] == b"benign",
                        "{name} gave {bytes:?}"
                    );
                    read += 1;
                }
                Err(error) => expected(&error),
            }
        }
    }
    drop(process);
    assert!(wrote > 0 && read > 0, "wrote {wrote}, read {read}");
    assert_eq!(changed_outside(fixture.container()), before, "{plane:?}");
    fixture.close().await;
}

/// Whoever is swapped under gets a typed refusal, and never something else.
fn expected(error: &stockade::Error) {
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Refused | ErrorKind::NotFound | ErrorKind::Conflict
        ),
        "{error:?}"
    );
    assert!(error.refusal().is_some(), "{error:?}");
}

#[tokio::test]
async fn a_guest_that_swaps_names_reaches_nothing_new_in_the_tar_plane() {
    attacked(FilePlane::Tar, rounds(12)).await;
}

#[tokio::test]
async fn a_guest_that_swaps_names_reaches_nothing_new_in_the_guest_plane() {
    attacked(FilePlane::Guest, rounds(200)).await;
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_by_its_kind_and_never_opened() {
    for plane in PLANES {
        let fixture = sandbox(plane, roomy()).await;
        fixture
            .sh(
                "mkfifo p; python3 -c 'import socket; socket.socket(1).bind(\"s\")'; \
                 ln -s /etc/passwd l; mkdir d; ln -s /etc e; echo x > x",
            )
            .await;
        for (name, code) in [
            ("p", "file_not_regular"),
            ("s", "file_not_regular"),
            ("l", "file_link"),
            ("d", "file_is_directory"),
            ("e/passwd", "file_linked_parent"),
            ("x/y", "file_parent_not_directory"),
        ] {
            let read = fixture.sandbox.read_file(&call(), name).await.unwrap_err();
            let read = read.refusal().map(stockade::Refusal::code);
            assert_eq!(read, Some(code), "read of {name} in {plane:?}");
            let wrote = fixture.sandbox.write_file(&call(), name, "new").await;
            let wrote = wrote.unwrap_err();
            let wrote = wrote.refusal().map(stockade::Refusal::code);
            assert_eq!(wrote, Some(code), "write of {name} in {plane:?}");
        }
        fixture.close().await;
    }
}

#[tokio::test]
async fn a_guest_that_stops_every_process_of_its_user_delays_files_and_no_more() {
    for plane in PLANES {
        let fixture = sandbox(plane, roomy()).await;
        let stopper = "
import os, signal
print('stopping', flush=True)
me = os.getpid()
while True:
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) not in (1, me):
            try: os.kill(int(name), signal.SIGSTOP)
            except OSError: pass
";
        let request = ExecRequest::argv(["python3", "-c", stopper]).timeout(Duration::from_secs(5));
        let process = fixture.spawn(request).await;
        let short = stockade::Call::with_timeout(Duration::from_secs(3));
        // It may be refused, and may work; it must end, and leave the sandbox whole.
        let _ = fixture.sandbox.write_file(&short, "file", "content").await;
        drop(process);
        // What ends the stopped processes may take the worker along, which is
        // an error that says to try again.
        let mut tries = 0;
        while let Err(error) = fixture
            .sandbox
            .write_file(&patient(), "file", "again")
            .await
        {
            assert_eq!(error.retry(), stockade::Retry::Later, "{error:?}");
            tries += 1;
            assert!(tries < 5, "it never works again: {error:?}");
        }
        let read = fixture.sandbox.read_file(&patient(), "file").await.unwrap();
        assert_eq!(&read[..], b"again", "{plane:?}");
        fixture.close().await;
    }
}

#[tokio::test]
async fn what_the_guest_may_not_touch_is_not_touched_for_it() {
    for plane in PLANES {
        let fixture = sandbox(plane, roomy()).await;
        let line = "cd /work && umask 022 && mkdir closed sticky && chmod 1777 sticky && \
             printf root > closed/file && printf root > sticky/file && chmod 600 sticky/file && \
             printf root > secret && chmod 600 secret && chown 0:0 secret";
        docker_ok([
            "exec",
            "--privileged",
            "--user",
            "0",
            fixture.container(),
            "sh",
            "-c",
            line,
        ]);
        for (name, read) in [
            ("closed/file", true),
            ("closed/new", false),
            ("sticky/file", false),
            ("secret", false),
        ] {
            let code = |error: &stockade::Error| error.refusal().map(stockade::Refusal::code);
            if name != "secret" {
                let wrote = fixture.sandbox.write_file(&call(), name, "guest").await;
                let wrote = wrote.unwrap_err();
                assert_eq!(code(&wrote), Some("file_denied"), "{name} in {plane:?}");
            }
            match fixture.sandbox.read_file(&call(), name).await {
                Ok(bytes) => assert!(read && &bytes[..] == b"root", "{name} in {plane:?}"),
                Err(error) => assert!(!read, "{name} in {plane:?}: {error}"),
            }
        }
        // In a sticky directory everybody may make a file, and replace it.
        for content in ["one", "two"] {
            let call = call();
            let wrote = fixture.sandbox.write_file(&call, "sticky/own", content);
            wrote.await.unwrap();
        }
        docker_ok([
            "exec",
            "--privileged",
            "--user",
            "0",
            fixture.container(),
            "rm",
            "-rf",
            "/work/closed",
            "/work/sticky",
        ]);
        fixture.close().await;
    }
}

#[tokio::test]
async fn no_copy_is_made_where_the_guest_can_move_what_is_above_the_work_directory() {
    // The image's user is root, to whom `/` belongs, so that it can move
    // `/home` with the work directory's mount, and put a link in its place.
    let spec = || {
        let hardening = stockade::spec::Hardening::AsImage;
        roomy().hardening(hardening).work_dir("/home/work")
    };
    let fixture = sandbox(FilePlane::Tar, spec()).await;
    let before = fixture.host.backend.invocations();
    let error = fixture.sandbox.write_file(&call(), "f", "x").await;
    let error = error.unwrap_err();
    let code = error.refusal().map(stockade::Refusal::code);
    assert_eq!(code, Some("file_plane"), "{error}");
    assert_eq!(fixture.host.backend.invocations(), before);
    fixture.close().await;

    let fixture = sandbox(FilePlane::Guest, spec()).await;
    fixture.sandbox.write_file(&call(), "f", "x").await.unwrap();
    let read = fixture.sandbox.read_file(&call(), "f").await.unwrap();
    assert_eq!(&read[..], b"x");
    fixture.close().await;
}
