//! Commands run to their end: streams, bounds, and how they end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use stockade::exec::{AtOutputLimit, Background, ExecStatus, NotStarted, NotStartedWhy, TtySize};
use stockade::memory::MemoryBackend;
use stockade::{Call, ErrorKind, ExecOutcome, ExecRequest, Phase, Stdin};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

use crate::{acquire, call};

/// A backend with the programs of these tests.
fn backend() -> MemoryBackend {
    MemoryBackend::new()
        .with_program("cat", async |mut guest| {
            loop {
                let piece = guest.read().await;
                if piece.is_empty() {
                    return 0;
                }
                guest.print(piece).await;
            }
        })
        .with_program("both", async |mut guest| {
            guest.print("out").await;
            guest.eprint("err").await;
            7
        })
        .with_program("hang", async |mut guest| {
            guest.print("begun").await;
            std::future::pending::<()>().await;
            0
        })
        .with_program("yes", async |mut guest| {
            loop {
                guest.print("y\n".repeat(32 * 1024)).await;
            }
        })
        .with_program("count", async |mut guest| {
            for line in 0..1000 {
                guest.print(format!("{line:03}\n")).await;
            }
            0
        })
        .with_program("show", async |mut guest| {
            let value = guest.env("A").map(<[u8]>::to_vec);
            guest.print(value.unwrap_or_default()).await;
            guest
                .print(guest.cwd().map(<[u8]>::to_vec).unwrap_or_default())
                .await;
            guest.print(guest.args().concat()).await;
            0
        })
        .with_program("panic", async |_| panic!("as a guest may"))
        .with_program("deaf", async |mut guest| {
            guest.close_stdin();
            guest.print("done").await;
            0
        })
        .with_program("daemon", async |mut guest| {
            guest.leave_running(std::future::pending());
            0
        })
}

async fn run(request: stockade::exec::ExecBuilder) -> ExecOutcome {
    let sandbox = acquire(&backend()).await;
    let request = request.build().expect("the request is valid");
    sandbox
        .exec(&call(), request)
        .await
        .expect("the sandbox does its job")
}

#[tokio::test]
async fn streams_and_exit_code_come_back_exact() {
    let outcome = run(ExecRequest::argv(["both"])).await;
    assert_eq!(outcome.status, ExecStatus::Exited(7));
    assert_eq!(
        (&outcome.stdout[..], &outcome.stderr[..]),
        (&b"out"[..], &b"err"[..])
    );
    assert!(!outcome.success() && outcome.code() == Some(7));
    assert!(!outcome.truncated && outcome.tree_ended && outcome.left_running == 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_of_megabytes_is_echoed_byte_for_byte() {
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    let outcome = run(ExecRequest::argv(["cat"]).stdin(Stdin::bytes(bytes.clone()))).await;
    assert!(outcome.success());
    assert!(outcome.stdout == bytes);
    let reader = Stdin::reader(io::Cursor::new(bytes.clone()));
    let outcome = run(ExecRequest::argv(["cat"]).stdin(reader)).await;
    assert!(outcome.stdout == bytes);
}

#[tokio::test]
async fn closed_input_is_at_its_end() {
    let outcome = run(ExecRequest::argv(["cat"])).await;
    assert!(outcome.success() && outcome.stdout.is_empty());
}

#[tokio::test]
async fn a_program_that_does_not_read_its_input_is_no_error() {
    let endless = Stdin::reader(tokio::io::repeat(b'x'));
    let outcome = run(ExecRequest::argv(["deaf"]).stdin(endless)).await;
    assert!(outcome.success());
    assert_eq!(outcome.stdout_text(), "done");
}

#[tokio::test]
async fn environment_directory_and_arguments_arrive() {
    let request = ExecRequest::argv([&b"show"[..], &[0xff]])
        .env("A", [0xfe])
        .cwd("/srv");
    assert_eq!(&run(request).await.stdout[..], b"\xfe/srv\xff");
}

#[tokio::test]
async fn what_cannot_start_is_an_outcome() {
    let not_started = async |request| match run(request).await.status {
        ExecStatus::NotStarted(NotStarted { why, .. }) => why,
        other => panic!("{other}"),
    };
    assert_eq!(
        not_started(ExecRequest::argv(["nope"])).await,
        NotStartedWhy::NotFound
    );
    assert_eq!(
        not_started(ExecRequest::shell("true")).await,
        NotStartedWhy::NoShell
    );
    let size = TtySize {
        rows: 24,
        columns: 80,
    };
    let terminal = ExecRequest::argv(["cat"]).tty(Some(size));
    assert_eq!(not_started(terminal).await, NotStartedWhy::Terminal);
}

#[tokio::test]
async fn a_shell_line_goes_to_the_program_sh() {
    let backend = backend().with_program("sh", async |mut guest| {
        let line = guest.arg(1);
        guest.print(line).await;
        0
    });
    let request = ExecRequest::shell("echo $A; exit 0").build().unwrap();
    let outcome = acquire(&backend)
        .await
        .exec(&call(), request)
        .await
        .unwrap();
    assert_eq!(outcome.stdout_text(), "echo $A; exit 0");
}

#[tokio::test]
async fn a_program_that_panics_ends_by_a_signal() {
    assert_eq!(
        run(ExecRequest::argv(["panic"])).await.status,
        ExecStatus::Signaled(6)
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_keeps_the_partial_output_and_the_sandbox() {
    let sandbox = acquire(&backend()).await;
    let hang = ExecRequest::argv(["hang"])
        .timeout(Duration::from_secs(3))
        .build()
        .unwrap();
    let outcome = sandbox.exec(&call(), hang).await.unwrap();
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert_eq!(outcome.stdout_text(), "begun");
    assert_eq!(outcome.times.wall, Duration::from_secs(3));
    assert!(outcome.tree_ended);
    let again = ExecRequest::argv(["both"]).build().unwrap();
    assert_eq!(sandbox.exec(&call(), again).await.unwrap().code(), Some(7));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_the_call_is_a_cancel_that_keeps_the_output() {
    let sandbox = acquire(&backend()).await;
    let call = Call::with_timeout(Duration::from_secs(3));
    let hang = ExecRequest::argv(["hang"]).build().unwrap();
    let outcome = sandbox.exec(&call, hang).await.unwrap();
    assert_eq!(outcome.status, ExecStatus::Cancelled);
    assert_eq!(outcome.stdout_text(), "begun");
    assert!(outcome.tree_ended);
    let run = call
        .phases()
        .into_iter()
        .find(|time| time.phase == Phase::Run)
        .unwrap();
    assert_eq!(run.took, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_its_command_alone() {
    let sandbox = acquire(&backend()).await;
    let one = call();
    let hang = || {
        ExecRequest::argv(["hang"])
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap()
    };
    let (cancelled, other, ()) = tokio::join!(
        sandbox.exec(&one, hang()),
        async { sandbox.exec(&call(), hang()).await },
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            one.cancel();
        },
    );
    assert_eq!(cancelled.unwrap().status, ExecStatus::Cancelled);
    assert_eq!(other.unwrap().status, ExecStatus::TimedOut);
}

#[tokio::test]
async fn a_call_that_is_over_starts_nothing() {
    let sandbox = acquire(&backend()).await;
    let cancelled = call();
    cancelled.cancel();
    let over = Call::with_timeout(Duration::ZERO);
    for (call, kind) in [
        (cancelled, ErrorKind::Cancelled),
        (over, ErrorKind::TimedOut),
    ] {
        let request = ExecRequest::argv(["both"]).build().unwrap();
        let error = sandbox.exec(&call, request).await.unwrap_err();
        assert_eq!((error.kind(), error.phase()), (kind, Some(Phase::Start)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_ended_at_its_limit_with_the_first_bytes_kept() {
    let outcome = run(ExecRequest::argv(["yes"]).output_limit(100_001)).await;
    assert_eq!(outcome.status, ExecStatus::OutputLimit);
    assert_eq!(outcome.stdout.len(), 100_001);
    assert!(outcome.truncated && outcome.tree_ended);
    assert!(
        outcome
            .stdout
            .chunks(2)
            .all(|line| b"y\n".starts_with(line))
    );
}

#[tokio::test]
async fn output_of_exactly_the_limit_is_whole() {
    let outcome = run(ExecRequest::argv(["count"]).output_limit(4000)).await;
    assert!(outcome.success() && !outcome.truncated);
    assert_eq!(outcome.stdout.len(), 4000);
    let outcome = run(ExecRequest::argv(["count"]).output_limit(3999)).await;
    assert_eq!(outcome.status, ExecStatus::OutputLimit);
    assert_eq!(outcome.stdout.len(), 3999);
    let outcome = run(ExecRequest::argv(["both"]).output_limit(0)).await;
    assert_eq!(outcome.status, ExecStatus::OutputLimit);
}

#[tokio::test]
async fn head_and_tail_are_kept_of_a_command_that_goes_on() {
    let request = ExecRequest::argv(["count"])
        .output_limit(16)
        .at_output_limit(AtOutputLimit::KeepHeadAndTail);
    let outcome = run(request).await;
    assert!(outcome.success() && outcome.truncated);
    assert_eq!(outcome.stdout_text(), "000\n001\n002\n999\n");
    let gap = outcome.stdout_gap.unwrap();
    assert_eq!((gap.at, gap.bytes), (12, 4000 - 16));
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it_unless_it_is_kept() {
    let killed = run(ExecRequest::argv(["daemon"])).await;
    assert!(killed.tree_ended && killed.left_running == 0);
    let kept = run(ExecRequest::argv(["daemon"]).background(Background::Keep)).await;
    assert!(!kept.tree_ended && kept.left_running == 1);
}

#[tokio::test]
async fn what_exec_cannot_do_is_refused_with_the_way_to_do_it() {
    let sandbox = acquire(&backend()).await;
    let both = ExecRequest::argv(["cat"])
        .stdin(Stdin::Piped)
        .output_limit(u64::MAX);
    let error = sandbox
        .exec(&call(), both.build().unwrap())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    let fields: Vec<&str> = error.faults().iter().map(|fault| fault.field()).collect();
    assert_eq!(fields, ["output_limit", "stdin"]);
    let tools = ExecRequest::argv(["cat"]).tools(true).build().unwrap();
    let error = sandbox.exec(&call(), tools).await.unwrap_err();
    assert_eq!(
        error.refusal().map(stockade::Refusal::code),
        Some("not_yet_served")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_commands_run_side_by_side() {
    let sandbox = acquire(&backend()).await;
    let runs = (0..200).map(|at: u32| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let request = ExecRequest::argv(["cat"]).stdin(Stdin::bytes(at.to_string()));
            let request = request.build().expect("the request is valid");
            let outcome = sandbox.exec(&call(), request).await.expect("it runs");
            (at.to_string(), outcome.stdout_text().into_owned())
        })
    });
    for run in runs.collect::<Vec<_>>() {
        let (sent, came) = run.await.unwrap();
        assert_eq!(sent, came);
    }
}

/// Gives some bytes, then fails.
struct Failing(Option<Vec<u8>>);

impl AsyncRead for Failing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0.take() {
            Some(bytes) => {
                into.put_slice(&bytes);
                Poll::Ready(Ok(()))
            }
            None => Poll::Ready(Err(io::Error::other("the disk is gone"))),
        }
    }
}

#[tokio::test]
async fn a_reader_that_panics_is_a_reader_that_fails() {
    struct Panicking;
    impl AsyncRead for Panicking {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            panic!("as a caller's reader may")
        }
    }
    let sandbox = acquire(&backend()).await;
    let request = ExecRequest::argv(["cat"]).stdin(Stdin::reader(Panicking));
    let request = request.build().unwrap();
    let error = sandbox.exec(&call(), request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_an_input_is_never_taken_for_the_whole() {
    let (told, mut ended) = mpsc::unbounded_channel();
    let backend = MemoryBackend::new().with_program("load", move |mut guest| {
        let told = told.clone();
        async move {
            guest.read_to_end().await;
            let _ = told.send("the input ended");
            0
        }
    });
    let sandbox = acquire(&backend).await;
    let failing = Stdin::reader(Failing(Some(b"half".to_vec())));
    let request = ExecRequest::argv(["load"]).stdin(failing).build().unwrap();
    let error = sandbox.exec(&call(), request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "the disk is gone");
    drop((sandbox, backend));
    assert_eq!(ended.recv().await, None, "the program never saw an end");
}
