//! The conversation with a file worker: a process of the guest's own user.
//!
//! Nothing that it says is trusted: answers come for the item that is due,
//! data only as much as was announced, and everything is bounded.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use stockade::exec::{
    EndReason, ExecStatus, NotStartedWhy, ProcessOutput, ProcessStdin, StreamName,
};
use stockade::files::FileContent;
use stockade::spec::WorkDir;
use stockade::{BoxFuture, Call, Error, ErrorKind, Operation, Phase, Process, Result};
use stockade_wire::files::{Answer, BATCH, Batch, EXIT_PROTOCOL, Item};
use stockade_wire::limits::{FRAME_PAYLOAD, KILL_BOUND};
use stockade_wire::message::{self, Start, from_payload, to_payload};
use stockade_wire::{Decoder, Frame, Kind, encode};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::instance::{Launch, Session};

/// How long a worker may take to end when its call is over.
const WIND_UP: Duration = KILL_BOUND.saturating_add(Duration::from_secs(5));

/// The worker's own end, when the call has no nearer one.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes that are sent at a time.
const PIECE: usize = 256 * 1024;

/// Most bytes of a worker's standard error that are kept for a log.
const COMPLAINT: usize = 1024;

/// One worker, with the items that it has been sent.
pub(super) struct Worker {
    operation: Operation,
    process: Process,
    output: ProcessOutput,
    stdin: Option<ProcessStdin>,
    sending: Option<Sending>,
    decoder: Decoder,
    complaint: Vec<u8>,
    /// Items that were announced.
    items: u32,
    /// The item whose answer is due.
    at: u32,
    /// Bytes of data that are due before that answer.
    data: u64,
    finished: bool,
}

type Sending = BoxFuture<'static, std::io::Result<ProcessStdin>>;

/// What a worker says.
#[derive(Debug)]
pub(super) enum Said {
    /// On an item.
    Answer(usize, Answer),
    /// The next bytes of the item whose answer is due.
    Data(Bytes),
}

/// An item, and what is sent after it.
pub(super) type Asked = (Item, Option<FileContent>);

impl Worker {
    /// Starts one, and announces so many items.
    ///
    /// Cancel safe: dropped, the worker is ended.
    pub(super) async fn start(
        call: &Call,
        session: &Arc<Session>,
        operation: Operation,
        work_dir: &WorkDir,
        items: usize,
    ) -> Result<Self> {
        let items = u32::try_from(items).unwrap_or(u32::MAX);
        let time = call.remaining().min(LONGEST);
        let launch = Launch {
            operation,
            start: Start {
                program: message::Program::Files,
                env: Vec::new(),
                cwd: None,
                stdin: true,
                tty: None,
                timeout_ms: u64::try_from(time.as_millis()).ok(),
                output_limit: None,
                background: false,
            },
            timeout: time,
            discard_after_abort: false,
        };
        let mut process = launch.process(call, session).await?;
        let (Some(mut stdin), Some(output)) = (process.take_stdin(), process.take_output()) else {
            return Err(protocol(operation, "it has no streams"));
        };
        let head = Batch {
            work: work_dir.as_str().into(),
            items,
        };
        let mut bytes = BytesMut::new();
        push(operation, &mut bytes, BATCH, &head)?;
        // One that is gone already is told by its end.
        let _ = stdin.write_all(&bytes).await;
        Ok(Self {
            operation,
            process,
            output,
            stdin: Some(stdin),
            sending: None,
            decoder: Decoder::new(),
            complaint: Vec::new(),
            items,
            at: 0,
            data: 0,
            finished: false,
        })
    }

    /// Asks for items, the first of which has this number.
    pub(super) fn ask(&mut self, first: usize, asked: Vec<Asked>) -> Result<()> {
        let mut requests = Vec::with_capacity(asked.len());
        for (number, (item, content)) in (first..).zip(asked) {
            let number = u32::try_from(number).unwrap_or(BATCH);
            let mut bytes = BytesMut::new();
            push(self.operation, &mut bytes, number, &item)?;
            requests.push((number, bytes, content));
        }
        self.sending = match (self.sending.take(), self.stdin.take()) {
            (Some(sending), _) => Some(Box::pin(async move {
                let stdin = sending.await?;
                send(stdin, requests).await
            })),
            (None, Some(stdin)) => Some(Box::pin(send(stdin, requests))),
            // One that reads no more is told by its end.
            (None, None) => None,
        };
        Ok(())
    }

    /// The next that it says; nothing once everything is answered.
    ///
    /// # Errors
    ///
    /// The call must end, or the worker ended or broke the protocol.
    ///
    /// Cancel safe.
    pub(super) async fn next(&mut self, call: &Call) -> Result<Option<Said>> {
        let operation = self.operation;
        let said = call.bound(self.said()).await;
        said.map_err(|why| {
            Error::interrupted(operation, why)
                .phase(Phase::Transfer)
                .build()
        })?
    }

    /// Ends it, and gives what it still says to `hear`. True when it is proved
    /// to have ended.
    pub(super) async fn end(mut self, mut hear: impl FnMut(Said)) -> bool {
        self.process.end(EndReason::Cancelled);
        let wound_up = timeout(WIND_UP, async {
            while let Ok(Some(said)) = self.said().await {
                hear(said);
            }
            self.process.wait().await
        });
        matches!(wound_up.await, Ok(Ok(exit)) if exit.tree_ended)
    }

    async fn said(&mut self) -> Result<Option<Said>> {
        loop {
            if self.finished {
                return Ok(None);
            }
            let frame = self.decoder.next_frame();
            if let Some(frame) = frame.map_err(|error| protocol(self.operation, error))? {
                if let Some(said) = self.frame(&frame)? {
                    return Ok(Some(said));
                }
                continue;
            }
            tokio::select! {
                chunk = self.output.next() => match chunk {
                    Some(chunk) if chunk.stream == StreamName::Stdout => {
                        self.decoder.buffer().extend_from_slice(&chunk.bytes);
                    }
                    Some(chunk) => self.complains(&chunk.bytes),
                    None => return Err(self.ended().await),
                },
                // One that reads no more is told by its end.
                stdin = sent(&mut self.sending) => self.stdin = stdin.ok(),
            }
        }
    }

    fn frame(&mut self, frame: &Frame) -> Result<Option<Said>> {
        let operation = self.operation;
        let broken = |what: &str| Err(protocol(operation, what));
        let item = self.at as usize;
        match frame.kind {
            Kind::FileAnswer if frame.run == BATCH => {
                let answer: Answer = from_payload(frame.kind, &frame.payload)
                    .map_err(|error| protocol(operation, error))?;
                if answer != Answer::Finished || self.at != self.items {
                    return broken("it says that it is done, and is not");
                }
                self.finished = true;
                Ok(None)
            }
            _ if frame.run != self.at || self.at >= self.items => {
                broken("it answers what is not due")
            }
            Kind::FileData => {
                let len = frame.payload.len() as u64;
                if len > self.data {
                    return broken("it sends more data than it said");
                }
                self.data -= len;
                Ok(Some(Said::Data(frame.payload.clone())))
            }
            Kind::FileAnswer => {
                let answer: Answer = from_payload(frame.kind, &frame.payload)
                    .map_err(|error| protocol(operation, error))?;
                match &answer {
                    Answer::Opened(stat) => self.data = stat.size.unwrap_or(0),
                    Answer::Done if self.data > 0 => {
                        return broken("it sends less data than it said");
                    }
                    Answer::Finished => return broken("it finishes an item"),
                    _ => {}
                }
                if answer.is_last() {
                    self.at += 1;
                    self.data = 0;
                }
                Ok(Some(Said::Answer(item, answer)))
            }
            _ => broken("it sends a frame that is not of files"),
        }
    }

    fn complains(&mut self, bytes: &[u8]) {
        let room = COMPLAINT.saturating_sub(self.complaint.len());
        self.complaint
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Why it ended before everything was answered.
    async fn ended(&mut self) -> Error {
        let exit = match self.process.wait().await {
            Ok(exit) => exit,
            Err(error) => return error,
        };
        let detail = String::from_utf8_lossy(&self.complaint);
        let unavailable =
            |what: String| Error::new(ErrorKind::Unavailable, self.operation).message(what);
        let error = match exit.status {
            ExecStatus::NotStarted(why)
                if matches!(why.why, NotStartedWhy::Resources | NotStartedWhy::Busy) =>
            {
                Error::new(ErrorKind::LimitExceeded, self.operation).message(
                    "no process can be started in the sandbox to look at files: its limit of \
                     processes, memory or commands is reached; end what runs in it",
                )
            }
            ExecStatus::TimedOut => {
                Error::interrupted(self.operation, stockade::Interruption::DeadlinePassed)
            }
            ExecStatus::Exited(code) if code == i32::from(EXIT_PROTOCOL) => {
                return protocol(
                    self.operation,
                    format!("it did not understand us: {detail}"),
                );
            }
            status => unavailable(format!(
                "the guest runtime's file worker ended in the middle ({status:?}), which only \
                 code in the sandbox, or its memory limit, brings about; try again when it is idle"
            )),
        };
        error.phase(Phase::Transfer).detail(detail).build()
    }
}

/// Sends items one after another, and gives the stream back.
async fn send(
    mut stdin: ProcessStdin,
    requests: Vec<(u32, BytesMut, Option<FileContent>)>,
) -> std::io::Result<ProcessStdin> {
    let mut bytes = BytesMut::new();
    for (number, request, content) in requests {
        bytes.extend_from_slice(&request);
        let mut at = 0;
        while let Some(content) = &content {
            let piece = content.read_at(at, PIECE).await?;
            if piece.is_empty() {
                break;
            }
            at += piece.len() as u64;
            for part in piece.chunks(FRAME_PAYLOAD) {
                encode(Kind::FileData, number, part, &mut bytes);
            }
            stdin.write_all(&bytes).await?;
            bytes.clear();
        }
        // Small items go together: each write is a frame of its own.
        if bytes.len() >= FRAME_PAYLOAD {
            stdin.write_all(&bytes).await?;
            bytes.clear();
        }
    }
    stdin.write_all(&bytes).await?;
    Ok(stdin)
}

/// Resolves when what is being sent has been sent; never when nothing is.
async fn sent(sending: &mut Option<Sending>) -> std::io::Result<ProcessStdin> {
    match sending {
        Some(future) => {
            let result = future.await;
            *sending = None;
            result
        }
        None => std::future::pending().await,
    }
}

fn push<T: serde::Serialize>(
    operation: Operation,
    bytes: &mut BytesMut,
    number: u32,
    message: &T,
) -> Result<()> {
    let payload =
        to_payload(Kind::FileRequest, message).map_err(|error| protocol(operation, error))?;
    encode(Kind::FileRequest, number, &payload, bytes);
    Ok(())
}

fn protocol(operation: Operation, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, operation)
        .message(format!(
            "the guest runtime's file worker broke its protocol, which only code in the sandbox \
             brings about: {what}; try again when it is idle"
        ))
        .phase(Phase::Transfer)
        .build()
}
