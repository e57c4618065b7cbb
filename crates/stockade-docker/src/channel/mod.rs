//! The exec channel: one stream to PID 1 of a sandbox, shared by everything
//! that this process does there.
//!
//! Knows frames and runs, and neither docker nor the contract: it works over
//! any pair of byte streams, which is how its tests drive it.

mod io;
mod output;
mod runs;
mod stdin;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use stockade_wire::frame::{EndReason, StreamName};
use stockade_wire::limits::{FRAME_PAYLOAD, START_REQUEST};
use stockade_wire::message::{Exit, Hello, KilledAll, Start, Started, TtySize};
use stockade_wire::{Kind, encode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use output::RunOutput;
pub(crate) use stdin::RunStdin;

use runs::Runs;

/// A cheap handle; when the last one and the last run are dropped, the stream
/// is closed, which ends every command that was not started as background.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    link: Arc<Link>,
    /// Stops the two tasks with the last handle.
    _tasks: Arc<io::Tasks>,
}

/// One command on the channel.
#[derive(Debug)]
pub(crate) struct Run {
    /// Resolves when the program runs; dropped when it never does.
    pub(crate) started: oneshot::Receiver<Started>,
    /// Resolves with the outcome, or with the end of the channel.
    pub(crate) exit: oneshot::Receiver<Result<Exit, Ended>>,
    pub(crate) output: RunOutput,
    pub(crate) stdin: RunStdin,
    pub(crate) control: RunControl,
}

/// What can be asked of a run; every call is a frame and never blocks.
#[derive(Debug, Clone)]
pub(crate) struct RunControl {
    channel: Channel,
    run: u32,
}

/// Why a channel is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    /// The stream was closed: the relay died, or the sandbox did.
    #[error("the stream ended")]
    Closed,
    /// Nothing was heard for the silence limit.
    #[error("nothing was heard for {}s", stockade_wire::limits::SILENCE.as_secs())]
    Silent,
    /// PID 1 said that it ends.
    #[error("the guest runtime ended: {0}")]
    Goodbye(&'static str),
    /// The other side does not speak the protocol.
    #[error("the guest broke the protocol: {0}")]
    Protocol(String),
}

/// What the tasks and the handles share.
#[derive(Debug)]
struct Link {
    hello: Hello,
    outbound: mpsc::UnboundedSender<Bytes>,
    runs: Runs,
    ended: watch::Receiver<Option<Ended>>,
}

impl Channel {
    /// Reads the hello, answers it, and starts the two tasks.
    ///
    /// `keep` lives as long as the stream: what it stands for (a process)
    /// ends when it is dropped. It is given back when nothing comes of it.
    /// PID 1 hears from us at least every `heartbeat`.
    ///
    /// # Errors
    ///
    /// [`Ended`] when the stream ends or is not of this protocol before the
    /// hello is complete. Not bounded in time: callers bound it.
    pub(crate) async fn open<R, W, K>(
        from: R,
        to: W,
        keep: K,
        heartbeat: Duration,
    ) -> Result<Self, (Ended, K)>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
        K: Send + 'static,
    {
        let (link, streams) = match Self::greet(from, to).await {
            Ok(greeted) => greeted,
            Err(ended) => return Err((ended, keep)),
        };
        let tasks = io::Tasks::spawn(streams, keep, heartbeat, &link);
        Ok(Self {
            link,
            _tasks: Arc::new(tasks),
        })
    }

    async fn greet<R, W>(mut from: R, to: W) -> Result<(Arc<Link>, io::Streams<R, W>), Ended>
    where
        R: AsyncRead + Unpin,
    {
        let (hello, decoder) = io::read_hello(&mut from).await?;
        let Some(protocol) = hello.protocol.highest_common(stockade_wire::PROTOCOL) else {
            let min = hello.protocol.min;
            let max = hello.protocol.max;
            return Err(Ended::Protocol(format!(
                "it speaks versions {min} to {max}"
            )));
        };
        let (outbound, queue) = mpsc::unbounded_channel();
        let (end, ended) = watch::channel(None);
        let link = Arc::new(Link {
            hello,
            outbound,
            runs: Runs::default(),
            ended,
        });
        link.send_json(
            Kind::Welcome,
            0,
            &stockade_wire::message::Welcome { protocol },
        )?;
        Ok((
            link,
            io::Streams {
                from,
                to,
                decoder,
                queue,
                end,
            },
        ))
    }

    /// What the sandbox really has.
    pub(crate) fn hello(&self) -> &Hello {
        &self.link.hello
    }

    /// Why the channel is of no use any more, if it is.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.link.ended.borrow().clone()
    }

    /// Asks PID 1 to run a command.
    ///
    /// # Errors
    ///
    /// [`Ended`] when the channel is of no use any more; the command was then
    /// never asked for.
    ///
    /// # Panics
    ///
    /// Never: a request over [`START_REQUEST`] is refused by the contract
    /// before it gets here, and by PID 1 if it is not.
    pub(crate) fn start(&self, start: &Start) -> Result<Run, Ended> {
        let request =
            serde_json::to_vec(start).map_err(|error| Ended::Protocol(error.to_string()))?;
        if request.len() > START_REQUEST {
            return Err(Ended::Protocol(format!(
                "a request of {} bytes",
                request.len()
            )));
        }
        let registered = self.link.runs.register()?;
        let control = RunControl {
            channel: self.clone(),
            run: registered.run,
        };
        let mut chunks = request.chunks(FRAME_PAYLOAD).peekable();
        while let Some(chunk) = chunks.next() {
            let kind = if chunks.peek().is_some() {
                Kind::StartMore
            } else {
                Kind::Start
            };
            self.link.send(kind, registered.run, chunk);
        }
        Ok(Run {
            started: registered.started,
            exit: registered.exit,
            output: RunOutput::new(registered.output, registered.credit, control.clone()),
            stdin: RunStdin::new(registered.stdin, control.clone()),
            control,
        })
    }

    /// Has PID 1 kill every process but itself and the relays.
    ///
    /// # Errors
    ///
    /// [`Ended`] when the channel ends first. Not bounded in time.
    pub(crate) async fn kill_all(&self) -> Result<KilledAll, Ended> {
        let answer = self.link.runs.expect_killed()?;
        self.link.send(Kind::KillAll, 0, &[]);
        self.or_ended(answer).await
    }

    async fn or_ended<T>(&self, answer: oneshot::Receiver<T>) -> Result<T, Ended> {
        answer
            .await
            .map_err(|_| self.ended().unwrap_or(Ended::Closed))
    }
}

impl RunControl {
    /// Sends a signal to the program's process group.
    pub(crate) fn signal(&self, signal: u8) {
        self.send(Kind::Signal, &[signal]);
    }

    /// Ends the command with its whole tree.
    pub(crate) fn end(&self, reason: EndReason) {
        self.send(Kind::End, &[reason as u8]);
    }

    /// Lets the command go on without anybody waiting for it.
    pub(crate) fn detach(&self) {
        self.send(Kind::Detach, &[]);
    }

    /// Tells the terminal its size.
    pub(crate) fn resize(&self, size: TtySize) {
        let [a, b] = size.rows.to_le_bytes();
        let [c, d] = size.columns.to_le_bytes();
        self.send(Kind::Resize, &[a, b, c, d]);
    }

    fn grant(&self, stream: StreamName, bytes: u32) {
        self.send(
            Kind::Credit,
            &stockade_wire::frame::Grant { stream, bytes }.to_payload(),
        );
    }

    fn send(&self, kind: Kind, payload: &[u8]) {
        self.channel.link.send(kind, self.run, payload);
    }
}

impl Link {
    /// Queues one frame. Unbounded, and bounded in effect: program input is
    /// under credit, and everything else is a few bytes that a caller asked for.
    fn send(&self, kind: Kind, run: u32, payload: &[u8]) {
        let mut frame = BytesMut::with_capacity(stockade_wire::frame::HEADER + payload.len());
        encode(kind, run, payload, &mut frame);
        // A closed queue means that the channel has ended, which every waiter
        // hears from the runs' table.
        let _ = self.outbound.send(frame.freeze());
    }

    fn send_json<T: serde::Serialize>(
        &self,
        kind: Kind,
        run: u32,
        message: &T,
    ) -> Result<(), Ended> {
        let payload = stockade_wire::message::to_payload(kind, message)
            .map_err(|error| Ended::Protocol(error.to_string()))?;
        self.send(kind, run, &payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
