//! Starting a guard, and following it to its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout};

use super::Client;
use crate::argv::ContainerId;
use crate::bind::FolderLoan;
use crate::bounds::Bounds;
use crate::error::{Aftermath, CallError, CallErrorKind, Called};
use crate::hold::{Guard, Hold, HoldRequest, Life, Lock, Patience, Report, Said};
use crate::log::{Invocation, Outcome};
use crate::process::{Ended, Process};
use crate::stream::Ending;
use crate::undo::{FailedUndo, Undo};
use crate::verb::{Exit, Output, Verb};
use crate::verbs::{PauseContainer, UnpauseContainer};

const PAUSE: &str = PauseContainer::NAME;
const UNPAUSE: &str = UnpauseContainer::NAME;

/// How much longer than its docker a guard may take to say that it has killed
/// it.
const LATE: Duration = Duration::from_secs(2);

type Answer = Result<(), CallError>;

/// A guard, as its watcher has it.
struct Watched {
    container: ContainerId,
    process: Process,
    report: OwnedReadHalf,
    life: Arc<Life>,
    folder: FolderLoan,
    /// Kept locked while the thaw may be left to us.
    _lock: Option<Lock>,
    attempt: Option<Attempt>,
    place: Option<OwnedSemaphorePermit>,
    queued: Duration,
    /// Told when the container is paused, or could not be.
    held: Option<oneshot::Sender<Answer>>,
}

/// Docker, as a guard runs it.
struct Attempt {
    verb: &'static str,
    started: Instant,
}

/// What a guard got done.
#[derive(Default)]
struct Done {
    pause: Option<End>,
    /// Of the last attempt.
    thaw: Option<End>,
}

/// How docker ended, as a guard ran it.
struct End {
    output: Output,
    /// Whether the guard killed it.
    overdue: bool,
}

impl Client {
    /// Pauses a container until the hold is dropped or over.
    pub(crate) async fn hold(
        &self,
        bounds: &Bounds,
        request: HoldRequest,
    ) -> Result<Hold, CallError> {
        let verb = PauseContainer::new(&request.container);
        let call = Called::new(PAUSE, &verb.argv());
        let slot = self.slot(bounds, &call).await?;
        let guard = {
            // Where its watcher will run, whatever runtime we are called in.
            let _here = self.0.runtime.enter();
            Guard::start(
                &self.0.program,
                &self.0.folder,
                &request.container,
                request.limit,
                Patience::within(self.0.timeouts.short),
                request.lock.as_ref(),
            )
        };
        let guard = guard.map_err(|error| call.not_started(error))?;
        let (report, line) = guard.talk.into_split();
        let (tell_held, held) = oneshot::channel();
        let (tell_over, over) = oneshot::channel();
        let ending = Arc::new(Ending::new(self.0.tasks.clone()));
        let watched = Watched {
            container: request.container.clone(),
            process: guard.process,
            report,
            life: Arc::clone(&guard.life),
            folder: guard.folder,
            _lock: request.lock,
            attempt: None,
            place: Some(slot.permit),
            queued: slot.queued,
            held: Some(tell_held),
        };
        let (client, watchers) = (self.clone(), Arc::clone(&ending));
        // Work of the caller's, until the hold is let go of.
        self.0.runtime.spawn(async move {
            client.guard(watched, tell_over).await;
            watchers.is_over();
        });
        // From here on, whatever ends this future lets go of it.
        let hold = Hold::new(
            self.clone(),
            request.container,
            request.no_progress,
            guard.life,
            line,
            over,
            ending,
        );
        let pending = || Aftermath::Pending(hold.undo());
        match bounds
            .limit(timeout(self.0.timeouts.short + LATE, held))
            .await
        {
            Ok(Ok(Ok(Ok(())))) => Ok(hold),
            Ok(Ok(Ok(Err(error)))) => Err(error),
            Ok(Ok(Err(_))) => Err(call.failed(CallErrorKind::Closed).with_aftermath(pending())),
            Ok(Err(_)) => Err(call
                .failed(CallErrorKind::TimedOut)
                .with_aftermath(pending())),
            Err(kind) => Err(call.failed(kind).with_aftermath(pending())),
        }
    }

    /// How long an answer of an ordinary verb is waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.0.timeouts.short
    }

    async fn guard(&self, mut watched: Watched, tell_over: oneshot::Sender<Answer>) {
        let done = self.listen(&mut watched).await;
        watched.life.end();
        // It has closed its end, and so has ended. What it started may not
        // have; its number is the group's until it is reaped.
        watched.process.signal(Signal::KILL);
        let exit = watched.process.wait().await;
        watched.folder.give_back();
        if let Some(Attempt { verb, started }) = watched.attempt {
            self.0.log.ended(Invocation {
                verb,
                queued: Duration::ZERO,
                ran: started.elapsed(),
                outcome: Outcome::Stopped,
            });
        }
        let container = &watched.container;
        let answer = match (done.pause, done.thaw) {
            (Some(pause), _) if !pause.output.exit.is_success() => Ok(()),
            (Some(_), Some(thaw)) if matches!(exit, Ok(Exit::Code(_))) => {
                self.thawed(container, &thaw).await
            }
            (Some(_), _) => self.thaw_instead(container).await,
            (None, _) => {
                if let Some(held) = watched.held
                    && let Err(Err(error)) =
                        held.send(Err(lost_before(container, CallErrorKind::Signalled)))
                {
                    self.keep(container, &error);
                }
                Ok(())
            }
        };
        if let Err(Err(error)) = tell_over.send(answer)
            && !is_without_need(error.kind())
        {
            self.keep(container, &error);
        }
    }

    /// Keeps for [`settle`](Self::settle) what nobody waits for any more.
    fn keep(&self, container: &ContainerId, error: &CallError) {
        self.record(FailedUndo {
            undo: Undo::Unpause(container.into()),
            why: error.to_string(),
        });
    }

    /// Hears a guard out.
    async fn listen(&self, watched: &mut Watched) -> Done {
        let mut done = Done::default();
        let mut report = Report::default();
        let mut chunk = vec![0; 4096];
        while let Ok(read @ 1..) = watched.report.read(&mut chunk).await {
            let mut all = Vec::new();
            report.take(&chunk[..read], |said| all.push(said));
            for said in all {
                self.hear(watched, &mut done, said).await;
            }
        }
        done
    }

    async fn hear(&self, watched: &mut Watched, done: &mut Done, said: Said) {
        match said {
            Said::Pauses => watched.attempt = Some(self.attempt(PAUSE)),
            Said::Unpauses => {
                // A thaw waits for nothing; but others wait for it.
                let place = Arc::clone(&self.0.slots).try_acquire_owned();
                watched.place = place.ok();
                watched.attempt = Some(self.attempt(UNPAUSE));
            }
            Said::Thaws => watched.life.end(),
            Said::Ended {
                code,
                overdue,
                words,
            } => {
                let Some(Attempt { verb, started }) = watched.attempt.take() else {
                    return;
                };
                watched.place = None;
                let output = output(code, words);
                let killed = overdue.then_some(Ended::TimedOut);
                self.0.log.ended(Invocation {
                    verb,
                    queued: std::mem::take(&mut watched.queued),
                    ran: started.elapsed(),
                    outcome: Outcome::of(output.exit, killed),
                });
                let end = End { output, overdue };
                if verb == UNPAUSE {
                    done.thaw = Some(end);
                    return;
                }
                let answer = self.paused(&watched.container, &end).await;
                if let Some(held) = watched.held.take()
                    && let Err(Err(error)) = held.send(answer)
                    && overdue
                {
                    self.keep(&watched.container, &error);
                }
                // Where nobody waits any more, the guard sees to the rest.
                done.pause = Some(end);
            }
        }
    }

    fn attempt(&self, verb: &'static str) -> Attempt {
        self.0.log.started(verb);
        Attempt {
            verb,
            started: Instant::now(),
        }
    }

    async fn paused(&self, container: &ContainerId, end: &End) -> Answer {
        let output = &end.output;
        if end.overdue {
            let error = lost_before(container, CallErrorKind::TimedOut);
            return Err(error.with_output(output));
        }
        if output.exit.is_success() {
            return Ok(());
        }
        let call = Called::new(PAUSE, &PauseContainer::new(container).argv());
        let kind = self.why(container, output).await;
        Err(call.failed(kind).with_output(output))
    }

    async fn thawed(&self, container: &ContainerId, end: &End) -> Answer {
        let output = &end.output;
        if output.exit.is_success() {
            return Ok(());
        }
        let call = Called::new(UNPAUSE, &UnpauseContainer::new(container).argv());
        let kind = match end.overdue {
            true => CallErrorKind::TimedOut,
            false => self.why(container, output).await,
        };
        let undo = Undo::Unpause(container.into());
        let error = call.failed(kind).with_output(output);
        match kind {
            CallErrorKind::NotPaused => Ok(()),
            kind if is_without_need(kind) => Err(error),
            _ => {
                let why = error.to_string();
                Err(error.with_aftermath(Aftermath::Left { undo, why }))
            }
        }
    }

    /// Thaws what a guard has paused that something has ended since. The lock,
    /// which is held until then, keeps others of this host from pausing it in
    /// between.
    async fn thaw_instead(&self, container: &ContainerId) -> Answer {
        match self.unpause(container.into()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let (undo, why) = (Undo::Unpause(container.into()), error.to_string());
                Err(error.with_aftermath(Aftermath::Left { undo, why }))
            }
        }
    }
}

/// The guard, or its docker, was ended while it paused: whether it is paused, and by whom, is
/// open then, so nobody may thaw it.
fn lost_before(container: &ContainerId, kind: CallErrorKind) -> CallError {
    let call = Called::new(PAUSE, &PauseContainer::new(container).argv());
    call.failed(kind).with_aftermath(Aftermath::Left {
        undo: Undo::Unpause(container.into()),
        why: "it cannot be told who has paused it, if it is paused".to_owned(),
    })
}

/// Whether a container that could not be thawed for this reason is not frozen
/// either.
fn is_without_need(kind: CallErrorKind) -> bool {
    matches!(
        kind,
        CallErrorKind::NoSuchContainer | CallErrorKind::NotRunning
    )
}

fn output(code: i32, words: Bytes) -> Output {
    let exit = match code {
        // As a shell says it.
        129.. => Exit::Signal(code - 128),
        code => Exit::Code(code),
    };
    Output {
        exit,
        stdout: Bytes::new(),
        stderr: words,
        made: None,
        built: None,
    }
}
