//! What `guest status` says.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use stockade_wire::Text;
use stockade_wire::ends::End;
use stockade_wire::inquiry::{Activity, Detachment, Entry, Happening, JOURNAL, PROGRAM};
use stockade_wire::message::{Program, Start, Status};

use crate::support::{Client, Options, Sandbox, argv, parsed, shell, wait_for, wait_until};

#[test]
fn one_that_nobody_uses_says_what_it_is_and_that_it_is_idle() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let first = sandbox.status(&[]);
    assert_eq!(first.protocol, stockade_wire::PROTOCOL);
    assert_eq!(first.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(first.digest, "0123abcd");
    assert_eq!(first.idle_limit_ms, 600_000);
    assert_eq!(first.maximum_age_ms, 600_000);
    assert_eq!((first.channels, first.waiting, first.leftovers), (0, 0, 0));
    assert_eq!((first.runs.len(), first.kill_generation), (0, 0));
    assert_eq!((first.journal, first.journal_lost), (None, 0));
    // PID 1, and who asks.
    assert_eq!(first.processes, 2);
    let work = first.work.expect("a work directory");
    assert!(!work.shared && work.size > 0 && work.inodes > 0);
    let file = sandbox.outside(&sandbox.work().join("full"));
    std::fs::write(file, vec![1; 1 << 20]).unwrap();
    let second = sandbox.status(&["--journal"]);
    let grown = second.work.expect("a work directory");
    assert_eq!(grown.used - work.used, 1 << 20);
    assert_eq!(grown.inodes_used - work.inodes_used, 1);
    // Nobody was here in between: to look is no use.
    assert_eq!(
        (second.idle_ms, second.unheard_ms),
        (second.age_ms, second.age_ms)
    );
    assert!(second.age_ms >= first.age_ms);
    assert_eq!(second.journal, Some(Vec::new()));
}

#[test]
fn commands_are_named_by_their_first_word_and_nothing_else() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = argv(&["sleep", "300.25"]);
    request.env = vec![("TOKEN".into(), "hush-hush".into())];
    let sleeper = client.start(&request);
    let pid = client.started(sleeper).pid;
    let mut request = shell("echo ready; exec sleep 300.5");
    request.background = true;
    let line = client.start(&request);
    client.stdout_holds(line, "ready");
    let output = sandbox.ask(&["status", "--journal"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for secret in ["300.25", "300.5", "TOKEN", "hush", "ready"] {
        assert!(!text.contains(secret), "{text}");
    }
    let activity: Activity = parsed(&output);
    assert_eq!((activity.channels, activity.idle_ms), (1, 0));
    let [first, second] = &activity.runs[..] else {
        panic!("{activity:?}");
    };
    assert_eq!((first.program.as_str(), first.pid), ("sleep", pid));
    assert!(!first.background && !first.ended);
    assert_eq!(second.program, "sh -c");
    assert!(second.background && !second.ended);
    for run in [first, second] {
        assert_eq!(run.processes, 1);
        assert!(run.memory > 0 && run.running_ms <= activity.age_ms);
    }
    // PID 1, the relay, the asker, and two commands with their supervisors.
    assert_eq!((activity.processes, activity.leftovers), (7, 0));
}

#[test]
fn what_a_command_uses_is_that_of_its_whole_tree_and_of_the_dead_in_it() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    // Half a second of work by a process that is gone, and daemons that stay.
    let busy = client.start(&shell(
        "timeout -s KILL 0.5 sh -c 'while :; do :; done'; setsid sh -c 'sleep 300 & sleep 300 & wait' & \
         echo done; wait",
    ));
    let idle = client.start(&argv(&["sleep", "300"]));
    client.started(idle);
    client.stdout_holds(busy, "done");
    wait_for(|| {
        let activity = sandbox.status(&[]);
        let [busy, idle] = &activity.runs[..] else {
            panic!("{activity:?}");
        };
        // The kernel counts in ticks of 10 ms, and others want the CPU, too.
        assert!(busy.cpu_ms >= 100 && idle.cpu_ms < 100, "{activity:?}");
        assert_eq!(idle.processes, 1);
        (busy.processes == 4).then_some(())
    });
}

#[test]
fn what_outlives_its_program_is_counted_as_left() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("sleep 300 & sleep 300 & exit 0");
    request.background = true;
    let outcome = client.run(&request);
    assert_eq!(outcome.exit.left_running, 2);
    let activity = sandbox.status(&["--journal"]);
    assert_eq!(activity.leftovers, 2);
    let [run] = &activity.runs[..] else {
        panic!("{activity:?}");
    };
    assert!(run.ended && run.background);
    assert_eq!(run.processes, 2);
    let ended = journal(&activity).iter().any(|entry| {
        matches!(entry.what, Happening::Ended { run: id, left_running: 2, .. } if id == run.id)
    });
    assert!(ended, "{activity:?}");
    client.kill_all();
    let activity = sandbox.status(&[]);
    assert_eq!((activity.leftovers, activity.runs.len()), (0, 0));
    assert_eq!(activity.kill_generation, 1);
}

#[test]
fn a_look_needs_no_place_of_a_host() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut clients: Vec<Client> = (0..16).map(|_| sandbox.attach()).collect();
    for client in &mut clients {
        client.ping();
    }
    let turned_away = sandbox.ask(&["attach"]);
    assert!(turned_away.stdout.is_empty());
    let activity = sandbox.status(&[]);
    assert_eq!(activity.channels, 16);
    for client in &mut clients {
        client.ping();
    }
}

#[test]
fn a_look_keeps_nothing_alive() {
    let options = Options {
        idle_limit: Duration::from_millis(800),
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    // Until it does not answer any more, because it is gone.
    wait_until(|| sandbox.ask(&["status"]).status.code() != Some(0));
    assert_eq!(sandbox.end(), Some(End::IdleLimit));
}

#[test]
fn those_who_do_not_take_their_answer_keep_others_out_for_a_moment_only() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    // Their output is full before they begin.
    let mut stuck = Vec::new();
    for _ in 0..6 {
        let (reader, writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let mut full = &writer;
        while full.write(&[b' '; 512]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
        let mut asker = sandbox.run_by_engine(&["status"]);
        asker.stdout(Stdio::from(writer));
        stuck.push((asker.spawn().expect("an asker starts"), reader));
    }
    assert_eq!(sandbox.status(&[]).channels, 0);
    for (asker, reader) in &mut stuck {
        drop(std::mem::replace(reader, std::io::pipe().unwrap().0));
        asker.wait().unwrap();
    }
}

#[test]
fn a_storm_of_processes_delays_neither_a_look_nor_a_host() {
    let options = Options {
        processes: 256,
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    let mut request = shell("echo ready; while :; do (sleep 0.01 &) 2>/dev/null; done");
    request.timeout_ms = Some(60_000);
    let storm = client.start(&request);
    client.stdout_holds(storm, "ready");
    let mut answers = 0;
    for _ in 0..30 {
        client.ping();
        // A user who has no process left to make has no asker either.
        let output = sandbox.ask(&["status"]);
        if output.status.success() {
            let activity: Activity = parsed(&output);
            assert_eq!(activity.runs.len(), 1);
            answers += 1;
        }
    }
    assert!(answers > 0);
    client.ping();
}

#[test]
fn the_journal_tells_what_happened_in_its_order() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    client.run(&shell("exit 3"));
    client.run(&argv(&["no-such-program"]));
    client.kill_all();
    client.hang_up();
    client.until_closed();
    let mut rude = sandbox.attach();
    rude.send_raw(&[0xee; 64]);
    rude.until_closed();
    let activity = wait_for(|| {
        let activity = sandbox.status(&["--journal"]);
        (activity.channels == 0).then_some(activity)
    });
    let entries = journal(&activity);
    let times: Vec<u64> = entries.iter().map(|entry| entry.at_ms).collect();
    assert!(times.is_sorted() && times.last() <= Some(&activity.age_ms));
    let what: Vec<&Happening> = entries.iter().map(|entry| &entry.what).collect();
    let [
        Happening::Attached { channel },
        Happening::Started {
            run,
            program,
            background: false,
        },
        Happening::Ended {
            run: same,
            status: Some(Status::Exited(3)),
            out_of_memory: false,
            ..
        },
        Happening::Ended {
            program: missing,
            status: Some(Status::NotStarted(_)),
            ..
        },
        Happening::KilledAll {
            generation: 1,
            left: 0,
        },
        Happening::Detached {
            channel: gone,
            why: Detachment::Closed,
        },
        Happening::Attached { channel: second },
        Happening::Detached {
            channel: expelled,
            why: Detachment::Protocol,
        },
    ] = what[..]
    else {
        panic!("{entries:?}");
    };
    assert_eq!((run, program.as_str()), (same, "sh -c"));
    assert_eq!(missing, "no-such-program");
    assert_eq!((channel, second), (gone, expelled));
}

#[test]
fn the_journal_is_bounded_and_counts_what_it_lost() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    // A name that is as long as a name can be when it is written.
    let hostile: Vec<u8> = b"\x1b\"\\".repeat(100);
    let request = Start {
        program: Program::Argv(vec![Text::from(hostile)]),
        ..argv(&[])
    };
    let count = JOURNAL as u64 + 9;
    for _ in 0..count {
        client.run(&request);
    }
    let activity = sandbox.status(&["--journal"]);
    let entries = journal(&activity);
    assert_eq!(entries.len(), JOURNAL);
    // The host that came is another happening.
    assert_eq!(activity.journal_lost, count + 1 - JOURNAL as u64);
    for entry in entries {
        let Happening::Ended { program, .. } = &entry.what else {
            panic!("{entry:?}");
        };
        assert!(program.len() <= PROGRAM && !program.contains(char::is_control));
    }
    assert_eq!(sandbox.status(&[]).journal, None);
}

#[test]
fn a_want_of_memory_is_told_beside_the_figures() {
    let options = Options {
        prepare: "
            name=$(basename $(dirname WORK))
            if [ -d /sys/fs/cgroup/memory ]; then
              own=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/$name
              limit=memory.limit_in_bytes
            else
              own=/sys/fs/cgroup/$name; limit=memory.max
            fi
            if mkdir $own && echo 50331648 > $own/$limit && echo $$ > $own/cgroup.procs; then
              touch WORK/limited
              chmod 0644 WORK/limited
            fi 2>/dev/null",
        ..Options::default()
    };
    let Some(sandbox) = Sandbox::with(&options) else {
        return;
    };
    let mut client = sandbox.attach();
    if !sandbox.outside(&sandbox.work()).join("limited").exists() {
        skipped("no control group of its own can be made here");
        return;
    }
    let before = sandbox.status(&[]);
    assert_eq!(
        (before.memory.limit, before.oom_kills),
        (Some(48 << 20), Some(0))
    );
    assert!(before.memory.current > Some(0) && before.memory.current < before.memory.limit);
    let outcome = client.run(&shell("head -c 200000000 /dev/zero | tail -c 190000000"));
    assert!(outcome.exit.out_of_memory, "{:?}", outcome.exit);
    let after = sandbox.status(&["--journal"]);
    assert!(after.oom_kills > Some(0), "{after:?}");
    assert!(
        after.memory.peak.is_none_or(|peak| peak > 40 << 20),
        "{after:?}"
    );
    let told = journal(&after).iter().any(|entry| {
        matches!(
            entry.what,
            Happening::Ended {
                out_of_memory: true,
                ..
            }
        )
    });
    assert!(told, "{after:?}");
    let groups = own_groups(&sandbox);
    drop((client, sandbox));
    for group in groups {
        wait_until(|| std::fs::remove_dir(&group).is_ok() || !group.exists());
    }
}

/// The control groups that the test made for this sandbox.
fn own_groups(sandbox: &Sandbox) -> Vec<std::path::PathBuf> {
    let work = sandbox.work();
    let name = work.parent().and_then(|folder| folder.file_name()).unwrap();
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let memory = membership
        .lines()
        .find_map(|line| line.split_once(":memory:"));
    let own = memory.map_or("", |(_, path)| path.trim_start_matches('/'));
    let root = std::path::Path::new("/sys/fs/cgroup");
    [root.join("memory").join(own), root.to_owned()]
        .map(|parent| parent.join(name))
        .into_iter()
        .filter(|group| group.exists())
        .collect()
}

#[expect(
    clippy::print_stdout,
    reason = "whoever reads the test's output must see it"
)]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn journal(activity: &Activity) -> &[Entry] {
    activity
        .journal
        .as_deref()
        .expect("the journal was asked for")
}
