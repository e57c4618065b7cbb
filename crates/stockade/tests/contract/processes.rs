//! The handle to a running command.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stockade::exec::{
    EndReason, ExecStatus, OutputChunk, Process, ProcessControl, ProcessExit, ProcessParts,
    StreamName, TtySize,
};
use stockade::memory::MemoryBackend;
use stockade::{
    BoxFuture, Call, Error, ErrorKind, ExecRequest, Instance, InstanceId, Operation, Result,
    Sandbox, SandboxSpec, Stdin,
};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};

use crate::{acquire, call};

/// A command that is told what to do by its test, and tells what was asked of it.
#[derive(Clone, Default)]
struct Puppet {
    asked: Arc<Mutex<Vec<String>>>,
}

/// The test's end of a command.
struct Strings {
    output: Option<mpsc::UnboundedSender<OutputChunk>>,
    exit: Option<oneshot::Sender<Result<ProcessExit>>>,
}

impl Puppet {
    fn process(&self) -> (Process, Strings) {
        let (output, mut chunks) = mpsc::unbounded_channel();
        let (exit, ended) = oneshot::channel();
        let process = Process::new(ProcessParts {
            pid: 42,
            stdin: None,
            output: Box::pin(futures_util::stream::poll_fn(move |context| {
                chunks.poll_recv(context)
            })),
            exit: Box::pin(async {
                let lost = || Err(Error::new(ErrorKind::Lost, Operation::Wait).build());
                ended.await.unwrap_or_else(|_| lost())
            }),
            control: Arc::new(self.clone()),
        });
        let strings = Strings {
            output: Some(output),
            exit: Some(exit),
        };
        (process, strings)
    }

    fn note(&self, what: impl Into<String>) {
        self.asked
            .lock()
            .expect("no panic under it")
            .push(what.into());
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic under it").clone()
    }
}

impl ProcessControl for Puppet {
    fn signal(&self, signal: i32) -> BoxFuture<'_, Result<()>> {
        self.note(format!("signal {signal}"));
        Box::pin(async { Ok(()) })
    }

    fn resize(&self, size: TtySize) -> BoxFuture<'_, Result<()>> {
        self.note(format!("resize {}x{}", size.rows, size.columns));
        Box::pin(async { Ok(()) })
    }

    fn end(&self, reason: EndReason) {
        self.note(format!("end {reason}"));
    }

    fn detach(&self) {
        self.note("detach");
    }
}

impl Strings {
    fn write(&self, bytes: &'static [u8]) {
        let chunk = OutputChunk {
            stream: StreamName::Stdout,
            bytes: bytes.into(),
        };
        let output = self.output.as_ref().expect("it is open");
        output.send(chunk).expect("somebody listens");
    }

    fn exit(&mut self, status: ExecStatus) {
        let exit = self.exit.take().expect("it ends once");
        exit.send(Ok(ProcessExit::new(status)))
            .expect("somebody waits");
    }
}

/// A sandbox whose every command is this process.
struct Stage {
    id: InstanceId,
    spec: Arc<SandboxSpec>,
    process: Mutex<Option<Process>>,
}

impl Stage {
    fn with(process: Process) -> Sandbox {
        Sandbox::new(Arc::new(Self {
            id: InstanceId::new("stage").expect("a valid id"),
            spec: crate::spec(),
            process: Mutex::new(Some(process)),
        }))
    }
}

impl Instance for Stage {
    fn id(&self) -> &InstanceId {
        &self.id
    }

    fn freshly_created(&self) -> bool {
        true
    }

    fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    fn spawn<'a>(&'a self, _: &'a Call, _: ExecRequest) -> BoxFuture<'a, Result<Process>> {
        let process = self.process.lock().expect("no panic under it").take();
        Box::pin(async { Ok(process.expect("one command")) })
    }
}

fn request() -> ExecRequest {
    ExecRequest::argv(["any"])
        .build()
        .expect("the request is valid")
}

#[tokio::test]
async fn dropping_a_process_ends_it_once_and_only_while_it_may_run() {
    let puppet = Puppet::default();
    let (process, _strings) = puppet.process();
    drop(process);
    assert_eq!(puppet.asked(), ["end dropped"]);

    let puppet = Puppet::default();
    let (mut process, mut strings) = puppet.process();
    strings.exit(ExecStatus::Exited(0));
    process.wait().await.unwrap();
    drop(process);
    assert_eq!(puppet.asked(), [""; 0]);

    let puppet = Puppet::default();
    let (process, _strings) = puppet.process();
    process.detach();
    assert_eq!(puppet.asked(), ["detach"]);
}

#[tokio::test]
async fn waiting_can_be_given_up_and_taken_up_again() {
    let puppet = Puppet::default();
    let (mut process, mut strings) = puppet.process();
    let given_up = tokio::time::timeout(Duration::from_millis(1), process.wait()).await;
    assert!(given_up.is_err());
    strings.exit(ExecStatus::Signaled(15));
    for _ in 0..2 {
        assert_eq!(
            process.wait().await.unwrap().status,
            ExecStatus::Signaled(15)
        );
    }
    assert_eq!(puppet.asked(), [""; 0]);
}

#[tokio::test]
async fn a_lost_way_is_an_error_at_every_wait_and_still_asks_for_the_end() {
    let puppet = Puppet::default();
    let (mut process, strings) = puppet.process();
    drop(strings);
    for _ in 0..2 {
        assert_eq!(process.wait().await.unwrap_err().kind(), ErrorKind::Lost);
    }
    drop(process);
    assert_eq!(puppet.asked(), ["end dropped"]);
}

#[tokio::test]
async fn signals_and_sizes_reach_the_command_and_no_signal_is_none() {
    let puppet = Puppet::default();
    let (process, _strings) = puppet.process();
    process.signal(15).await.unwrap();
    process
        .resize(TtySize {
            rows: 2,
            columns: 3,
        })
        .await
        .unwrap();
    for signal in [0, -1, 65] {
        let error = process.signal(signal).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
    assert_eq!(puppet.asked(), ["signal 15", "resize 2x3"]);
}

#[tokio::test]
async fn waiting_discards_output_that_nobody_took() {
    let backend = MemoryBackend::new().with_program("flood", async |mut guest| {
        for _ in 0..1000 {
            guest.print(vec![b'x'; 64 * 1024]).await;
        }
        3
    });
    let sandbox = acquire(&backend).await;
    let flood = ExecRequest::argv(["flood"])
        .output_limit(u64::MAX)
        .build()
        .unwrap();
    let mut process = sandbox.spawn(&call(), flood).await.unwrap();
    assert_eq!(process.wait().await.unwrap().status, ExecStatus::Exited(3));
}

#[tokio::test]
async fn waiting_closes_input_that_nobody_took() {
    let backend = MemoryBackend::new().with_program("read", async |mut guest| {
        guest.read_to_end().await.len() as i32
    });
    let sandbox = acquire(&backend).await;
    let read = ExecRequest::argv(["read"])
        .stdin(Stdin::Piped)
        .build()
        .unwrap();
    let mut process = sandbox.spawn(&call(), read).await.unwrap();
    assert_eq!(process.wait().await.unwrap().status, ExecStatus::Exited(0));
}

#[tokio::test]
async fn a_conversation_over_pipes_is_possible() {
    let backend = MemoryBackend::new().with_program("echo", async |mut guest| {
        loop {
            let piece = guest.read().await;
            if piece.is_empty() {
                return 0;
            }
            guest.print(piece).await;
        }
    });
    let sandbox = acquire(&backend).await;
    let echo = ExecRequest::argv(["echo"])
        .stdin(Stdin::Piped)
        .build()
        .unwrap();
    let mut process = sandbox.spawn(&call(), echo).await.unwrap();
    let mut stdin = process.take_stdin().unwrap();
    let mut output = process.take_output().unwrap();
    assert!(process.take_stdin().is_none() && process.take_output().is_none());
    for word in ["one", "two"] {
        stdin.write_all(word.as_bytes()).await.unwrap();
        let chunk = output.next().await.unwrap();
        assert_eq!(
            (chunk.stream, &chunk.bytes[..]),
            (StreamName::Stdout, word.as_bytes())
        );
    }
    stdin.shutdown().await.unwrap();
    assert_eq!(output.next().await, None);
    assert!(process.wait().await.unwrap().status.success());
    assert!(process.pid() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_a_program_that_does_not_handle_it() {
    let backend = MemoryBackend::new().with_program("hang", async |_| std::future::pending().await);
    let sandbox = acquire(&backend).await;
    let hang = ExecRequest::argv(["hang"]).build().unwrap();
    let mut process = sandbox.spawn(&call(), hang).await.unwrap();
    process.signal(28).await.unwrap();
    process.signal(15).await.unwrap();
    assert_eq!(
        process.wait().await.unwrap().status,
        ExecStatus::Signaled(15)
    );
    process.signal(15).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_process_runs_no_more_and_a_detached_one_goes_on() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let backend = MemoryBackend::new().with_program("later", move |guest| {
        let told = told.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            told.send(guest.arg(0)).expect("the test listens");
            0
        }
    });
    let sandbox = acquire(&backend).await;
    let later = |name: &str| ExecRequest::argv(["later", name]).build().unwrap();
    let dropped = sandbox.spawn(&call(), later("dropped")).await.unwrap();
    let detached = sandbox.spawn(&call(), later("detached")).await.unwrap();
    drop(dropped);
    detached.detach();
    assert_eq!(heard.recv().await.unwrap(), "detached");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(heard.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_never_confirmed_is_reported_as_such() {
    let puppet = Puppet::default();
    let (process, strings) = puppet.process();
    strings.write(b"partial");
    let call = Call::with_timeout(Duration::from_secs(5));
    let started = tokio::time::Instant::now();
    let outcome = Stage::with(process).exec(&call, request()).await.unwrap();
    assert_eq!(outcome.status, ExecStatus::Cancelled);
    assert_eq!(outcome.stdout_text(), "partial");
    assert!(!outcome.tree_ended);
    assert_eq!(started.elapsed(), Duration::from_secs(5 + 10));
    assert_eq!(puppet.asked(), ["end cancelled", "end dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_that_the_sandbox_misses_is_enforced_by_the_host() {
    let puppet = Puppet::default();
    let (process, mut strings) = puppet.process();
    let sandbox = Stage::with(process);
    let watched = puppet.clone();
    let (outcome, ()) = tokio::join!(async { sandbox.exec(&call(), request()).await }, async {
        while watched.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        strings.exit(ExecStatus::TimedOut);
        strings.output = None;
    },);
    assert_eq!(outcome.unwrap().status, ExecStatus::TimedOut);
    assert_eq!(puppet.asked(), ["end timed_out"]);
}

#[tokio::test(start_paused = true)]
async fn an_output_limit_that_the_sandbox_misses_is_enforced_by_the_host() {
    let puppet = Puppet::default();
    let (process, mut strings) = puppet.process();
    for _ in 0..3 {
        strings.write(b"1234");
    }
    strings.exit(ExecStatus::Exited(0));
    strings.output = None;
    let request = ExecRequest::argv(["any"]).output_limit(10).build().unwrap();
    let outcome = Stage::with(process).exec(&call(), request).await.unwrap();
    assert_eq!(outcome.status, ExecStatus::OutputLimit);
    assert_eq!(outcome.stdout_text(), "1234123412");
    assert_eq!(puppet.asked(), ["end output_limit"]);
}

#[tokio::test(start_paused = true)]
async fn outputs_that_stay_open_after_the_end_do_not_hang_a_run() {
    let puppet = Puppet::default();
    let (process, mut strings) = puppet.process();
    strings.write(b"last");
    strings.exit(ExecStatus::Exited(0));
    let outcome = Stage::with(process).exec(&call(), request()).await.unwrap();
    assert_eq!(
        (outcome.status, &outcome.stdout[..]),
        (ExecStatus::Exited(0), &b"last"[..])
    );
    assert!(strings.output.is_some());
}

#[tokio::test]
async fn dropping_a_run_ends_its_command() {
    let puppet = Puppet::default();
    let (process, _strings) = puppet.process();
    let sandbox = Stage::with(process);
    let call = call();
    let given_up = tokio::time::timeout(Duration::from_millis(1), sandbox.exec(&call, request()));
    assert!(given_up.await.is_err());
    assert_eq!(puppet.asked(), ["end dropped"]);
}
