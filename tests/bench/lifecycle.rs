//! Sandboxes taken over, replaced, listed, reaped and made many at a time,
//! beside the bare commands.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures_util::future::join_all;
use stockade::{Backend as _, ReapFilter, SandboxKey, SandboxSpec, Which};
use stockade_docker::operate::SandboxFilter;
use stockade_tests::engine::{Host, PYTHON, call, docker_ok, spec, unique};

use crate::ROUNDS;
use crate::series::{Series, docker, row, timed, timed_command};

/// How many are listed and reaped at once.
const MANY: usize = 50;

/// How many are made at the same time.
const TOGETHER: usize = 20;

/// How often what takes many sandboxes is measured.
const FEW_ROUNDS: usize = 5;

/// How often a list of the same sandboxes is made.
const LISTS: usize = 5;

pub(crate) async fn measure() {
    let host = Host::new().await;
    replace(&host).await;
    together(&host).await;
    many(&host).await;
    host.finish().await;
}

/// Alternates between two specs of one key while nobody uses the sandbox.
async fn replace(host: &Host) {
    let key = SandboxKey::new("bench", unique("bench"), "agent").with_call("1");
    let specs = ["first", "second"].map(|variant| {
        let spec = spec(PYTHON).env([("VARIANT", variant)]).build();
        spec.expect("the spec is valid")
    });
    let name = unique("stockade-bench-floor");
    let (mut ours, mut floor) = (Series::default(), Series::default());
    for round in 0..=ROUNDS {
        let call = call();
        let acquire = host.backend.acquire(&call, &key, &specs[round % 2]);
        let sandbox = timed(&mut ours, acquire).await;
        assert!(sandbox.freshly_created(), "it was replaced");
        drop(sandbox);
        let again = format!("docker rm -f {name}; {}", bare_run(&name));
        timed_command(&mut floor, Command::new("sh").args(["-c", &again]));
        if round == 0 {
            // There was nothing to replace yet.
            ours.0.clear();
            floor.0.clear();
        }
    }
    docker_ok(["rm", "-f", &name]);
    let _ = host.backend.dispose(&call(), &key, Which::All).await;
    let command = "docker rm -f; docker run -d";
    row(
        "acquire that replaces an idle one of another spec",
        &ours,
        &floor,
        command,
        "",
    );
}

/// Made at the same time, each on its own.
async fn together(host: &Host) {
    let (mut ours, mut floor) = (Series::default(), Series::default());
    for _ in 0..FEW_ROUNDS {
        let thread = unique("bench");
        let made = async {
            make(host, &thread, TOGETHER).await;
            Ok::<_, std::convert::Infallible>(())
        };
        timed(&mut ours, made).await;
        let removed = host.backend.dispose_scope(&call(), "bench", &thread).await;
        assert_eq!(removed.expect("they are removed").count, TOGETHER as u64);
        let label = unique("stockade-bench-floor");
        floor.time(|| run_bare(&label, TOGETHER));
        remove_bare(&label);
    }
    let what = format!("{TOGETHER} cold acquires at once");
    let command = format!("{TOGETHER} times docker run -d at once");
    row(&what, &ours, &floor, &command, "");
}

/// Listed and reaped: idle ones, of which each is asked to retire, and all
/// there are, in use or not.
async fn many(host: &Host) {
    let (mut list, mut bare_list) = (Series::default(), Series::default());
    let (mut idle, mut all) = (Series::default(), Series::default());
    let mut bare_remove = Series::default();
    for _ in 0..FEW_ROUNDS {
        for (reaped, filter) in [
            (&mut idle, ReapFilter::everything()),
            (&mut all, ReapFilter::everything().including_in_use()),
        ] {
            make(host, &unique("bench"), MANY).await;
            for _ in 0..LISTS {
                let call = call();
                let filter = SandboxFilter::default();
                let found = timed(&mut list, host.backend.sandboxes(&call, &filter)).await;
                assert_eq!(found.len(), MANY);
            }
            let done = timed(reaped, host.backend.reap(&call(), &filter)).await;
            assert_eq!(done.sandboxes, MANY as u64, "{done:?}");
        }
        let label = unique("stockade-bench-floor");
        run_bare(&label, MANY);
        for _ in 0..LISTS {
            let line = format!(
                "docker ps --all --filter label={label} && \
                 docker inspect $(docker ps --all --quiet --filter label={label})"
            );
            timed_command(&mut bare_list, Command::new("sh").args(["-c", &line]));
        }
        bare_remove.time(|| remove_bare(&label));
    }
    let inspect = "docker ps; docker inspect $(docker ps -q)";
    row(
        &format!("ps of {MANY} sandboxes"),
        &list,
        &bare_list,
        inspect,
        "",
    );
    let remove = format!("docker rm -f of {MANY}");
    row(
        &format!("reap of {MANY}, asked each"),
        &idle,
        &bare_remove,
        &remove,
        "",
    );
    row(
        &format!("reap of {MANY}, in use or not"),
        &all,
        &bare_remove,
        &remove,
        "",
    );
}

/// Acquires so many at once, and drops the handles.
async fn make(host: &Host, thread: &str, count: usize) {
    let spec: Arc<SandboxSpec> = spec(PYTHON).build().expect("the spec is valid");
    let made = (0..count).map(async |number| {
        let key = SandboxKey::new("bench", thread, "agent").with_call(number.to_string());
        host.backend.acquire(&call(), &key, &spec).await
    });
    for sandbox in join_all(made).await {
        sandbox.expect("a sandbox");
    }
}

fn bare_run(label: &str) -> String {
    format!("docker run -d --rm --network none --name {label} {PYTHON} sleep 600")
}

/// Starts so many containers of a label at once.
fn run_bare(label: &str, count: usize) {
    let words = [
        "run",
        "-d",
        "--rm",
        "--network",
        "none",
        "--label",
        label,
        PYTHON,
        "sleep",
        "600",
    ];
    let start = |_| -> Child {
        let mut command = Command::new("docker");
        let command = command.args(words).stdout(Stdio::null());
        command.spawn().expect("the client starts")
    };
    let started: Vec<Child> = (0..count).map(start).collect();
    for mut child in started {
        assert!(child.wait().expect("it ends").success());
    }
}

/// Removes every container of a label by one command.
fn remove_bare(label: &str) {
    let filter = format!("label={label}");
    let ids = docker_ok(["ps", "--all", "--quiet", "--filter", &filter]);
    let words: Vec<&str> = ["rm", "-f"].into_iter().chain(ids.lines()).collect();
    docker(&mut Series::default(), &words);
}
