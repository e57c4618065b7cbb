//! Each operation, done once, and what of it may be told.

use std::time::Duration;

use stockade::disposal::RemovalFailure;
use stockade::exec::NotStartedWhy;
use stockade::files::ListRequest;
use stockade::{
    Backend as _, Call, Error, ErrorKind, ExecOutcome, ExecRequest, ExecStatus, ReapFilter,
    Removed, Sandbox, Stdin, Which,
};
use stockade_docker::operate::{Activity, HistoryOf, PruneFilter, SandboxFilter};
use stockade_tests::engine::docker;
use stockade_tests::files::path;
use tokio::time::sleep;

use crate::scenario::Scenario;
use crate::world::World;

/// A rule that was broken, in words.
pub(crate) type Finding = String;

/// What became of an operation that ended as it may.
#[derive(Debug)]
pub(crate) enum Acted {
    /// Everything was done, and is as it was asked for.
    Done,
    /// The command is said to be cut short, which code in the sandbox can bring
    /// about too, and what it wrote by then is there.
    CutShort,
    /// Some of it is said not to be removed.
    Partly(Vec<RemovalFailure>),
    Failed(Error),
}

impl Scenario {
    /// Does it. What comes of it is what was asked for, or a finding.
    pub(crate) async fn act(self, world: &mut World, call: &Call) -> Result<Acted, Finding> {
        match self {
            Self::Bind => Ok(world
                .connect()
                .await
                .map_or_else(Acted::Failed, |_| Acted::Done)),
            Self::AcquireOnNewEngine
            | Self::Acquire
            | Self::AcquireAnother
            | Self::AcquireWithoutUndo
            | Self::AcquireWithPull
            | Self::AcquireWithBuild
            | Self::AcquireOnDisk => acquire(world, call, true).await,
            Self::AcquireWhatIsThere => acquire(world, call, false).await,
            Self::AcquireWhatHasEnded => acquire(world, call, false).await,
            Self::AcquireWhatHasDrifted => acquire(world, call, true).await,
            Self::Close => abandon_and_close(world, call).await,
            Self::Exec | Self::ExecBesideDeadRelay => exec(world, call).await,
            Self::ExecWhilePaused => exec_while_paused(world, call).await,
            Self::Stat => stat(&world.sandbox(), call).await,
            Self::WriteTar => write(&world.sandbox(), call).await,
            Self::ReadTar => read(&world.sandbox(), call).await,
            Self::FilesOfGuest => files(&world.sandbox(), call).await,
            Self::Dispose | Self::DisposeOfVolume => dispose(world, call, Which::All).await,
            Self::DisposeKind => {
                let kind = world.spec.kind().clone();
                dispose(world, call, Which::Kind(kind)).await
            }
            Self::DisposeInstance => {
                let id = world.sandbox().id().clone();
                dispose(world, call, Which::Instance(id)).await
            }
            Self::DisposeWithCalls => dispose(world, call, Which::AllWithCalls).await,
            Self::DisposeScope => {
                world.sandbox = None;
                let (scope, thread) = (&world.key.scope, &world.key.thread_id);
                let removed = world.backend.dispose_scope(call, scope, thread).await;
                removed_all(removed, 1)
            }
            Self::List => list(world, call).await,
            Self::Activity => activity(world, call).await,
            Self::History => history(world, call).await,
            Self::Usage => {
                let usage = world.backend.usage(call).await;
                Ok(usage.map_or_else(Acted::Failed, |_| Acted::Done))
            }
            Self::Prune => prune(world, call).await,
            Self::Reap | Self::ReapOfVolume => reap(world, call, ReapFilter::everything()).await,
            Self::ReapUnused => reap(world, call, ReapFilter::default()).await,
        }
    }
}

async fn acquire(world: &mut World, call: &Call, fresh: bool) -> Result<Acted, Finding> {
    match world.acquire(call).await {
        Ok(sandbox) => {
            // What is there may have had to be made anew, but only when it is
            // gone: the next look at it asserts that.
            let made = sandbox.freshly_created();
            world.sandbox = Some(sandbox);
            match made == fresh {
                true => Ok(Acted::Done),
                false => Err(format!("freshly created: {made}, and not {fresh}")),
            }
        }
        Err(error) => Ok(Acted::Failed(error)),
    }
}

/// Cancels an acquire as soon as its container is being made.
async fn abandon_and_close(world: &mut World, call: &Call) -> Result<Acted, Finding> {
    {
        let abandoned = call.child(Duration::from_secs(60));
        let acquire = world.acquire(&abandoned);
        let begun = async {
            while !world.client.seen().iter().any(|verb| verb == "run") {
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            biased;
            acquired = acquire => if let Err(error) = acquired {
                return Ok(Acted::Failed(error));
            },
            () = begun => {}
        }
    }
    match world.backend.close(call).await {
        Ok(closed) if closed.is_clean() => Ok(Acted::Done),
        Ok(closed) => Ok(Acted::Partly(closed.failures)),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn exec(world: &World, call: &Call) -> Result<Acted, Finding> {
    let request = ExecRequest::shell("echo out; echo err >&2; cat")
        .stdin(Stdin::bytes("in\n"))
        .timeout(Duration::from_secs(30));
    let request = request.build().map_err(|error| error.to_string())?;
    match world.sandbox().exec(call, request).await {
        Ok(outcome) => judge(&outcome, b"out\nin\n", b"err\n"),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

/// Whether an outcome is the program's own, or says that it is not.
pub(crate) fn judge(outcome: &ExecOutcome, stdout: &[u8], stderr: &[u8]) -> Result<Acted, Finding> {
    let begins = stdout.starts_with(&outcome.stdout) && stderr.starts_with(&outcome.stderr);
    let whole = outcome.stdout == stdout && outcome.stderr == stderr;
    match outcome.status {
        ExecStatus::Exited(0) if whole => Ok(Acted::Done),
        ExecStatus::SupervisorLost | ExecStatus::TimedOut | ExecStatus::Cancelled if begins => {
            Ok(Acted::CutShort)
        }
        // It never ran, since PID 1 did not understand what was to run.
        ExecStatus::NotStarted(ref why) if why.why == NotStartedWhy::Invalid => Ok(Acted::CutShort),
        _ => Err(format!("a fault of docker became an outcome: {outcome:?}")),
    }
}

/// The same, while somebody thaws the sandbox that the command waits for, at
/// some time after the wait has begun.
async fn exec_while_paused(world: &World, call: &Call) -> Result<Acted, Finding> {
    let waits = || world.client.seen().iter().any(|verb| verb == "events");
    let id = world.id();
    let thaw = async {
        while !waits() {
            sleep(Duration::from_millis(20)).await;
        }
        sleep(Duration::from_millis(700)).await;
        let _ = docker(["unpause", &id]);
        std::future::pending::<()>().await;
    };
    let acted = tokio::select! {
        acted = exec(world, call) => acted,
        () = thaw => unreachable!("it never ends"),
    };
    // Where the wait never began.
    let _ = docker(["unpause", &id]);
    acted
}

async fn stat(sandbox: &Sandbox, call: &Call) -> Result<Acted, Finding> {
    match sandbox.stat(call, "nothing").await {
        Ok(None) => Ok(Acted::Done),
        Ok(Some(stat)) => Err(format!("a fault of docker became content: {stat:?}")),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn write(sandbox: &Sandbox, call: &Call) -> Result<Acted, Finding> {
    if let Err(error) = sandbox.write_file(call, "in/file", "content").await {
        return Ok(Acted::Failed(error));
    }
    // What is said to be written is there.
    let look = ExecRequest::shell("cat in/file; rm -r in").build();
    let look = look.map_err(|error| error.to_string())?;
    let patient = stockade_tests::engine::call();
    match sandbox.exec(&patient, look).await {
        Ok(outcome) if outcome.stdout == "content" => Ok(Acted::Done),
        // It is gone, with what was written.
        Err(error) if error.kind() == ErrorKind::Lost => Ok(Acted::Failed(error)),
        other => Err(format!("it is said to be written, and is not: {other:?}")),
    }
}

async fn read(sandbox: &Sandbox, call: &Call) -> Result<Acted, Finding> {
    match sandbox.read_file(call, "out/file").await {
        Ok(content) if &content[..] == b"content\n" => Ok(Acted::Done),
        Ok(content) => Err(format!("a fault of docker became content: {content:?}")),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn files(sandbox: &Sandbox, call: &Call) -> Result<Acted, Finding> {
    let moved = async {
        sandbox.write_file(call, "d/file", "content").await?;
        let content = sandbox.read_file(call, "d/file").await?;
        let listing = sandbox.list_dir(call, ListRequest::new(path("d"))).await?;
        sandbox.remove(call, "d", true).await?;
        Ok((content, listing.entries.len()))
    };
    match moved.await {
        Ok((content, 1)) if &content[..] == b"content" => Ok(Acted::Done),
        Ok(other) => Err(format!("a fault of docker became content: {other:?}")),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn dispose(world: &mut World, call: &Call, which: Which) -> Result<Acted, Finding> {
    let sandboxes = u64::from(world.sandbox.take().is_some());
    let removed = world.backend.dispose(call, &world.key, which).await;
    removed_all(removed, sandboxes)
}

/// Whether everything is gone that is not said to be left is seen by the
/// engine; here it is only counted.
fn removed_all(removed: Result<Removed, Error>, sandboxes: u64) -> Result<Acted, Finding> {
    match removed {
        Ok(removed) if !removed.is_clean() => Ok(Acted::Partly(removed.failures)),
        // One whose removal is found out by its absence may count or not.
        Ok(removed) if removed.count <= sandboxes => Ok(Acted::Done),
        Ok(removed) => Err(format!(
            "{} sandboxes removed of {sandboxes}",
            removed.count
        )),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn reap(world: &mut World, call: &Call, filter: ReapFilter) -> Result<Acted, Finding> {
    // One that this process has a channel to is in use.
    world.sandbox = None;
    match world.backend.reap(call, &filter).await {
        Ok(reaped) if !reaped.is_clean() => Ok(Acted::Partly(reaped.failures)),
        Ok(_) => Ok(Acted::Done),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn list(world: &World, call: &Call) -> Result<Acted, Finding> {
    let listed = world
        .backend
        .sandboxes(call, &SandboxFilter::default())
        .await;
    match listed {
        Ok(listed) if listed.len() == 1 && listed[0].id.as_str() == world.id() => Ok(Acted::Done),
        Ok(listed) => Err(format!("a fault of docker became a list: {listed:?}")),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn activity(world: &World, call: &Call) -> Result<Acted, Finding> {
    match world.backend.activity(call, world.sandbox().id()).await {
        // That it did not answer is what an operator is told.
        Ok(Some(Activity::Answered(_) | Activity::Silent { .. })) => Ok(Acted::Done),
        Ok(other) => Err(format!("a fault of docker became an activity: {other:?}")),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn history(world: &World, call: &Call) -> Result<Acted, Finding> {
    let of = HistoryOf::instance(world.sandbox().id().clone());
    match world.backend.history(call, &of).await {
        Ok(history) if history.exists && history.death.is_none() => Ok(Acted::Done),
        Ok(history) => Err(format!("a fault of docker became a history: {history:?}")),
        Err(error) => Ok(Acted::Failed(error)),
    }
}

async fn prune(world: &World, call: &Call) -> Result<Acted, Finding> {
    let filter = PruneFilter::default().all_images();
    match world.backend.prune(call, &filter).await {
        Ok(pruned) if !pruned.is_clean() => Ok(Acted::Partly(pruned.failures)),
        Ok(_) => Ok(Acted::Done),
        Err(error) => Ok(Acted::Failed(error)),
    }
}
