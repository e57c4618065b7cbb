//! The guest of the backend in memory.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use stockade::exec::ExecBuilder;
use stockade::files::EntryKind;
use stockade::memory::{Guest, GuestFiles, MemoryBackend};
use stockade::{BoxFuture, Capabilities, ExecRequest};

use crate::subject::{At, Doing, GuestAction, Seen, Subject, SubjectError};

/// The guest of a [`MemoryBackend`]: it acts on the tree itself, and its
/// commands are the programs of [`MemorySubject::programs`].
#[derive(Debug, Clone)]
pub struct MemorySubject {
    backend: MemoryBackend,
}

impl MemorySubject {
    /// The guest of the sandboxes of this backend, or of a clone of it.
    #[must_use]
    pub const fn new(backend: MemoryBackend) -> Self {
        Self { backend }
    }

    /// Adds the programs of the exec suite to a backend.
    #[must_use]
    pub fn programs(backend: MemoryBackend) -> MemoryBackend {
        backend
            .with_program("print-arguments", print_arguments)
            .with_program("exit-seven", async |_| 7)
            .with_program("sh", shell)
            .with_program("print-directory", async |mut guest| {
                let directory = [&guest.files().directory()[..], b"\n"].concat();
                guest.print(directory).await;
                0
            })
            .with_program("print-to-both", async |mut guest| {
                guest.print("to-stdout\n").await;
                guest.eprint("to-stderr\n").await;
                0
            })
            .with_program("print-all-bytes", async |mut guest| {
                let all: Vec<u8> = (0..=u8::MAX).collect();
                guest.print(&all).await;
                guest.eprint(&all).await;
                7
            })
            .with_program("print-variable", async |mut guest| {
                let value = guest.env("CONFORMANCE").unwrap_or_default().to_vec();
                guest.print(value).await;
                0
            })
            .with_program("copy", async |mut guest| {
                loop {
                    let piece = guest.read().await;
                    if piece.is_empty() {
                        return 0;
                    }
                    guest.print(piece).await;
                }
            })
            .with_program("sleep", async |mut guest| {
                guest.print("begun\n").await;
                tokio::time::sleep(Duration::from_secs(30)).await;
                0
            })
            .with_program("swap-directory", swap_directory)
            .with_program("flood", async |mut guest| {
                // Without end, as long as somebody bounds it.
                for _ in 0..64 {
                    guest.print("flood\n".repeat(4096)).await;
                }
                0
            })
    }

    /// Does something with the files of a sandbox.
    fn act<T: Send + 'static>(
        &self,
        at: &At,
        act: impl FnOnce(&GuestFiles) -> io::Result<T>,
    ) -> BoxFuture<'static, Result<T, SubjectError>> {
        let files = self.backend.files(at.sandbox.id());
        let acted = match files {
            Some(files) => act(&files).map_err(|error| SubjectError::failed(error.to_string())),
            None => Err(SubjectError::failed("the sandbox is gone")),
        };
        Box::pin(std::future::ready(acted))
    }
}

impl Subject for MemorySubject {
    fn needs(&self) -> Capabilities {
        Capabilities::none()
    }

    fn outside(&self) -> Vec<u8> {
        b"/outside".to_vec()
    }

    fn command(&self, action: &GuestAction) -> Result<ExecBuilder, SubjectError> {
        let argv = |program: &str| Ok(ExecRequest::argv([program]));
        match action {
            GuestAction::PrintArguments(arguments) => {
                let program = [b"print-arguments".to_vec()];
                Ok(ExecRequest::argv(program.iter().chain(arguments)))
            }
            GuestAction::ExitSeven => argv("exit-seven"),
            GuestAction::ShellExitSeven => Ok(ExecRequest::shell("exit 7")),
            GuestAction::PrintDirectory => argv("print-directory"),
            GuestAction::PrintToBoth => argv("print-to-both"),
            GuestAction::PrintAllBytes => argv("print-all-bytes"),
            GuestAction::PrintVariable => argv("print-variable"),
            GuestAction::Copy => argv("copy"),
            GuestAction::Sleep => argv("sleep"),
            GuestAction::Flood => argv("flood"),
            GuestAction::SwapDirectory { path, target } => {
                Ok(ExecRequest::argv([b"swap-directory", &path[..], target]))
            }
            GuestAction::Missing => argv("no-such-program"),
        }
    }

    fn plant_directory<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        self.act(at, |files| files.make_directories(path))
    }

    fn plant_file<'a>(&'a self, at: &'a At, path: &'a [u8], content: &'a [u8]) -> Doing<'a, ()> {
        self.act(at, |files| files.write(path, content.to_vec()))
    }

    fn plant_zeros<'a>(&'a self, at: &'a At, path: &'a [u8], size: u64) -> Doing<'a, ()> {
        self.act(at, |files| files.write(path, zeros(size)))
    }

    fn plant_symlink<'a>(&'a self, at: &'a At, target: &'a [u8], path: &'a [u8]) -> Doing<'a, ()> {
        self.act(at, |files| files.symlink(target, path))
    }

    fn plant_special<'a>(&'a self, at: &'a At, kind: EntryKind, path: &'a [u8]) -> Doing<'a, ()> {
        self.act(at, |files| files.make_special(kind, path))
    }

    fn plant_protected<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        self.act(at, |files| {
            let host = files.clone().as_host();
            host.make_directories(path)?;
            let kept = [path, b"/kept"].concat();
            host.write(&kept, &b"kept"[..])?;
            host.set_mode(&kept, 0o600)
        })
    }

    fn set_mode<'a>(&'a self, at: &'a At, path: &'a [u8], mode: u32) -> Doing<'a, ()> {
        self.act(at, |files| files.set_mode(path, mode))
    }

    fn set_modified<'a>(&'a self, at: &'a At, path: &'a [u8], seconds: u64) -> Doing<'a, ()> {
        let modified = UNIX_EPOCH + Duration::from_secs(seconds);
        self.act(at, |files| files.set_modified(path, modified))
    }

    fn fill_bytes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        self.act(at, |files| {
            let size = files.free_bytes().saturating_sub(leave);
            files.write(path, zeros(size))
        })
    }

    fn fill_inodes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        self.act(at, |files| {
            let directory = files.in_directory(path)?;
            for number in 0..files.free_inodes().saturating_sub(leave) {
                directory.write(number.to_string(), Bytes::new())?;
            }
            Ok(())
        })
    }

    fn look<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Option<Seen>> {
        self.act(at, |files| {
            let seen = files.stat(path)?.map(|stat| {
                let size = stat.size.unwrap_or_default();
                Seen::new(stat.kind, size, stat.mode, stat.modified)
            });
            Ok(seen)
        })
    }

    fn read<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Bytes> {
        self.act(at, |files| files.read(path))
    }

    fn the_guest_can_write<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        self.act(at, |files| Ok(files.write(path, &b"written"[..]).is_ok()))
    }

    fn the_guest_can_delete<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        self.act(at, |files| Ok(files.remove_file(path).is_ok()))
    }

    fn clear<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        // Also what the guest could not remove: the backend is a test's.
        self.act(at, |files| files.clone().as_host().remove_tree(path))
    }
}

fn zeros(size: u64) -> Bytes {
    Bytes::from(vec![0; usize::try_from(size).unwrap_or(usize::MAX)])
}

async fn print_arguments(mut guest: Guest) -> i32 {
    for argument in guest.args().to_vec() {
        guest.print([b"[", &argument[..], b"]\n"].concat()).await;
    }
    0
}

/// Knows the one line of the exec suite.
async fn shell(guest: Guest) -> i32 {
    if guest.arg(0) == "-c" && guest.arg(1) == "exit 7" {
        7
    } else {
        127
    }
}

async fn swap_directory(guest: Guest) -> i32 {
    let [path, target] = guest.args() else {
        return 2;
    };
    let files = guest.files();
    // For one, two and three turns, so that nobody always meets the same.
    for turns in (1..=3).cycle() {
        // The host may be in the way; a kernel's guest goes on as well.
        let _ = files
            .remove_tree(path)
            .and_then(|()| files.symlink(target, path));
        give_way(turns).await;
        let _ = files
            .remove_tree(path)
            .and_then(|()| files.make_directories(path));
        give_way(4 - turns).await;
    }
    0
}

async fn give_way(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}
