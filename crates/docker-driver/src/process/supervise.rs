//! From a started process to its end, with everything that it said.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{Process, Sink, Tail};
use crate::verb::{Exit, Input};

/// How often a process that is to end is looked at. Its end cannot be waited
/// for without reaping it, and it must not be reaped before its group is
/// ended.
const LOOK: Duration = Duration::from_millis(5);

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Until the process is ended.
    pub(crate) timeout: Duration,
    /// From the signal that asks to the signal that ends.
    pub(crate) grace: Duration,
    /// For the output, after the process has ended.
    pub(crate) leak: Duration,
}

/// Why we ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It ran out of time.
    TimedOut,
    /// Nobody wants its answer any more.
    Stopped,
    /// It said too much.
    OutputTooLarge,
    /// It asked a person, and there is none.
    Prompted,
}

/// A process that was reaped.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) exit: Exit,
    /// Why we ended it, if we did.
    pub(crate) ended: Option<Ended>,
    pub(crate) stdout: Bytes,
    pub(crate) stderr: Bytes,
    pub(crate) ran: Duration,
}

/// Feeds, drains and watches a process until it is reaped.
pub(crate) async fn supervise(
    mut process: Process,
    input: Input,
    sink: Sink,
    limits: Limits,
    stop: CancellationToken,
) -> io::Result<Finished> {
    let started = Instant::now();
    let streams = process.streams();
    let (stdin, stdout, stderr) = (
        streams.stdin.take(),
        streams.stdout.take(),
        streams.stderr.take(),
    );
    let mut tail = Tail::default();
    let objects = sink.objects();
    // Never contended: both streams are read by the same task.
    let sink = Mutex::new(sink);
    let with_sink = |act: &dyn Fn(&mut Sink)| {
        act(&mut sink.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let (exit, ended) = {
        let mut drained = pin!(async {
            tokio::join!(
                feed(stdin, input),
                drain(stdout, |bytes| with_sink(&|sink| sink.take(bytes))),
                drain(stderr, |bytes| {
                    with_sink(&|sink| sink.take_error(bytes));
                    tail.take(bytes);
                }),
            );
        });
        let why = async {
            tokio::select! {
                // Which objection it is, the sink says at the end.
                () = objects.cancelled() => Ended::OutputTooLarge,
                () = stop.cancelled() => Ended::Stopped,
                () = sleep_until(started + limits.timeout) => Ended::TimedOut,
            }
        };
        watch(&mut process, drained.as_mut(), why, limits).await?
    };
    let sink = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Finished {
        exit,
        // An objection counts even if the process ended before we heard of it.
        ended: sink.objection().or(ended),
        stdout: sink.finish(),
        stderr: tail.finish(),
        ran: started.elapsed(),
    })
}

/// Waits for the end of a process, or for a reason to end it, and goes on
/// with `drained` all the while.
async fn watch(
    process: &mut Process,
    mut drained: Pin<&mut impl Future<Output = ()>>,
    why: impl Future<Output = Ended>,
    limits: Limits,
) -> io::Result<(Exit, Option<Ended>)> {
    let mut why = pin!(why);
    let mut all_read = false;
    loop {
        let (exit, ended) = tokio::select! {
            exit = process.wait() => (exit?, None),
            why = &mut why => (wind_up(process, drained.as_mut(), &mut all_read, limits.grace).await?, Some(why)),
            () = drained.as_mut(), if !all_read => {
                all_read = true;
                continue;
            }
        };
        // A process that outlives the client may hold its pipes for ever.
        if !all_read {
            let _ = timeout(limits.leak, drained).await;
        }
        return Ok((exit, ended));
    }
}

/// Ends a process with its whole group: asks, waits for `grace`, ends, reaps.
pub(crate) async fn wind_up(
    process: &mut Process,
    mut drained: Pin<&mut impl Future<Output = ()>>,
    all_read: &mut bool,
    grace: Duration,
) -> io::Result<Exit> {
    process.signal(Signal::TERM);
    let last = Instant::now() + grace;
    while !process.has_ended() && Instant::now() < last {
        tokio::select! {
            () = sleep(LOOK) => {}
            () = drained.as_mut(), if !*all_read => *all_read = true,
        }
    }
    // Also when the leader has gone: the rest of its group may not have.
    process.signal(Signal::KILL);
    loop {
        tokio::select! {
            exit = process.wait() => return exit,
            () = drained.as_mut(), if !*all_read => *all_read = true,
        }
    }
}

/// Writes the input and closes the pipe. A process need not read it all.
async fn feed(stdin: Option<ChildStdin>, input: Input) {
    if let (Some(mut stdin), Input::Bytes(bytes)) = (stdin, input) {
        let _ = stdin.write_all(&bytes).await;
    }
}

/// Reads to the end. An error is an end too: a pipe has no other.
pub(crate) async fn drain(stream: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut stream) = stream else { return };
    let mut chunk = vec![0; CHUNK];
    while let Ok(read) = stream.read(&mut chunk).await {
        if read == 0 {
            return;
        }
        take(&chunk[..read]);
    }
}
