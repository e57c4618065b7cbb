//! The channel against a guest that is played by the test.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use stockade_wire::frame::Grant;
use stockade_wire::limits::{HEARTBEAT, SILENCE, STREAM_CREDIT};
use stockade_wire::message::{Program, Status, Welcome};
use stockade_wire::{Decoder, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;

/// The other end of the stream.
struct Guest {
    stream: DuplexStream,
    decoder: Decoder,
}

impl Guest {
    async fn send(&mut self, kind: Kind, run: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        encode(kind, run, payload, &mut bytes);
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn send_json<T: serde::Serialize>(&mut self, kind: Kind, run: u32, message: &T) {
        self.send(kind, run, &serde_json::to_vec(message).unwrap())
            .await;
    }

    /// The next frame that is not a heartbeat; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                if frame.kind == Kind::Ping && frame.payload.is_empty() {
                    continue;
                }
                return Some(frame);
            }
            if self.stream.read_buf(self.decoder.buffer()).await.unwrap() == 0 {
                return None;
            }
        }
    }

    async fn expect(&mut self, kind: Kind) -> Frame {
        let frame = self.next().await.expect("the stream goes on");
        assert_eq!(frame.kind, kind);
        frame
    }
}

fn hello() -> Hello {
    Hello {
        protocol: stockade_wire::PROTOCOL,
        digest: "d".into(),
        uid: 1,
        gid: 1,
        age_ms: 0,
        kill_generation: 0,
        live_runs: 0,
        limits: stockade_wire::message::LimitsInForce::default(),
        mounts: vec![],
        network: false,
        shielded: true,
    }
}

fn command() -> Start {
    Start {
        program: Program::Argv(vec!["x".into()]),
        env: vec![],
        cwd: None,
        stdin: true,
        tty: None,
        timeout_ms: None,
        output_limit: None,
        background: false,
    }
}

fn exited(code: i32) -> Exit {
    Exit {
        status: Status::Exited(code),
        tree_ended: true,
        left_running: 0,
        out_of_memory: false,
        wall_ms: 1,
        cpu_user_us: 1,
        cpu_system_us: 1,
        peak_memory: 1,
    }
}

async fn open() -> (Channel, Guest) {
    let (host, stream) = tokio::io::duplex(1 << 20);
    let mut guest = Guest {
        stream,
        decoder: Decoder::new(),
    };
    guest.send_json(Kind::Hello, 0, &hello()).await;
    let (from, to) = tokio::io::split(host);
    let channel = Channel::open(from, to, (), HEARTBEAT).await.unwrap();
    let welcome = guest.expect(Kind::Welcome).await;
    let welcome: Welcome = serde_json::from_slice(&welcome.payload).unwrap();
    assert_eq!(welcome.protocol, stockade_wire::PROTOCOL.max);
    (channel, guest)
}

#[tokio::test(start_paused = true)]
async fn an_outcome_arrives_before_the_last_output_is_read() {
    let (channel, mut guest) = open().await;
    let run = channel.start(&command()).unwrap();
    let number = guest.expect(Kind::Start).await.run;
    guest
        .send_json(
            Kind::Started,
            number,
            &Started {
                pid: 7,
                waited_ms: 0,
            },
        )
        .await;
    guest.send(Kind::Stdout, number, b"out").await;
    guest.send_json(Kind::Exit, number, &exited(3)).await;
    assert_eq!(run.started.await.unwrap().pid, 7);
    assert_eq!(run.exit.await.unwrap().unwrap().status, Status::Exited(3));
    guest.send(Kind::Stderr, number, b"err").await;
    guest.send(Kind::OutputEnd, number, &[]).await;
    let all: Vec<_> = run.output.collect().await;
    assert_eq!(
        all,
        [
            (StreamName::Stdout, Bytes::from_static(b"out")),
            (StreamName::Stderr, Bytes::from_static(b"err"))
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn input_stops_at_the_credit_and_goes_on_with_a_grant() {
    let (channel, mut guest) = open().await;
    let mut run = channel.start(&command()).unwrap();
    let number = guest.expect(Kind::Start).await.run;
    let sent = vec![b'a'; STREAM_CREDIT as usize + 10];
    let writer = tokio::spawn(async move {
        run.stdin.write_all(&sent).await.unwrap();
        run.stdin.shutdown().await.unwrap();
        run
    });
    let mut received = 0;
    while received < STREAM_CREDIT as usize {
        received += guest.expect(Kind::Stdin).await.payload.len();
    }
    assert_eq!(received, STREAM_CREDIT as usize);
    let grant = Grant {
        stream: StreamName::Stdin,
        bytes: 10,
    };
    guest.send(Kind::Credit, number, &grant.to_payload()).await;
    assert_eq!(guest.expect(Kind::Stdin).await.payload.len(), 10);
    guest.expect(Kind::StdinEnd).await;
    writer.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn input_that_nobody_reads_is_a_broken_pipe_and_not_a_hang() {
    let (channel, mut guest) = open().await;
    let mut run = channel.start(&command()).unwrap();
    let number = guest.expect(Kind::Start).await.run;
    guest.send(Kind::StdinClosed, number, &[]).await;
    let error = loop {
        match run.stdin.write_all(&[0; 4096]).await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn output_that_nobody_reads_any_more_is_granted_so_that_the_program_goes_on() {
    let (channel, mut guest) = open().await;
    let run = channel.start(&command()).unwrap();
    let number = guest.expect(Kind::Start).await.run;
    let piece = vec![b'x'; 32 * 1024];
    for _ in 0..4 {
        guest.send(Kind::Stdout, number, &piece).await;
    }
    // The first half of a window is queued when the reader goes away.
    channel.link.send(Kind::KillAll, 0, &[]);
    guest.expect(Kind::KillAll).await;
    drop(run.output);
    for _ in 0..8 {
        guest.send(Kind::Stdout, number, &piece).await;
    }
    let first = Grant::from_payload(&guest.expect(Kind::Credit).await.payload).unwrap();
    let second = Grant::from_payload(&guest.expect(Kind::Credit).await.payload).unwrap();
    assert!(first.bytes >= STREAM_CREDIT / 2 && second.bytes >= STREAM_CREDIT / 2);
}

#[tokio::test(start_paused = true)]
async fn more_output_than_was_granted_ends_the_channel() {
    let (channel, mut guest) = open().await;
    let run = channel.start(&command()).unwrap();
    let number = guest.expect(Kind::Start).await.run;
    let piece = vec![b'x'; FRAME_PAYLOAD];
    for _ in 0..5 {
        guest.send(Kind::Stdout, number, &piece).await;
    }
    let ended = run.exit.await.unwrap().unwrap_err();
    assert!(matches!(ended, Ended::Protocol(_)), "{ended:?}");
    assert!(channel.start(&command()).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_silent_guest_ends_every_run() {
    let (channel, mut guest) = open().await;
    let run = channel.start(&command()).unwrap();
    guest.expect(Kind::Start).await;
    let started = tokio::time::Instant::now();
    assert_eq!(run.exit.await.unwrap(), Err(Ended::Silent));
    assert!(started.elapsed() >= SILENCE && started.elapsed() < SILENCE + Duration::from_secs(5));
    assert_eq!(channel.ended(), Some(Ended::Silent));
}

#[tokio::test(start_paused = true)]
async fn a_closed_stream_ends_runs_and_questions() {
    let (channel, mut guest) = open().await;
    let run = channel.start(&command()).unwrap();
    guest.expect(Kind::Start).await;
    drop(guest);
    assert_eq!(run.exit.await.unwrap(), Err(Ended::Closed));
    assert_eq!(channel.kill_all().await, Err(Ended::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_detach_reaches_the_guest_although_the_last_handle_is_dropped_at_once() {
    let (channel, mut guest) = open().await;
    let run = channel.start(&command()).unwrap();
    run.control.detach();
    drop((run, channel));
    guest.expect(Kind::Start).await;
    guest.expect(Kind::Detach).await;
    guest.expect(Kind::StdinEnd).await;
    assert_eq!(guest.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_guest_of_another_protocol_is_refused_with_its_versions() {
    let (host, stream) = tokio::io::duplex(1 << 16);
    let mut guest = Guest {
        stream,
        decoder: Decoder::new(),
    };
    let mut hello = hello();
    hello.protocol = stockade_wire::message::ProtocolRange { min: 90, max: 91 };
    guest.send_json(Kind::Hello, 0, &hello).await;
    let (from, to) = tokio::io::split(host);
    let (ended, ()) = Channel::open(from, to, (), HEARTBEAT).await.unwrap_err();
    assert_eq!(ended, Ended::Protocol("it speaks versions 90 to 91".into()));
}

#[tokio::test(start_paused = true)]
async fn a_ping_of_the_guest_is_answered_with_its_payload() {
    let (_channel, mut guest) = open().await;
    guest.send(Kind::Ping, 0, b"12345678").await;
    assert_eq!(&guest.expect(Kind::Pong).await.payload[..], b"12345678");
}

#[tokio::test(start_paused = true)]
async fn a_kill_of_everything_is_answered_with_what_is_left() {
    let (channel, mut guest) = open().await;
    let killing = tokio::spawn(async move { channel.kill_all().await });
    guest.expect(Kind::KillAll).await;
    let killed = KilledAll {
        generation: 4,
        left: 0,
    };
    guest.send_json(Kind::KilledAll, 0, &killed).await;
    assert_eq!(killing.await.unwrap(), Ok(killed));
}
