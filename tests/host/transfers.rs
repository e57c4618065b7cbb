//! Files in and out without end, and how much memory that takes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use stockade::files::Content;
use stockade::{Backend as _, Call, FileRead, ReadRequest, Sandbox, Which};
use stockade_docker::{DockerBackend, DockerConfig};
use stockade_tests::engine::call;
use stockade_tests::files::{batch, path, plane, request, roomy, shared_key};
use tokio::io::{AsyncRead, ReadBuf};

const MIB: u64 = 1024 * 1024;

/// Takes the sandbox of a thread, and moves files until somebody ends it, or
/// once and with an eye on memory.
pub(crate) async fn run(what: &str, owner: &str, thread: &str, name: &str) {
    let config = DockerConfig::new(owner).file_plane(plane(name));
    let backend = DockerBackend::connect(&call(), config).await.unwrap();
    let spec = roomy().build().unwrap();
    let key = shared_key(thread);
    let sandbox = backend.acquire(&call(), &key, &spec).await.unwrap();
    if what == "transfers" {
        return transfers(&sandbox).await;
    }
    memory(&sandbox).await;
    let removed = backend.dispose(&call(), &key, Which::All).await.unwrap();
    assert!(removed.failures.is_empty());
    let closed = backend.close(&call()).await.unwrap();
    assert!(closed.failures.is_empty());
}

/// Writes and reads until somebody ends it.
async fn transfers(sandbox: &Sandbox) {
    loop {
        let call = Call::with_timeout(Duration::from_secs(120));
        let wrote = sandbox.write_files(&call, batch("d/e", 20, 20_000)).await;
        println!("wrote {wrote:?}");
        let read = sandbox.read_files(&call, request("d/e", 20)).await;
        println!("read {:?}", read.map(|files| files.len()));
    }
}

/// Moves 64 MiB in and out, and prints by how many KiB that raised the most
/// memory that this process ever had.
async fn memory(sandbox: &Sandbox) {
    there_and_back(sandbox, 2 * MIB).await;
    let before = reset_peak();
    there_and_back(sandbox, 64 * MIB).await;
    println!("{}", peak() - before);
}

async fn there_and_back(sandbox: &Sandbox, size: u64) {
    let call = Call::with_timeout(Duration::from_secs(300));
    let source = Content::reader(size, Pattern { left: size });
    sandbox.write_file(&call, "large", source).await.unwrap();
    let request = ReadRequest::new([FileRead::new(path("large"))]);
    let files = sandbox.read_files(&call, request).await.unwrap();
    let mut check = Check::default();
    files[0].content.copy_to(&mut check).await.unwrap();
    assert_eq!(check.seen, size);
}

/// Gives bytes that are nowhere in memory.
struct Pattern {
    left: u64,
}

impl AsyncRead for Pattern {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let fits = self.left.min(buffer.remaining() as u64);
        let filled = usize::try_from(fits).unwrap_or(0);
        buffer.initialize_unfilled_to(filled).fill(b'x');
        buffer.advance(filled);
        self.left -= fits;
        Poll::Ready(Ok(()))
    }
}

/// Counts the bytes of a [`Pattern`], and keeps none.
#[derive(Default)]
struct Check {
    seen: u64,
}

impl tokio::io::AsyncWrite for Check {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        assert!(bytes.iter().all(|&byte| byte == b'x'));
        self.seen += bytes.len() as u64;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The most memory so far, counted anew from here on (proc(5): `clear_refs`).
fn reset_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    peak()
}

/// `VmHWM`, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it can be read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number of KiB")
}
