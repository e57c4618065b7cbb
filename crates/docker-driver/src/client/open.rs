//! Processes whose streams are handed to the caller.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::ChildStderr;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::files::CallFiles;
use super::{Client, Slot};
use crate::argv::Argv;
use crate::bounds::Bounds;
use crate::error::{CallError, CallErrorKind, Called};
use crate::log::{Invocation, Outcome};
use crate::process::{Ended, Fate, Group, Process, Tail, drain, wind_up};
use crate::registry::Streamed;
use crate::stream::{Ending, Stream, StreamEnd};
use crate::verb::Exit;

/// Longest time that a stream holds its place among the processes in flight
/// while it says nothing. The engine is busy with it until about then.
const START: Duration = Duration::from_secs(2);

/// An open process, as its watcher has it.
struct Watched {
    verb: &'static str,
    process: Process,
    /// From the signal that asks it to end to the one that ends it.
    grace: Duration,
    stderr: Option<ChildStderr>,
    slot: Slot,
    /// Told when the first output has come.
    speaks: Arc<Notify>,
    ending: Arc<Ending>,
}

impl Client {
    /// Starts a process and hands over its streams. The bounds are for the
    /// opening only.
    pub(crate) async fn open(
        &self,
        bounds: &Bounds,
        verb: Streamed,
        argv: &Argv,
        stdin: bool,
        group: Group,
    ) -> Result<Stream, CallError> {
        let verb = verb.name();
        let call = Called::new(verb, argv);
        let slot = self.slot(bounds, &call).await?;
        let files = CallFiles::make(self.0.folder.calls(), argv).await;
        let started =
            files.and_then(|files| self.start(verb, argv, &files, stdin, group, Fate::Ends));
        let mut process = started.map_err(|error| call.not_started(error))?;
        let streams = process.streams();
        let (stdin, stdout, stderr) = (
            streams.stdin.take(),
            streams.stdout.take(),
            streams.stderr.take(),
        );
        let Some(stdout) = stdout else {
            return Err(call.failed(CallErrorKind::NotStarted));
        };
        let speaks = Arc::new(Notify::new());
        let ending = Arc::new(Ending::new(self.0.tasks.clone()));
        let (tell, ended) = watch::channel(None);
        let stream = Stream::new(
            stdin,
            stdout,
            Arc::clone(&speaks),
            Arc::clone(&ending),
            ended,
        );
        let client = self.clone();
        let watched = Watched {
            verb,
            process,
            grace: match group {
                Group::Own => self.0.timeouts.grace,
                // A copy, which has nothing to put in order; and one that
                // waits for us to read does not heed the first signal.
                Group::Of(_) => Duration::ZERO,
            },
            stderr,
            slot,
            speaks,
            ending,
        };
        // Work of the caller's, until the caller has it ended.
        self.0.runtime.spawn(async move {
            let ending = Arc::clone(&watched.ending);
            let end = client.watch(watched).await;
            tell.send_replace(Some(end));
            ending.is_over();
        });
        Ok(stream)
    }

    async fn watch(&self, watched: Watched) -> StreamEnd {
        let Watched {
            verb,
            mut process,
            grace,
            stderr,
            slot,
            speaks,
            ending,
        } = watched;
        let (started, queued) = (Instant::now(), slot.queued);
        let leak = self.0.timeouts.leak;
        let mut tail = Tail::default();
        let (exit, ended) = {
            let mut drained = pin!(drain(stderr, |bytes| tail.take(bytes)));
            let mut all_read = false;
            let mut slot = Some(slot);
            let ended = loop {
                tokio::select! {
                    exit = process.wait() => break (exit, None),
                    () = ending.asked() => {
                        let exit = wind_up(&mut process, drained.as_mut(), &mut all_read, grace);
                        break (exit.await, Some(Ended::Stopped));
                    }
                    () = drained.as_mut(), if !all_read => all_read = true,
                    () = is_up(&speaks), if slot.is_some() => drop(slot.take()),
                }
            };
            if !all_read {
                let _ = timeout(leak, drained).await;
            }
            ended
        };
        // Waiting for one's own child fails only when there is none.
        let exit = exit.unwrap_or(Exit::Signal(0));
        let outcome = Outcome::of(exit, ended);
        self.0.log.ended(Invocation {
            verb,
            queued,
            ran: started.elapsed(),
            outcome,
        });
        StreamEnd {
            exit,
            stopped: ended.is_some(),
            stderr: tail.finish(),
        }
    }
}

async fn is_up(speaks: &Notify) {
    tokio::select! {
        () = speaks.notified() => {}
        () = sleep(START) => {}
    }
}
