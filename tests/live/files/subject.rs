//! The guest of the conformance suite on a real engine: what a guest cannot
//! make by itself is made by root, from outside.

#![expect(
    clippy::disallowed_methods,
    reason = "what a guest cannot do is done from outside"
)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use bytes::Bytes;
use stockade::Capabilities;
use stockade::exec::ExecBuilder;
use stockade::files::EntryKind;
use stockade_conformance::{At, Doing, GuestAction, PosixSubject, Seen, Subject, SubjectError};

/// A guest with the usual tools, and root beside it.
#[derive(Debug)]
pub(super) struct WithRoot(PosixSubject);

impl WithRoot {
    pub(super) fn new() -> Self {
        Self(PosixSubject::new())
    }
}

/// Runs a shell line in the sandbox as root with every capability.
async fn as_root(at: &At, line: &'static str, path: &[u8]) -> Result<(), SubjectError> {
    let container = at.sandbox.id().as_str().to_owned();
    let path = path.to_vec();
    let run = tokio::task::spawn_blocking(move || {
        Command::new("docker")
            .args(["exec", "--privileged", "--user", "0", &container])
            .args(["sh", "-c", line, "sh"])
            .arg(OsStr::from_bytes(&path))
            .output()
    });
    let output = run
        .await
        .expect("it does not panic")
        .expect("docker starts");
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(SubjectError::failed(format!("as root: {said}"))),
    }
}

impl Subject for WithRoot {
    fn plant_special<'a>(&'a self, at: &'a At, kind: EntryKind, path: &'a [u8]) -> Doing<'a, ()> {
        const SOCKET: &str = "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \"$1\"";
        Box::pin(async move {
            match kind {
                EntryKind::Socket => as_root(at, SOCKET, path).await,
                EntryKind::CharDevice => as_root(at, "mknod \"$1\" c 1 5", path).await,
                EntryKind::BlockDevice => as_root(at, "mknod \"$1\" b 7 0", path).await,
                _ => self.0.plant_special(at, kind, path).await,
            }
        })
    }

    fn plant_protected<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        const PROTECT: &str = "umask 022; mkdir \"$1\" && printf kept > \"$1/kept\" && \
             chmod 600 \"$1/kept\"";
        Box::pin(as_root(at, PROTECT, path))
    }

    fn clear<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        Box::pin(as_root(at, "rm -rf -- \"$1\"", path))
    }

    fn needs(&self) -> Capabilities {
        self.0.needs()
    }

    fn outside(&self) -> Vec<u8> {
        self.0.outside()
    }

    fn command(&self, action: &GuestAction) -> Result<ExecBuilder, SubjectError> {
        self.0.command(action)
    }

    fn plant_directory<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        self.0.plant_directory(at, path)
    }

    fn plant_file<'a>(&'a self, at: &'a At, path: &'a [u8], content: &'a [u8]) -> Doing<'a, ()> {
        self.0.plant_file(at, path, content)
    }

    fn plant_zeros<'a>(&'a self, at: &'a At, path: &'a [u8], size: u64) -> Doing<'a, ()> {
        self.0.plant_zeros(at, path, size)
    }

    fn plant_symlink<'a>(&'a self, at: &'a At, target: &'a [u8], path: &'a [u8]) -> Doing<'a, ()> {
        self.0.plant_symlink(at, target, path)
    }

    fn set_mode<'a>(&'a self, at: &'a At, path: &'a [u8], mode: u32) -> Doing<'a, ()> {
        self.0.set_mode(at, path, mode)
    }

    fn set_modified<'a>(&'a self, at: &'a At, path: &'a [u8], seconds: u64) -> Doing<'a, ()> {
        self.0.set_modified(at, path, seconds)
    }

    fn fill_bytes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        self.0.fill_bytes(at, path, leave)
    }

    fn fill_inodes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        self.0.fill_inodes(at, path, leave)
    }

    fn look<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Option<Seen>> {
        self.0.look(at, path)
    }

    fn read<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Bytes> {
        self.0.read(at, path)
    }

    fn the_guest_can_write<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        self.0.the_guest_can_write(at, path)
    }

    fn the_guest_can_delete<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        self.0.the_guest_can_delete(at, path)
    }
}
