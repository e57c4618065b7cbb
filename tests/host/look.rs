//! What an engine gives, looked at check by check. Each is one line of JSON on
//! standard output: the name of the check, what was found in a few words that
//! can be compared, and more about it for people.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stockade::spec::{Hardening, Storage};
use stockade::{
    Backend as _, BoxFuture, Egress, Error, ExecOutcome, ExecRequest, ExecStatus, Image,
    IsolationScope, ReadRequest, ReapFilter, ResourceLimits, Sandbox, SandboxKey, SandboxSpec,
    SpecBuilder, Which,
};
use stockade_docker::operate::{Activity, HistoryOf, SandboxFilter};
use stockade_docker::{DockerBackend, DockerConfig, FilePlane};
use stockade_tests::engine::{call, left_of};
use stockade_tests::files::{batch, path};

const MIB: u64 = 1024 * 1024;

type Found = Result<String, Error>;

/// A check of a sandbox that runs.
type Check = for<'a> fn(&'a Subject) -> BoxFuture<'a, Found>;

/// What needs a sandbox that runs, in the order of looking. The last ones end it.
const CHECKS: [(&str, Check); 15] = [
    ("command", |subject| Box::pin(command(subject))),
    ("identity", |subject| Box::pin(identity(subject))),
    ("privileges", |subject| Box::pin(privileges(subject))),
    ("limits read back", |subject| Box::pin(limits(subject))),
    ("interfaces", |subject| Box::pin(interfaces(subject))),
    ("root", |subject| Box::pin(root(subject))),
    ("work directory", |subject| {
        Box::pin(work_directory(subject))
    }),
    ("work directory limit", |subject| {
        Box::pin(work_limit(subject))
    }),
    ("process limit", |subject| Box::pin(process_limit(subject))),
    ("memory limit", |subject| Box::pin(memory_limit(subject))),
    ("files, tar", |subject| {
        Box::pin(files(subject, FilePlane::Tar))
    }),
    ("files, guest", |subject| {
        Box::pin(files(subject, FilePlane::Guest))
    }),
    ("second host", |subject| Box::pin(second_host(subject))),
    ("reuse by drift", |subject| Box::pin(drift(subject))),
    ("dispose", |subject| Box::pin(dispose(subject))),
];

/// What is looked at apart from that sandbox.
const APART: [(&str, Apart); 7] = [
    ("storage on disk", |engine| {
        Box::pin(storage(engine, Storage::Disk))
    }),
    ("storage in the root", |engine| {
        Box::pin(storage(engine, Storage::Root))
    }),
    ("allowlist", |engine| Box::pin(allowlist(engine))),
    ("idle and drifted", |engine| Box::pin(replaced(engine))),
    ("list and activity", |engine| Box::pin(listed(engine))),
    ("history", |engine| Box::pin(history(engine))),
    ("reap", |engine| Box::pin(reaped(engine))),
];

type Apart = for<'a> fn(&'a Bound) -> BoxFuture<'a, Found>;

/// An engine that was bound.
struct Bound {
    backend: DockerBackend,
    owner: String,
    image: String,
}

/// A sandbox on it.
struct Subject {
    bound: Bound,
    key: SandboxKey,
    spec: Arc<SandboxSpec>,
    sandbox: Sandbox,
}

/// Looks at everything, and prints it; what cannot be reached is left out.
pub(crate) async fn run(owner: &str, image: &str) {
    let backend = DockerBackend::connect(&call(), DockerConfig::new(owner)).await;
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) => return tell("bind", Err(error)),
    };
    tell("bind", Ok("bound".to_owned()));
    let bound = Bound {
        backend,
        owner: owner.to_owned(),
        image: image.to_owned(),
    };
    for (name, look) in APART {
        tell(name, look(&bound).await);
    }
    let spec = bound.spec().build().unwrap();
    let key = bound.key("subject");
    let sandbox = match bound.backend.acquire(&call(), &key, &spec).await {
        Ok(sandbox) => sandbox,
        Err(error) => {
            tell("acquire", Err(error));
            return finish(&bound).await;
        }
    };
    tell("acquire", Ok(freshness(&sandbox)));
    let subject = Subject {
        bound,
        key,
        spec,
        sandbox,
    };
    for (name, look) in CHECKS {
        tell(name, look(&subject).await);
    }
    finish(&subject.bound).await;
}

/// What is still there of this owner once everything was undone.
async fn finish(bound: &Bound) {
    let closed = bound.backend.close(&call()).await;
    let found = closed.map(|_| match left_of(&bound.owner) {
        left if left.is_empty() => "nothing".to_owned(),
        left => left.join(", "),
    });
    tell("left at the end", found);
}

fn tell(check: &str, found: Found) {
    let (found, detail) = match found {
        Ok(found) => (found, String::new()),
        Err(error) => (word(&error), format!("{error}\n{}", error.detail())),
    };
    let line = json!({ "check": check, "found": found, "detail": detail.trim_end() });
    println!("{line}");
}

/// An error in a few words that stay the same from run to run.
pub(crate) fn word(error: &Error) -> String {
    match error.refusal() {
        Some(refusal) => format!("refused: {}", refusal.code()),
        None => format!("{} in {}", error.kind(), error.operation()),
    }
}

fn freshness(sandbox: &Sandbox) -> String {
    if sandbox.freshly_created() {
        "fresh".to_owned()
    } else {
        "adopted".to_owned()
    }
}

impl Bound {
    fn spec(&self) -> SpecBuilder {
        SandboxSpec::builder("look")
            .image(Image::reference(&self.image))
            .isolation_scope(IsolationScope::Call)
            .requires([stockade::Capability::FilesOut])
    }

    fn key(&self, call: &str) -> SandboxKey {
        SandboxKey::new("look", "look", "look").with_call(call)
    }

    /// Acquires, runs one command, and removes.
    async fn once(&self, name: &str, spec: SpecBuilder) -> Found {
        let (key, spec) = (self.key(name), spec.build().unwrap());
        let sandbox = self.backend.acquire(&call(), &key, &spec).await?;
        let outcome = shell(&sandbox, "echo kept > file && cat file").await?;
        drop(sandbox);
        let removed = self.backend.dispose(&call(), &key, Which::All).await?;
        Ok(match (&outcome.stdout[..], removed.is_clean()) {
            (b"kept\n", true) => "served".to_owned(),
            (b"kept\n", false) => format!("served, not removed: {:?}", removed.failures),
            _ => ended(&outcome),
        })
    }
}

async fn shell(sandbox: &Sandbox, line: &str) -> Result<ExecOutcome, Error> {
    let request = ExecRequest::shell(line).timeout(Duration::from_secs(60));
    sandbox.exec(&call(), request.build().unwrap()).await
}

async fn python(sandbox: &Sandbox, program: &str) -> Result<ExecOutcome, Error> {
    let request = ExecRequest::argv(["python3", "-c", program]).timeout(Duration::from_secs(60));
    sandbox.exec(&call(), request.build().unwrap()).await
}

/// What a command said, or how it failed to say something.
fn said(outcome: &ExecOutcome) -> String {
    match outcome.status {
        ExecStatus::Exited(0) => outcome.stdout_text().trim().to_owned(),
        _ => ended(outcome),
    }
}

fn ended(outcome: &ExecOutcome) -> String {
    format!("{}: {}", outcome.status, outcome.stderr_text().trim())
}

async fn command(subject: &Subject) -> Found {
    shell(&subject.sandbox, "echo ran").await.map(|o| said(&o))
}

async fn identity(subject: &Subject) -> Found {
    let outcome = shell(&subject.sandbox, "echo $(id -u):$(id -g)").await?;
    Ok(said(&outcome))
}

/// Capabilities, new privileges, system calls, as the kernel tells a process.
async fn privileges(subject: &Subject) -> Found {
    let line =
        "grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' '  '";
    let found = said(&shell(&subject.sandbox, line).await?);
    let none = "0000000000000000";
    Ok(match found.as_str() {
        all if *all == format!("CapEff: {none} CapBnd: {none} NoNewPrivs: 1 Seccomp: 2") => {
            "none, system calls filtered".to_owned()
        }
        other => other.to_owned(),
    })
}

/// The limits as the guest sees them, in control groups of either version.
async fn limits(subject: &Subject) -> Found {
    let program = r#"
import resource
def first(*paths):
    for path in paths:
        try:
            return open("/sys/fs/cgroup/" + path).read().split()
        except OSError:
            pass
    return ["?"]
memory = first("memory.max", "memory/memory.limit_in_bytes")[0]
pids = first("pids.max", "pids/pids.max")[0]
cpu = first("cpu.max")
if len(cpu) == 1:
    cpu = first("cpu/cpu.cfs_quota_us") + first("cpu/cpu.cfs_period_us")
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
core = resource.getrlimit(resource.RLIMIT_CORE)[1]
print(f"memory {memory}, processes {pids}, CPU {'/'.join(cpu)}, files {soft}/{hard}, core {core}")
"#;
    let found = said(&python(&subject.sandbox, program).await?);
    let asked = ResourceLimits::default();
    let (soft, hard) = (asked.open_files_soft, asked.open_files_hard);
    let quota = asked.milli_cpus * 100;
    let (memory, pids) = (asked.memory, asked.pids);
    let expected = format!(
        "memory {memory}, processes {pids}, CPU {quota}/100000, files {soft}/{hard}, core 0"
    );
    Ok(if found == expected {
        "as asked for".to_owned()
    } else {
        found
    })
}

async fn interfaces(subject: &Subject) -> Found {
    let outcome = shell(
        &subject.sandbox,
        "tail -n +3 /proc/net/dev | cut -d: -f1 | xargs",
    )
    .await?;
    Ok(said(&outcome))
}

async fn root(subject: &Subject) -> Found {
    let line = "(echo > /stockade-look) 2> /dev/null && echo writable || echo read-only";
    shell(&subject.sandbox, line).await.map(|o| said(&o))
}

async fn work_directory(subject: &Subject) -> Found {
    let outcome = shell(
        &subject.sandbox,
        "stat -c '%u:%g %a' .; echo x > there && rm there",
    )
    .await?;
    Ok(said(&outcome))
}

async fn work_limit(subject: &Subject) -> Found {
    let line = "why=$(head -c 300M /dev/zero 2>&1 > full); stat -c %s full; rm full; echo $why >&2";
    let outcome = shell(&subject.sandbox, line).await?;
    let size: u64 = said(&outcome).parse().unwrap_or(0);
    let most = ResourceLimits::default().work_bytes;
    let is_full = outcome.stderr_text().contains("No space left");
    Ok(if is_full && size > most / 2 && size <= most {
        "enforced".to_owned()
    } else {
        format!(
            "{size} bytes were written: {}",
            outcome.stderr_text().trim()
        )
    })
}

async fn process_limit(subject: &Subject) -> Found {
    let program = "
import os, signal
made = []
try:
    while len(made) < 1000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        made.append(pid)
except BlockingIOError:
    pass
print(len(made))
for pid in made:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
";
    let outcome = python(&subject.sandbox, program).await?;
    let made: u64 = said(&outcome).parse().unwrap_or(0);
    let most = ResourceLimits::default().pids;
    Ok(if made > most / 2 && made < most {
        "enforced".to_owned()
    } else {
        format!("{made} processes were made; {}", ended(&outcome))
    })
}

async fn memory_limit(subject: &Subject) -> Found {
    let program =
        "held = [bytes(16 << 20).replace(b'\\0', b'x') for _ in range(128)]; print('not enforced')";
    let outcome = python(&subject.sandbox, program).await?;
    Ok(if outcome.out_of_memory {
        "enforced".to_owned()
    } else {
        format!("{}{}", said(&outcome), outcome.stderr_text())
    })
}

/// A small batch and a large file, in and out, by a host of that plane.
async fn files(subject: &Subject, plane: FilePlane) -> Found {
    let Bound { owner, .. } = &subject.bound;
    let config = DockerConfig::new(owner).file_plane(plane);
    let backend = DockerBackend::connect(&call(), config).await?;
    let sandbox = backend
        .acquire(&call(), &subject.key, &subject.spec)
        .await?;
    let mut sent = batch("look/small", 20, 1000);
    sent.extend(batch("look/large", 1, (4 * MIB) as usize));
    let names = (0..20).map(|number| format!("look/small/{number}"));
    let names: Vec<_> = names
        .chain(["look/large/0".to_owned()])
        .map(|name| path(&name))
        .collect();
    sandbox.write_files(&call(), sent).await?;
    let back = sandbox.read_files(&call(), ReadRequest::of(names)).await?;
    let total: u64 = back.iter().map(|file| file.content.len()).sum();
    sandbox.remove(&call(), "look", true).await?;
    Ok(if total == 20_000 + 4 * MIB {
        "both ways".to_owned()
    } else {
        format!("{total} bytes came back")
    })
}

async fn second_host(subject: &Subject) -> Found {
    let config = DockerConfig::new(&subject.bound.owner);
    let other = DockerBackend::connect(&call(), config).await?;
    let sandbox = other.acquire(&call(), &subject.key, &subject.spec).await?;
    Ok(freshness(&sandbox))
}

/// Another spec while the sandbox is in use.
async fn drift(subject: &Subject) -> Found {
    let spec = subject.bound.spec().env([("LOOK", "1")]).build().unwrap();
    let backend = &subject.bound.backend;
    let sandbox = backend.acquire(&call(), &subject.key, &spec).await?;
    Ok(freshness(&sandbox))
}

async fn dispose(subject: &Subject) -> Found {
    let backend = &subject.bound.backend;
    let removed = backend.dispose(&call(), &subject.key, Which::All).await?;
    Ok(match removed.folded() {
        None => format!("{} removed", removed.count),
        Some(failure) => failure.to_string(),
    })
}

async fn storage(bound: &Bound, storage: Storage) -> Found {
    let spec = bound.spec().storage(storage);
    let spec = match storage {
        // The image's own user is root, and this directory is in it.
        Storage::Root => spec.hardening(Hardening::AsImage).work_dir("/srv"),
        _ => spec,
    };
    bound.once(&format!("{storage:?}"), spec).await
}

async fn allowlist(bound: &Bound) -> Found {
    let rule = "example.org".parse().unwrap();
    let egress = Egress::from_rules([rule]).unwrap();
    bound.once("allowlist", bound.spec().egress(egress)).await
}

/// Another spec once nobody uses the sandbox.
async fn replaced(bound: &Bound) -> Found {
    let key = bound.key("replaced");
    let first = bound.spec().build().unwrap();
    let other = bound.spec().env([("LOOK", "1")]).build().unwrap();
    drop(bound.backend.acquire(&call(), &key, &first).await?);
    let sandbox = bound.backend.acquire(&call(), &key, &other).await?;
    let found = freshness(&sandbox);
    drop(sandbox);
    let removed = bound.backend.dispose(&call(), &key, Which::All).await?;
    Ok(removed
        .folded()
        .map_or(found, |failure| failure.to_string()))
}

async fn listed(bound: &Bound) -> Found {
    let (key, spec) = (bound.key("listed"), bound.spec().build().unwrap());
    let sandbox = bound.backend.acquire(&call(), &key, &spec).await?;
    let all = bound
        .backend
        .sandboxes(&call(), &SandboxFilter::default())
        .await?;
    let ours = all.iter().find(|found| found.id == *sandbox.id());
    let activity = bound.backend.activity(&call(), sandbox.id()).await?;
    drop(sandbox);
    let _ = bound.backend.dispose(&call(), &key, Which::All).await?;
    Ok(match (ours, activity) {
        (Some(ours), Some(Activity::Answered(_))) if ours.age.is_some() && ours.key == key => {
            format!("{:?}, answered", ours.state)
        }
        other => format!("{other:?}"),
    })
}

/// Why one ended that is gone.
async fn history(bound: &Bound) -> Found {
    let (key, spec) = (bound.key("history"), bound.spec().build().unwrap());
    let sandbox = bound.backend.acquire(&call(), &key, &spec).await?;
    let of = HistoryOf::instance(sandbox.id().clone());
    drop(sandbox);
    let _ = bound.backend.dispose(&call(), &key, Which::All).await?;
    let history = bound.backend.history(&call(), &of).await?;
    Ok(history
        .death
        .map_or_else(|| "nothing is known".to_owned(), |death| death.to_string()))
}

async fn reaped(bound: &Bound) -> Found {
    let (key, spec) = (bound.key("reaped"), bound.spec().build().unwrap());
    drop(bound.backend.acquire(&call(), &key, &spec).await?);
    let reaped = bound
        .backend
        .reap(&call(), &ReapFilter::everything())
        .await?;
    Ok(match &reaped.failures[..] {
        [] => format!("{} reaped, {} kept", reaped.sandboxes, reaped.kept),
        failures => format!("{failures:?}"),
    })
}
