//! The two tasks of a channel: one reads frames, one writes them.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use stockade_wire::limits::SILENCE;
use stockade_wire::message::Hello;
use stockade_wire::{Decoder, Frame, Kind, encode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::runs::{Reply, Runs};
use super::{Ended, Link};

/// How much is read, and how much is gathered before a write, at a time.
const CHUNK: usize = 256 * 1024;

/// How long what is still queued may take to be written after the last
/// handle is gone.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Ends the reader when dropped. The writer then finds its queue closed,
/// writes what is left in it (a detach must not be lost), and closes the
/// stream.
#[derive(Debug)]
pub(super) struct Tasks {
    reader: JoinHandle<()>,
}

/// What the tasks own.
pub(super) struct Streams<R, W> {
    pub(super) from: R,
    pub(super) to: W,
    pub(super) decoder: Decoder,
    pub(super) queue: mpsc::UnboundedReceiver<Bytes>,
    pub(super) end: watch::Sender<Option<Ended>>,
}

impl Tasks {
    pub(super) fn spawn<R, W, K>(
        streams: Streams<R, W>,
        keep: K,
        heartbeat: Duration,
        link: &Arc<Link>,
    ) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
        K: Send + 'static,
    {
        let Streams {
            mut from,
            to,
            mut decoder,
            queue,
            end,
        } = streams;
        let ended = end.subscribe();
        tokio::spawn(async move {
            write(to, queue, ended, heartbeat).await;
            drop(keep);
        });
        let link = Arc::clone(link);
        let reader = tokio::spawn(async move {
            let why = read(&mut from, &mut decoder, &link).await;
            link.runs.end(&why);
            end.send_replace(Some(why));
        });
        Self { reader }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Reads up to the first frame, which must be a hello.
pub(super) async fn read_hello<R>(from: &mut R) -> Result<(Hello, Decoder), Ended>
where
    R: AsyncRead + Unpin,
{
    let mut decoder = Decoder::new();
    let frame = next_frame(from, &mut decoder).await?;
    if frame.kind != Kind::Hello {
        return Err(Ended::Protocol(format!(
            "a {:?} frame instead of a hello",
            frame.kind
        )));
    }
    let hello = stockade_wire::message::from_payload(Kind::Hello, &frame.payload)
        .map_err(|error| Ended::Protocol(error.to_string()))?;
    Ok((hello, decoder))
}

async fn read<R: AsyncRead + Unpin>(from: &mut R, decoder: &mut Decoder, link: &Link) -> Ended {
    loop {
        let frame = match timeout(SILENCE, next_frame(from, decoder)).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(ended)) => return ended,
            Err(_) => return Ended::Silent,
        };
        if let Err(ended) = take_in(&link.runs, &frame, link) {
            return ended;
        }
    }
}

fn take_in(runs: &Runs, frame: &Frame, link: &Link) -> Result<(), Ended> {
    match runs.receive(frame)? {
        Reply::Nothing => {}
        Reply::Grant(grant) => link.send(Kind::Credit, frame.run, &grant.to_payload()),
        Reply::Pong(payload) => link.send(Kind::Pong, 0, &payload),
    }
    Ok(())
}

async fn next_frame<R: AsyncRead + Unpin>(
    from: &mut R,
    decoder: &mut Decoder,
) -> Result<Frame, Ended> {
    loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => {}
            Err(error) => return Err(Ended::Protocol(error.to_string())),
        }
        decoder.buffer().reserve(CHUNK);
        match from.read_buf(decoder.buffer()).await {
            Ok(0) | Err(_) => return Err(Ended::Closed),
            Ok(_) => {}
        }
    }
}

/// Writes what is queued, and a ping when nothing else tells the guest that
/// we live, until the queue is closed or the channel has ended.
async fn write<W: AsyncWrite + Unpin>(
    mut to: W,
    mut queue: mpsc::UnboundedReceiver<Bytes>,
    mut ended: watch::Receiver<Option<Ended>>,
    heartbeat: Duration,
) {
    let mut heartbeat = interval(heartbeat);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut gathered = BytesMut::with_capacity(CHUNK);
    loop {
        tokio::select! {
            frame = queue.recv() => match frame {
                Some(frame) => gathered.extend_from_slice(&frame),
                None => break,
            },
            _ = heartbeat.tick() => encode(Kind::Ping, 0, &[], &mut gathered),
            _ = ended.wait_for(Option::is_some), if !queue.is_closed() => return,
        }
        while gathered.len() < CHUNK {
            let Ok(frame) = queue.try_recv() else { break };
            gathered.extend_from_slice(&frame);
        }
        let written = async {
            to.write_all(&gathered).await?;
            to.flush().await
        };
        // A peer that takes nothing for so long is silent on its side too,
        // and the bound also ends this task when nobody is left to notice.
        if !matches!(timeout(SILENCE, written).await, Ok(Ok(()))) {
            return;
        }
        gathered.clear();
    }
    let _ = timeout(LAST_WORDS, to.shutdown()).await;
}
