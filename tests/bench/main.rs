//! What is promised, measured: ours beside the bare docker command that is
//! its floor, in turn, in one run. `cargo xtask bench [closed] [files] [lifecycle]` starts it.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(
    clippy::disallowed_methods,
    reason = "the floor is the bare command, outside the library"
)]

mod files;
mod lifecycle;
mod series;

use std::process::Command;

use stockade::exec::Stdin;
use stockade::{Backend as _, ExecRequest, SandboxKey, Which};
use stockade_tests::engine::{Host, PYTHON, call, spec, unique};

use series::{Series, docker, row, timed, timed_command};

/// How often each pair is measured.
const ROUNDS: usize = 30;

#[tokio::main]
async fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --benches` starts every bench once; there is nothing to test here.
        return;
    }
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|named| named == part);
    println!("medians of {ROUNDS} rounds in ms (fastest to slowest), ours and the floor in turn\n");
    println!("| what | ours | floor | bare command | ratio | goal |");
    println!("|---|---|---|---|---|---|");
    if wanted("closed") {
        let host = Host::new().await;
        acquire(&host).await;
        commands(&host).await;
        throughput(&host).await;
        host.finish().await;
    }
    if wanted("files") {
        files::measure().await;
    }
    if wanted("lifecycle") {
        lifecycle::measure().await;
    }
}

async fn acquire(host: &Host) {
    let spec = spec(PYTHON).build().expect("the spec is valid");
    let key = SandboxKey::new("bench", unique("bench"), "agent");
    let (mut cold, mut bare_run, mut warm, mut dispose, mut bare_rm) = Default::default();
    for round in 0..=ROUNDS {
        let key = key.clone().with_call(round.to_string());
        let sandbox = timed(&mut cold, host.backend.acquire(&call(), &key, &spec)).await;
        let again = timed(&mut warm, host.backend.acquire(&call(), &key, &spec)).await;
        drop((sandbox, again));
        let _ = timed(
            &mut dispose,
            host.backend.dispose(&call(), &key, Which::All),
        )
        .await;
        let name = unique("stockade-bench-floor");
        docker(
            &mut bare_run,
            &[
                "run",
                "-d",
                "--rm",
                "--network",
                "none",
                "--name",
                &name,
                PYTHON,
                "sleep",
                "60",
            ],
        );
        docker(&mut bare_rm, &["rm", "-f", &name]);
        if round == 0 {
            // The first round pays for the image's facts, once.
            for series in [
                &mut cold,
                &mut warm,
                &mut dispose,
                &mut bare_run,
                &mut bare_rm,
            ] {
                series.0.clear();
            }
        }
    }
    row(
        "closed acquire, cold",
        &cold,
        &bare_run,
        "docker run -d",
        "≤ 1.2×",
    );
    row(
        "closed acquire, warm",
        &warm,
        &bare_run,
        "docker run -d",
        "",
    );
    row("dispose by key", &dispose, &bare_rm, "docker rm -f", "");
}

async fn commands(host: &Host) {
    let spec = spec(PYTHON).build().expect("the spec is valid");
    let key = SandboxKey::new("bench", unique("bench"), "agent").with_call("1");
    let sandbox = host
        .backend
        .acquire(&call(), &key, &spec)
        .await
        .expect("a sandbox");
    let request = || {
        ExecRequest::argv(["/bin/true"])
            .build()
            .expect("the request is valid")
    };
    let mut opened = Series::default();
    timed(&mut opened, sandbox.exec(&call(), request())).await;
    let (mut ours, mut bare) = (Series::default(), Series::default());
    for _ in 0..ROUNDS {
        // As an agent uses it: several in a row, not one after each start of
        // a docker client, which empties the caches of a small machine.
        for _ in 0..10 {
            timed(&mut ours, sandbox.exec(&call(), request())).await;
        }
        docker(&mut bare, &["exec", sandbox.id().as_str(), "/bin/true"]);
    }
    row(
        "first command (opens the channel)",
        &opened,
        &bare,
        "docker exec",
        "",
    );
    row(
        "command on an open channel",
        &ours,
        &bare,
        "docker exec",
        "≤ 3 ms",
    );
    let _ = host.backend.dispose(&call(), &key, Which::All).await;
}

async fn throughput(host: &Host) {
    const BYTES: usize = 64 << 20;
    let mut limits = stockade::ResourceLimits::default();
    limits.milli_cpus = 2000;
    let spec = spec(PYTHON)
        .limits(limits)
        .build()
        .expect("the spec is valid");
    let key = SandboxKey::new("bench", unique("bench"), "agent").with_call("1");
    let sandbox = host
        .backend
        .acquire(&call(), &key, &spec)
        .await
        .expect("a sandbox");
    let count = BYTES.to_string();
    let (mut out, mut bare_out, mut into, mut bare_in) = Default::default();
    for _ in 0..5 {
        let argv = ["head", "-c", &count, "/dev/zero"];
        let request = ExecRequest::argv(argv)
            .output_limit(128 << 20)
            .build()
            .expect("valid");
        let outcome = timed(&mut out, sandbox.exec(&call(), request)).await;
        assert_eq!(outcome.stdout.len(), BYTES);
        docker(
            &mut bare_out,
            &[
                "exec",
                sandbox.id().as_str(),
                argv[0],
                argv[1],
                argv[2],
                argv[3],
            ],
        );
        let request = ExecRequest::argv(["wc", "-c"])
            .stdin(Stdin::bytes(vec![0; BYTES]))
            .build();
        let outcome = timed(&mut into, sandbox.exec(&call(), request.expect("valid"))).await;
        assert_eq!(outcome.stdout_text().trim(), count);
        let line = format!(
            "head -c {count} /dev/zero | docker exec -i {} wc -c",
            sandbox.id()
        );
        timed_command(&mut bare_in, Command::new("sh").args(["-c", &line]));
    }
    row("64 MiB out", &out, &bare_out, "docker exec", "");
    row("64 MiB in", &into, &bare_in, "docker exec -i", "");
    let _ = host.backend.dispose(&call(), &key, Which::All).await;
}
