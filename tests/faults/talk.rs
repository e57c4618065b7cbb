//! What is said over the channel, so that every kind of frame passes.

use std::time::Duration;

use stockade::exec::{Background, ProcessOutput, TtySize};
use stockade::files::ListRequest;
use stockade::{Call, ErrorKind, ExecRequest, ExecStatus, Result, Sandbox, Stdin};
use stockade_tests::engine::docker;
use stockade_tests::files::path;
use stockade_tests::frames::{FrameFault, FrameRule, Place, Sender, name};
use stockade_wire::Kind;
use tokio::time::{sleep, timeout};

use crate::act::{Acted, Finding, judge};
use crate::world::World;

/// One conversation on a channel of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// A command with input and output.
    Command,
    /// More of everything than fits at once.
    Long,
    /// A command that does not read its input.
    Unread,
    /// A terminal that is resized, and a signal.
    Terminal,
    /// A command that is cancelled.
    Cancelled,
    /// A command that goes on by itself.
    Background,
    /// A command whose processes are said not to have ended.
    LeftTree,
    /// A sandbox that is stopped under a command.
    Stopped,
    /// Files by the guest runtime.
    Files,
}

impl Talk {
    pub(crate) const ALL: [Self; 9] = [
        Self::Command,
        Self::Long,
        Self::Unread,
        Self::Terminal,
        Self::Cancelled,
        Self::Background,
        Self::LeftTree,
        Self::Stopped,
        Self::Files,
    ];

    /// The kinds of frames that it is about, which pass in it.
    pub(crate) fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Command => &[
                Kind::Hello,
                Kind::Welcome,
                Kind::Ping,
                Kind::Pong,
                Kind::Start,
                Kind::Started,
                Kind::Stdin,
                Kind::StdinEnd,
                Kind::Stdout,
                Kind::Stderr,
                Kind::OutputEnd,
                Kind::Exit,
            ],
            Self::Long => &[Kind::StartMore, Kind::Credit],
            Self::Unread => &[Kind::StdinClosed],
            Self::Terminal => &[Kind::Resize, Kind::Signal],
            Self::Cancelled => &[Kind::End],
            Self::Background => &[Kind::Detach],
            Self::LeftTree => &[Kind::KillAll, Kind::KilledAll],
            Self::Stopped => &[Kind::Goodbye],
            Self::Files => &[Kind::FileRequest, Kind::FileData, Kind::FileAnswer],
        }
    }

    /// What is wrong with it already, so that there is more to go wrong.
    pub(crate) fn base(self) -> Vec<FrameRule> {
        match self {
            Self::LeftTree => vec![FrameRule {
                place: Place {
                    from: Sender::Guest,
                    kind: name(Kind::Exit),
                    number: 1,
                },
                fault: FrameFault::TreeLeft,
            }],
            _ => Vec::new(),
        }
    }

    /// Holds it, with commands that may take so long. What comes of it is what
    /// was asked for, or a finding.
    pub(crate) async fn hold(
        self,
        world: &World,
        call: &Call,
        time: Duration,
    ) -> Result<Acted, Finding> {
        let sandbox = world.sandbox();
        let acted = match self {
            Self::Command => command(&sandbox, call, time).await,
            Self::Long => long(&sandbox, call, time).await,
            Self::Unread => unread(&sandbox, call, time).await,
            Self::Terminal => terminal(&sandbox, call, time).await,
            Self::Cancelled => cancelled(&sandbox, call).await,
            Self::Background => background(&sandbox, call, time).await,
            Self::LeftTree => left_tree(&sandbox, call, time).await,
            Self::Stopped => stopped(world, &sandbox, call).await,
            Self::Files => files(&sandbox, call).await,
        };
        match acted {
            Ok(acted) => acted,
            Err(error) => Ok(Acted::Failed(error)),
        }
    }
}

type Held = Result<Result<Acted, Finding>>;

async fn command(sandbox: &Sandbox, call: &Call, time: Duration) -> Held {
    let request = ExecRequest::shell("echo out; echo err >&2; cat").stdin(Stdin::bytes("in\n"));
    let outcome = sandbox.exec(call, request.timeout(time).build()?).await?;
    Ok(judge(&outcome, b"out\nin\n", b"err\n"))
}

async fn long(sandbox: &Sandbox, call: &Call, time: Duration) -> Held {
    let input = vec![b'x'; 600 * 1024];
    let request = ExecRequest::argv(["cat"])
        .env("LONG", "x".repeat(100_000))
        .stdin(Stdin::bytes(input.clone()))
        .timeout(time);
    let outcome = sandbox.exec(call, request.build()?).await?;
    Ok(judge(&outcome, &input, b""))
}

async fn unread(sandbox: &Sandbox, call: &Call, time: Duration) -> Held {
    let request = ExecRequest::argv(["true"])
        .stdin(Stdin::bytes(vec![b'x'; 1024 * 1024]))
        .timeout(time);
    let outcome = sandbox.exec(call, request.build()?).await?;
    Ok(judge(&outcome, b"", b""))
}

async fn terminal(sandbox: &Sandbox, call: &Call, time: Duration) -> Held {
    let line = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let request = ExecRequest::shell(line)
        .tty(Some(TtySize {
            rows: 24,
            columns: 80,
        }))
        .timeout(time);
    let mut process = sandbox.spawn(call, request.build()?).await?;
    let mut output = process.take_output().expect("it has an output");
    // It may never come, and the command has its timeout.
    let _ = timeout(time, until(&mut output, "ready")).await;
    process
        .resize(TtySize {
            rows: 25,
            columns: 81,
        })
        .await?;
    process.signal(15).await?;
    let exit = process.wait().await?;
    Ok(match exit.status {
        ExecStatus::Exited(0) => Ok(Acted::Done),
        ExecStatus::SupervisorLost | ExecStatus::TimedOut => Ok(Acted::CutShort),
        _ => Err(format!(
            "a fault of the channel became an outcome: {exit:?}"
        )),
    })
}

async fn until(output: &mut ProcessOutput, word: &str) {
    let mut seen = String::new();
    while !seen.contains(word)
        && let Some(chunk) = output.next().await
    {
        seen.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
}

/// The call ends before the command does.
async fn cancelled(sandbox: &Sandbox, call: &Call) -> Held {
    let request = ExecRequest::argv(["sleep", "100"]).timeout(Duration::from_secs(100));
    let call = call.child(Duration::from_millis(1500));
    let outcome = sandbox.exec(&call, request.build()?).await?;
    Ok(match outcome.status {
        ExecStatus::Cancelled => Ok(Acted::Done),
        ExecStatus::SupervisorLost => Ok(Acted::CutShort),
        _ => Err(format!(
            "a fault of the channel became an outcome: {outcome:?}"
        )),
    })
}

async fn background(sandbox: &Sandbox, call: &Call, time: Duration) -> Held {
    let request = ExecRequest::argv(["sleep", "100"])
        .background(Background::Keep)
        .timeout(Duration::from_secs(100));
    sandbox.spawn(call, request.build()?).await?.detach();
    // What comes after it on the same channel has passed behind it.
    let request = ExecRequest::argv(["true"]).timeout(time);
    let outcome = sandbox.exec(call, request.build()?).await?;
    Ok(judge(&outcome, b"", b""))
}

async fn left_tree(sandbox: &Sandbox, call: &Call, time: Duration) -> Held {
    let request = ExecRequest::argv(["true"]).timeout(time);
    let outcome = sandbox.exec(call, request.build()?).await?;
    Ok(judge(&outcome, b"", b""))
}

/// The engine asks PID 1 to end, which says goodbye.
async fn stopped(world: &World, sandbox: &Sandbox, call: &Call) -> Held {
    let id = world.id();
    let started = Sender::Guest.line(Kind::Started);
    let stop = async {
        while !world.client.frames().contains(&started) {
            sleep(Duration::from_millis(10)).await;
        }
        let _ = docker(["kill", "--signal", "TERM", &id]);
        std::future::pending::<()>().await;
    };
    let request = ExecRequest::argv(["sleep", "100"]).timeout(Duration::from_secs(100));
    let request = request.build()?;
    let outcome = tokio::select! {
        outcome = sandbox.exec(call, request) => outcome,
        () = stop => unreachable!("it never ends"),
    };
    Ok(match outcome {
        Err(error) if error.kind() == ErrorKind::Lost => Ok(Acted::Done),
        Err(error) => Ok(Acted::Failed(error)),
        Ok(outcome) if outcome.status == ExecStatus::SupervisorLost => Ok(Acted::CutShort),
        Ok(outcome) => Err(format!("a lost sandbox became an outcome: {outcome:?}")),
    })
}

async fn files(sandbox: &Sandbox, call: &Call) -> Held {
    sandbox.write_file(call, "d/file", "content").await?;
    let content = sandbox.read_file(call, "d/file").await?;
    let listing = sandbox.list_dir(call, ListRequest::new(path("d"))).await?;
    sandbox.remove(call, "d", true).await?;
    Ok(match (&content[..], listing.entries.len()) {
        (b"content", 1) => Ok(Acted::Done),
        other => Err(format!("a fault of the channel became content: {other:?}")),
    })
}
