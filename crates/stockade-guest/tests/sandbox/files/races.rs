//! Guest code that works against a file operation while it is under way.

use std::time::Duration;

use stockade_wire::files::{Answer, BATCH, Batch, Item, WriteKind};
use stockade_wire::frame::EndReason;
use stockade_wire::message::{Status, to_payload};
use stockade_wire::{Kind, encode};

use crate::support::files::{Ask, Served, files, list, look, make, measure, read, remove, write};
use crate::support::{Sandbox, argv, now, shell, wait_until};

/// Turns names of the work directory into links that lead out of it, and back,
/// as fast as it can.
const SWAPPER: &str = r"
import ctypes, os, shutil
libc = ctypes.CDLL(None)
out = os.path.abspath('out')
os.chdir('w')
print('ready', flush=True)
NAMES = (('d', out), ('leaf', out + '/secret'), ('deep/d', out))
while True:
    for name, target in NAMES:
        link = name + '.link'
        try:
            if not os.path.lexists(name):
                os.mkdir(name)
            if not os.path.islink(name) and not os.path.islink(link):
                if os.path.isdir(link):
                    shutil.rmtree(link)
                elif os.path.lexists(link):
                    os.unlink(link)
                os.symlink(target, link)
        except OSError:
            pass
    for i in range(50):
        for name, target in NAMES:
            # AT_FDCWD, RENAME_EXCHANGE
            libc.renameat2(-100, name.encode(), -100, (name + '.link').encode(), 2)
";

#[test]
fn no_race_leads_out_of_the_work_directory() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let inside = work.join("w");
    client
        .run(&shell("mkdir -p out/sub w/d w/deep/d; echo secret > out/secret; echo secret > out/sub/f; echo fine > w/leaf; echo fine > w/d/secret"))
        .code();
    let swapper = client.start(&argv(&["python3", "-c", SWAPPER]));
    client.stdout_holds(swapper, "ready");
    let before = "out\nout/secret\nout/sub\nout/sub/f\n";
    let (mut done, mut faults) = (0_u32, 0_u32);
    let end = now() + Duration::from_secs(4);
    while now() < end {
        let mut asks = Vec::new();
        for i in 0..20 {
            asks.extend([
                read("leaf"),
                read("d/secret"),
                write("d/planted", b"planted"),
                write(format!("d/new/{i}"), b"planted"),
                write("deep/d/planted", b"planted"),
                write("leaf", b"fine"),
                make("d/made", 0o755),
                list("d", true, 100),
                list("deep", true, 100),
                measure("d", 100, 1000),
                look("d/secret"),
                remove("d/sub", true),
                remove("deep/d", true),
                make("deep/d", 0o755),
                remove("d/new", true),
                write("d/secret", b"fine"),
            ]);
        }
        // Each on its own, since a fault stops a batch.
        let runs: Vec<(u32, bool)> = asks
            .iter()
            .map(|ask| {
                let run = client.start(&files());
                client.write(
                    run,
                    &crate::support::files::encoded(&inside, std::slice::from_ref(ask)),
                );
                client.end_input(run);
                (run, matches!(ask.item, Item::List { .. }))
            })
            .collect();
        for (run, is_list) in runs {
            let served = Served::from_outcome(&client.outcome(run), 1).whole();
            assert!(!served.items[0].data.starts_with(b"secret"), "read outside");
            if is_list {
                let entries = served.items[0].entries();
                assert!(
                    !entries
                        .iter()
                        .any(|entry| entry.path.as_bytes().ends_with(b"sub/f")),
                    "listed outside"
                );
            }
            match served.last(0) {
                Answer::Fault(_) => faults += 1,
                _ => done += 1,
            }
        }
        let found = client
            .run(&shell("find out | sort; cat out/secret out/sub/f"))
            .text();
        assert_eq!(found, format!("{before}secret\nsecret\n"));
    }
    eprintln!("{done} operations done and {faults} refused under attack");
    assert!(done > 100 && faults > 100, "the race was one");
}

#[test]
fn a_tree_that_grows_while_it_is_removed_ends_gone_or_named() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let growing = client.start(&shell(
        "echo ready; while :; do mkdir -p t/a/b 2>/dev/null; : > t/a/b/f; : > t/g; mv t/a t/c; done 2>/dev/null",
    ));
    client.stdout_holds(growing, "ready");
    for _ in 0..50 {
        let mut request = files();
        request.timeout_ms = Some(5000);
        let run = client.start(&request);
        client.write(
            run,
            &crate::support::files::encoded(&work, &[remove("t", true)]),
        );
        client.end_input(run);
        let served = Served::from_outcome(&client.outcome(run), 1);
        assert!(matches!(
            served.exit.status,
            Status::Exited(0) | Status::TimedOut
        ));
    }
    client.send(Kind::End, growing, &[EndReason::Cancelled as u8]);
    client.outcome(growing);
    assert_eq!(client.one(&work, remove("t", true)), Answer::Done);
    assert_eq!(client.run(&argv(&["ls", "-A"])).text(), "");
}

#[test]
fn a_file_that_changes_its_size_while_it_is_read_is_never_of_a_wrong_length() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let changing = client.start(&argv(&[
        "python3",
        "-c",
        "import os\nf = open('f', 'wb')\nprint('ready', flush=True)\nwhile True: os.truncate('f', 3000000); os.truncate('f', 10); os.truncate('f', 2000000)",
    ]));
    client.stdout_holds(changing, "ready");
    let (mut whole, mut changed) = (0, 0);
    for _ in 0..200 {
        let served = client.batch(&work, &[read("f")]).whole();
        let told = &served.items[0];
        let Some(Answer::Opened(stat)) = told.answers.first() else {
            panic!("{told:?}");
        };
        match served.last(0) {
            Answer::Done => {
                assert_eq!(told.data.len() as u64, stat.size.unwrap());
                whole += 1;
            }
            Answer::Fault(stockade_wire::files::FileFault::Changed) => changed += 1,
            answer => panic!("{answer:?}"),
        }
    }
    assert!(changed > 0 && whole + changed == 200);
}

/// The beginning of a write whose data does not end.
fn half_a_write(work: &std::path::Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let batch = Batch {
        work: work.display().to_string().into(),
        items: 1,
    };
    let item = Item::Write {
        path: "d/f".into(),
        kind: WriteKind::File { size: 1 << 30 },
        mode: 0o644,
        modified: None,
    };
    let payload = to_payload(Kind::FileRequest, &batch).unwrap();
    encode(Kind::FileRequest, BATCH, &payload, &mut bytes);
    let payload = to_payload(Kind::FileRequest, &item).unwrap();
    encode(Kind::FileRequest, 0, &payload, &mut bytes);
    for _ in 0..16 {
        encode(Kind::FileData, 0, &[1; 1 << 16], &mut bytes);
    }
    bytes
}

#[test]
fn a_worker_that_is_ended_in_the_middle_leaves_nothing() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    client.batch(&work, &[write("d/f", b"as before")]).done();
    let free = || {
        let stat = rustix::fs::statvfs(sandbox.outside(&work)).unwrap();
        stat.f_bfree
    };
    let before = free();
    for why in ["cancelled", "timed out", "killed by guest code"] {
        let mut request = files();
        request.timeout_ms = (why == "timed out").then_some(300);
        let run = client.start(&request);
        client.write(run, &half_a_write(&work));
        wait_until(|| free() + 32 < before);
        let expected = match why {
            "cancelled" => {
                client.send(Kind::End, run, &[EndReason::Cancelled as u8]);
                Status::Cancelled
            }
            "timed out" => Status::TimedOut,
            _ => {
                client.run(&shell("for p in /proc/[0-9]*; do read -r n < $p/comm; [ $n = stockade-files ] && kill -9 ${p#/proc/}; done; true"));
                Status::Signaled(9)
            }
        };
        let outcome = client.outcome(run);
        assert_eq!(outcome.exit.status, expected, "{why}");
        assert!(outcome.exit.tree_ended);
        assert_eq!(
            client.run(&shell("ls -A . d; cat d/f")).text(),
            ".:\nd\n\nd:\nf\nas before"
        );
        assert_eq!(free(), before, "{why}");
    }
}

#[test]
fn guest_code_can_neither_trace_nor_read_a_worker() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let run = client.start(&files());
    client.write(run, &half_a_write(&work));
    client.started(run);
    let attempt = "for p in /proc/[0-9]*; do read -r n < $p/comm; if [ $n = stockade-files ]; then \
         for f in environ mem maps; do head -c 1 $p/$f 2>&1 | grep -c denied; done; ls $p/fd 2>&1 | grep -c denied; fi; done; echo over";
    let outcome = client.run(&shell(attempt));
    assert_eq!(
        outcome.text(),
        "1\n1\n1\n1\nover\n",
        "{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    client.send(Kind::End, run, &[EndReason::Cancelled as u8]);
    client.outcome(run);
}

#[test]
fn operations_run_beside_commands_and_each_other() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let (mut client, work) = (sandbox.attach(), sandbox.work());
    let command = client.start(&shell("sleep 0.5; echo over"));
    let data = vec![3; 400_000];
    let runs: Vec<u32> = (0..8)
        .map(|i| {
            let run = client.start(&files());
            let asks = [write(format!("f{i}"), &data), read(format!("f{i}"))];
            client.write(run, &crate::support::files::encoded(&work, &asks));
            client.end_input(run);
            run
        })
        .collect();
    for run in runs {
        let served = Served::from_outcome(&client.outcome(run), 2).done();
        assert!(served.items[1].data == data);
    }
    let outcome = client.outcome(command);
    assert_eq!(outcome.text(), "over\n");
    assert!(!outcome.exit.out_of_memory);
    let asks: [Ask; 0] = [];
    assert!(client.batch(&work, &asks).whole().finished);
}
