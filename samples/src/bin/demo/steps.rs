//! The steps of the demo, in the order in which they are shown.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use stockade::exec::Stdin;
use stockade::{
    Backend as _, Call, ExecOutcome, ExecRequest, ExecStatus, Image, IsolationScope, SandboxKey,
    SandboxSpec, Which,
};

use crate::Stage;
use crate::table::{Table, timed};

pub(crate) type Shown = Result<(), Box<dyn Error>>;

/// The program that a model might have written; it goes in as an argument,
/// and its data on standard input.
const PROGRAM: &str = include_str!("../../../programs/manufacturers.py");

/// A real program over a real data set.
pub(crate) async fn python_over_data(call: &Call, stage: &Stage, table: &mut Table) -> Shown {
    let rows = stage.data.iter().filter(|byte| **byte == b'\n').count();
    println!("1. A Python program over {rows} rows of data, with no network and hard limits\n");
    let spec = spec(&stage.python)?;
    let key = SandboxKey::new("demo", "python", "agent");
    // The first acquire of an image looks into it once; the second is what
    // every later conversation pays.
    let first = stage
        .backend
        .acquire(call, &key.clone().with_call("first"), &spec)
        .await?;
    dispose(call, stage, &key.clone().with_call("first")).await?;
    drop(first);
    let key = key.with_call("second");
    let acquired = timed(stage.backend.acquire(call, &key, &spec)).await;
    let sandbox = acquired.value?;
    let opened = timed(sandbox.exec(call, ExecRequest::argv(["true"]).build()?)).await;
    opened.value?;
    let again = timed(sandbox.exec(call, ExecRequest::argv(["true"]).build()?)).await;
    again.value?;
    let request = ExecRequest::argv(["python3", "-c", PROGRAM])
        .stdin(Stdin::bytes(stage.data.clone()))
        .timeout(Duration::from_secs(60))
        .build()?;
    let ran = timed(sandbox.exec(call, request)).await;
    let outcome = ran.value?;
    expect(&outcome, ExecStatus::Exited(0))?;
    for line in outcome.stdout_text().lines() {
        println!("     {line}");
    }
    println!(
        "\n   exit code 0, {:.2} s of CPU, {} MiB at its peak",
        (outcome.times.cpu_user + outcome.times.cpu_system).as_secs_f64(),
        outcome.peak_memory / (1024 * 1024)
    );
    let disposed = timed(dispose(call, stage, &key)).await;
    disposed.value?;

    let [created, executed, removed] = stage.floor.container(&stage.python)?;
    let bare = stage
        .floor
        .run(&stage.python, &["python3", "-c", PROGRAM], &stage.data)?;
    if bare.stdout.as_bytes() != outcome.stdout {
        return Err("the bare docker command answered something else".into());
    }
    table.row("acquire a sandbox", acquired.took, "docker run -d", created);
    table.row(
        "first command (opens the channel)",
        opened.took,
        "docker exec",
        executed,
    );
    table.row("every further command", again.took, "docker exec", executed);
    table.row(
        "the Python program",
        ran.took,
        "docker run --rm -i",
        bare.took,
    );
    table.row("dispose", disposed.took, "docker rm -f", removed);
    Ok(())
}

/// An image that holds one program and nothing else: no shell, no libraries.
pub(crate) async fn from_scratch(call: &Call, stage: &Stage, table: &mut Table) -> Shown {
    println!(
        "\n3. A program in a FROM scratch image: no shell, no library, nothing but what the engine adds\n"
    );
    let spec = spec(&stage.scratch)?;
    let key = SandboxKey::new("demo", "scratch", "agent").with_call("1");
    let sandbox = stage.backend.acquire(call, &key, &spec).await?;
    let request = ExecRequest::argv(["/count"])
        .stdin(Stdin::bytes(stage.data.clone()))
        .build()?;
    let ran = timed(sandbox.exec(call, request)).await;
    let outcome = ran.value?;
    expect(&outcome, ExecStatus::Exited(0))?;
    println!("     {}", outcome.stdout_text().trim_end());
    let shell = sandbox
        .exec(call, ExecRequest::shell("echo hello").build()?)
        .await?;
    println!("     and a shell line there: {}", shell.status);
    dispose(call, stage, &key).await?;
    let bare = stage.floor.run(&stage.scratch, &["/count"], &stage.data)?;
    table.row(
        "the program FROM scratch",
        ran.took,
        "docker run --rm -i",
        bare.took,
    );
    Ok(())
}

/// What a command that does not end leaves: its partial output, and nothing else.
pub(crate) async fn timeout(call: &Call, stage: &Stage, table: &mut Table) -> Shown {
    println!("\n4. A command that times out, with children that try to survive it\n");
    let spec = spec(&stage.python)?;
    let key = SandboxKey::new("demo", "timeout", "agent").with_call("1");
    let sandbox = stage.backend.acquire(call, &key, &spec).await?;
    let stubborn = "trap '' TERM INT HUP; echo step 1; setsid sleep 301 & (sleep 302 &) ; echo step 2; sleep 303";
    let request = ExecRequest::shell(stubborn)
        .timeout(Duration::from_secs(2))
        .build()?;
    let ran = timed(sandbox.exec(call, request)).await;
    let outcome = ran.value?;
    expect(&outcome, ExecStatus::TimedOut)?;
    println!("     status: {}; its output so far:", outcome.status);
    for line in outcome.stdout_text().lines() {
        println!("       {line}");
    }
    let look = ExecRequest::argv(["ps", "-eo", "args"]).build()?;
    let after = timed(sandbox.exec(call, look)).await;
    let processes = after.value?;
    let survivors = processes
        .stdout_text()
        .lines()
        .filter(|line| line.contains("sleep 30"))
        .count();
    if survivors > 0 || !outcome.tree_ended {
        return Err(format!("{survivors} processes of the command survived it").into());
    }
    println!("     processes of it that are left: {survivors}; the sandbox runs the next command");
    dispose(call, stage, &key).await?;
    let over = ran.took.saturating_sub(Duration::from_secs(2));
    table.row_without_floor(
        "end of the tree after its 2 s",
        over,
        "docker exec cannot end it",
    );
    Ok(())
}

/// The proof is the engine's own list.
pub(crate) async fn nothing_left(call: &Call, stage: &Stage) -> Shown {
    let _ = stage.backend.close(call).await?;
    let left = stage.floor.left_of("stockade-demo")?;
    if !left.is_empty() {
        return Err(format!("left behind: {}", left.join(", ")).into());
    }
    println!("\n5. Nothing is left: no container, no volume of a sandbox");
    Ok(())
}

pub(crate) fn spec(image: &str) -> Result<Arc<SandboxSpec>, Box<dyn Error>> {
    Ok(SandboxSpec::builder("demo")
        .image(Image::reference(image))
        .isolation_scope(IsolationScope::Call)
        .build()?)
}

pub(crate) async fn dispose(call: &Call, stage: &Stage, key: &SandboxKey) -> Shown {
    let removed = stage.backend.dispose(call, key, Which::All).await?;
    match removed.folded() {
        None => Ok(()),
        Some(failure) => Err(failure.to_string().into()),
    }
}

pub(crate) fn expect(outcome: &ExecOutcome, status: ExecStatus) -> Shown {
    if outcome.status == status {
        return Ok(());
    }
    Err(format!(
        "the program ended otherwise ({}): {}",
        outcome.status,
        outcome.stderr_text()
    )
    .into())
}
