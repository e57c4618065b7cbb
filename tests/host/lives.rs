//! Takes sandboxes through their life while something else kills what they
//! consist of. Each life is told with its number once it is over, so that a
//! host that was killed can be followed by another one.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use stockade::exec::{AtOutputLimit, Background};
use stockade::spec::{Hardening, Storage};
use stockade::{
    Backend as _, Error, ErrorKind, ExecRequest, ExecStatus, Image, IsolationScope, ReadRequest,
    Sandbox, SandboxKey, SandboxSpec, Which,
};
use stockade_docker::{DockerBackend, DockerConfig, FilePlane};
use stockade_tests::files::{batch, path};

use crate::tally::{Trouble, tell};

const TROUBLE: Trouble = Trouble::Kills;

/// How many lives go on at the same time in one host.
const TOGETHER: u64 = 3;

/// How often a life is begun anew while the daemon is away, and what is
/// waited for between.
const TRIES: u32 = 30;
const AWAY: Duration = Duration::from_secs(1);

/// What a host has for its lives.
struct Host {
    /// One that moves files in each way.
    backends: [DockerBackend; 2],
    image: String,
    seed: u64,
    thread: String,
}

/// Takes the lives of these numbers. Tells what it holds of the machine's
/// before the first and after the last.
pub(crate) async fn run(owner: &str, image: &str, seed: u64, numbers: std::ops::Range<u64>) {
    let host = Arc::new(Host {
        backends: [
            connect(owner, FilePlane::Tar).await,
            connect(owner, FilePlane::Guest).await,
        ],
        image: image.to_owned(),
        seed,
        // Another host that goes on with this one's numbers finds nothing of it.
        thread: format!("host-{}", std::process::id()),
    });
    // What is made once is made before the first look.
    host.live(u64::MAX).await;
    holds("begin");
    let mut lives = tokio::task::JoinSet::new();
    for number in numbers {
        if lives.len() as u64 >= TOGETHER {
            ended(lives.join_next().await);
        }
        let host = Arc::clone(&host);
        lives.spawn(async move {
            host.live(number).await;
            println!("{}", json!({ "life": number }));
        });
    }
    while let Some(life) = lives.join_next().await {
        ended(Some(life));
    }
    for backend in &host.backends {
        let closed = TROUBLE
            .run("close", async |call| backend.close(call).await)
            .await;
        if let Ok(closed) = closed {
            TROUBLE.removed("close", &closed);
        }
    }
    holds("end");
}

async fn connect(owner: &str, plane: FilePlane) -> DockerBackend {
    loop {
        let config = DockerConfig::new(owner).file_plane(plane);
        // The daemon may be away when a host starts.
        let connect = async |call: &_| DockerBackend::connect(call, config).await;
        if let Ok(backend) = TROUBLE.run("connect", connect).await {
            return backend;
        }
        tokio::time::sleep(AWAY).await;
    }
}

/// Tries again while the daemon is away: a life is meant to be lived.
async fn acquire(
    backend: &DockerBackend,
    key: &SandboxKey,
    spec: &Arc<SandboxSpec>,
) -> Option<Sandbox> {
    for _ in 0..TRIES {
        let acquire = async |call: &_| backend.acquire(call, key, spec).await;
        match TROUBLE.run("acquire", acquire).await {
            Ok(sandbox) => return Some(sandbox),
            Err(Some(ErrorKind::Unavailable)) => tokio::time::sleep(AWAY).await,
            Err(_) => return None,
        }
    }
    None
}

/// A life that panicked is a fault of ours or of the library's.
fn ended(life: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = life {
        tell("life: panicked", false, &error.to_string());
    }
}

/// Open descriptors and resident memory of this process.
fn holds(when: &str) {
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let line = json!({ "holds": when, "descriptors": descriptors, "resident_kib": resident });
    println!("{line}");
}

impl Host {
    /// One sandbox from its acquire to whatever end it gets. The same number
    /// means the same choices.
    async fn live(&self, number: u64) {
        let mut random = Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let backend = &self.backends[random.usize(..2)];
        let (key, spec) = self.wanted(number, &mut random);
        let Some(sandbox) = acquire(backend, &key, &spec).await else {
            return self.end(backend, &key, &mut random).await;
        };
        for _ in 0..random.u32(1..6) {
            match random.u8(..10) {
                0..6 => command(&sandbox, &mut random).await,
                _ => files(&sandbox, &mut random).await,
            }
        }
        drop(sandbox);
        self.end(backend, &key, &mut random).await;
    }

    fn wanted(&self, number: u64, random: &mut Rng) -> (SandboxKey, Arc<SandboxSpec>) {
        let key = SandboxKey::new("soak", &self.thread, format!("agent-{number}"));
        let spec = SandboxSpec::builder("soak")
            .image(Image::reference(&self.image))
            .requires([stockade::Capability::FilesOut])
            // Some of those that are only dropped are gone before the end.
            .idle_limit(Duration::from_secs(random.u64(10..120)));
        let spec = match random.u8(..10) {
            0..7 => spec,
            7..9 => spec.storage(Storage::Disk),
            _ => spec
                .storage(Storage::Root)
                .hardening(Hardening::AsImage)
                .work_dir("/srv"),
        };
        if random.bool() {
            let spec = spec.isolation_scope(IsolationScope::Call);
            return (key.with_call(number.to_string()), spec.build().unwrap());
        }
        (key, spec.build().unwrap())
    }

    /// Disposed of by its key, by its conversation, or not at all.
    async fn end(&self, backend: &DockerBackend, key: &SandboxKey, random: &mut Rng) {
        if random.u8(..4) == 0 {
            return tell("end: dropped", true, "");
        }
        let dispose = async |call: &_| backend.dispose(call, key, Which::All).await;
        if let Ok(removed) = TROUBLE.run("dispose", dispose).await {
            TROUBLE.removed("dispose", &removed);
        }
    }
}

/// A command of one of the sorts that end differently.
async fn command(sandbox: &Sandbox, random: &mut Rng) {
    let patience = Duration::from_secs(30);
    let (name, request, expected) = match random.u8(..10) {
        0..5 => {
            let request = ExecRequest::shell("echo $((6 * 7)); head -c 100000 /dev/zero | wc -c");
            ("command", request.timeout(patience), ExecStatus::Exited(0))
        }
        5 => {
            let request = ExecRequest::argv(["sleep", "600"]);
            let short = request.timeout(Duration::from_millis(500));
            ("slow command", short, ExecStatus::TimedOut)
        }
        6 => {
            let request = ExecRequest::argv(["cat", "/dev/zero"]).output_limit(1 << 20);
            let flood = request.at_output_limit(AtOutputLimit::End);
            (
                "loud command",
                flood.timeout(patience),
                ExecStatus::OutputLimit,
            )
        }
        7 => {
            let request = ExecRequest::shell("sleep 600 & echo left");
            let kept = request.background(Background::Keep);
            (
                "command that leaves one",
                kept.timeout(patience),
                ExecStatus::Exited(0),
            )
        }
        _ => {
            // The kernel ends it, and the sandbox goes on.
            let hog = "held = [bytes(16 << 20).replace(b'\\0', b'x') for _ in range(128)]";
            let request = ExecRequest::argv(["python3", "-c", hog]);
            (
                "hungry command",
                request.timeout(patience),
                ExecStatus::Signaled(9),
            )
        }
    };
    let request = request.build().unwrap();
    let exec = async |call: &_| sandbox.exec(call, request).await;
    if let Ok(outcome) = TROUBLE.run(name, exec).await {
        TROUBLE.status(name, &outcome.status, &expected);
    }
}

/// Files in, and the same out again.
async fn files(sandbox: &Sandbox, random: &mut Rng) {
    let (count, bytes) = match random.u8(..5) {
        0 => (1, 4 << 20),
        _ => (random.usize(1..20), random.usize(1..5000)),
    };
    let folder = format!("in-{}", random.u32(..));
    let write = async |call: &_| {
        sandbox
            .write_files(call, batch(&folder, count, bytes))
            .await
    };
    if TROUBLE.run("write files", write).await.is_err() {
        return;
    }
    let read = async |call: &_| {
        let names = (0..count).map(|number| path(&format!("{folder}/{number}")));
        let files = sandbox.read_files(call, ReadRequest::of(names)).await?;
        Ok::<_, Error>(files.iter().map(|file| file.content.len()).sum::<u64>())
    };
    if let Ok(total) = TROUBLE.run("read files", read).await
        && total != (count * bytes) as u64
    {
        let detail = format!("{count} files of {bytes} bytes came back as {total} bytes");
        tell("read files: not what was written", false, &detail);
    }
}
