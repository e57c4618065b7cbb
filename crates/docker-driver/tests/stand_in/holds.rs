//! Holds, when docker or the guard goes wrong.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use docker_driver::stand_in::{Rule, Step, until};
use docker_driver::{
    Aftermath, Bounds, CallError, CallErrorKind, Docker, Exit, Hold, HoldRequest, Outcome, Undo,
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use tokio::time::Instant;

use crate::support::{Bench, ID, exists, id, pid_at, stand_in};

const HICCUPS: &str = "Error response from daemon: the engine has hiccups";

async fn hold(bench: &Bench) -> Result<Hold, CallError> {
    let request = HoldRequest::new(id());
    bench.docker.hold(&Bounds::patient(), request).await
}

/// The group of the guard, which paused.
pub(crate) fn guard(bench: &Bench) -> Pid {
    let group = bench.stand_in.calls_of(&["pause"])[0].group;
    Pid::from_raw(group.cast_signed()).unwrap()
}

/// Asserts that neither the guard nor anything that it started is left.
async fn assert_guard_gone(group: Pid) {
    until("the end of the guard's group", || {
        test_kill_process_group(group).is_err()
    })
    .await;
}

fn calls(bench: &Bench, verb: &str) -> usize {
    bench.stand_in.calls_of(&[verb, ID]).len()
}

fn pausing() -> [Rule; 2] {
    [Rule::on(&["pause"]).out(ID), Rule::on(&["unpause"]).out(ID)]
}

#[tokio::test]
async fn a_hold_pauses_and_thaws_once_and_leaves_no_process() {
    let bench = Bench::new(pausing()).await;
    let before = bench.docker.log().counts();
    let held = hold(&bench).await.unwrap();
    assert!(held.is_in_force());
    assert_eq!((calls(&bench, "pause"), calls(&bench, "unpause")), (1, 0));
    let group = guard(&bench);
    test_kill_process_group(group).unwrap();
    held.release().await.unwrap();
    assert_eq!((calls(&bench, "pause"), calls(&bench, "unpause")), (1, 1));
    let counts = bench.docker.log().counts().since(&before);
    assert_eq!((counts.of("pause"), counts.of("unpause")), (1, 1));
    assert_eq!(counts.total(), 2);
    assert_guard_gone(group).await;
    bench.assert_all_reaped().await;
    let recent = bench.docker.log().recent();
    let [.., pause, unpause] = &recent[..] else {
        panic!("not two");
    };
    assert_eq!((pause.verb, unpause.verb), ("pause", "unpause"));
    let ended = Outcome::Ended(Exit::Code(0));
    assert_eq!((pause.outcome, unpause.outcome), (ended, ended));
}

#[tokio::test]
async fn docker_is_run_by_the_guard_with_the_pinned_settings() {
    let bench = Bench::new(pausing()).await;
    hold(&bench).await.unwrap().release().await.unwrap();
    let ours = &bench.stand_in.calls_of(&["info"])[0].environment;
    for verb in ["pause", "unpause"] {
        let mut guards = bench.stand_in.calls_of(&[verb])[0].environment.clone();
        // A shell's own.
        for own in ["PWD", "OLDPWD", "SHLVL", "_"] {
            guards.remove(own);
        }
        assert_eq!(&guards, ours, "{verb}");
    }
}

#[tokio::test]
async fn a_pause_that_fails_is_told_with_dockers_words_and_nothing_is_thawed() {
    let cases = [
        (
            "Error response from daemon: Container abc is already paused",
            CallErrorKind::AlreadyPaused,
        ),
        (
            "Error response from daemon: container abc is not running",
            CallErrorKind::NotRunning,
        ),
        (
            "Error response from daemon: cannot pause container abc: OCI runtime pause failed: \
             freezer not supported: unknown",
            CallErrorKind::PauseUnsupported,
        ),
        (HICCUPS, CallErrorKind::Other),
    ];
    for (words, kind) in cases {
        let rules = [
            Rule::on(&["pause"]).err(format!("{words}\n")).exit(1),
            // It exists.
            Rule::on(&["ps"]).out(format!(
                "{{\"ID\":\"{ID}\",\"Names\":\"x\",\"State\":\"running\",\"Labels\":\"\",\"Image\":\"x\",\"CreatedAt\":\"\"}}\n"
            )),
        ];
        let bench = Bench::new(rules).await;
        let error = hold(&bench).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_eq!(error.detail().trim(), words);
        assert_eq!(error.exit(), Some(Exit::Code(1)));
        bench.assert_all_reaped().await;
        assert_eq!(calls(&bench, "unpause"), 0);
    }
}

#[tokio::test]
async fn a_docker_that_is_not_there_holds_nothing() {
    let bench = Bench::new([]).await;
    std::fs::remove_file(bench.stand_in.docker()).unwrap();
    let error = hold(&bench).await.unwrap_err();
    assert_eq!(error.exit(), Some(Exit::Code(127)), "{error:?}");
    bench.settle().await;
}

#[tokio::test]
async fn a_thaw_that_fails_is_tried_again_and_the_last_one_counts() {
    let rules = [
        Rule::on(&["pause"]),
        Rule::on(&["unpause"]).nth(3),
        Rule::on(&["unpause"]).err(HICCUPS).exit(1),
    ];
    let bench = Bench::new(rules).await;
    hold(&bench).await.unwrap().release().await.unwrap();
    assert_eq!(calls(&bench, "unpause"), 3);
    assert_eq!(bench.docker.log().counts().of("unpause"), 3);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_thaw_that_never_succeeds_is_told_with_dockers_last_words_or_handed_over() {
    let rules = || {
        [
            Rule::on(&["pause"]),
            Rule::on(&["unpause"]).nth(1).err("first").exit(1),
            Rule::on(&["unpause"]).err(HICCUPS).exit(1),
            Rule::on(&["ps"]).exit(1),
        ]
    };
    let (told, handed_over) = (Bench::new(rules()).await, Bench::new(rules()).await);
    let tell = async {
        let error = hold(&told).await.unwrap().release().await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Other);
        assert_eq!(error.detail().trim(), HICCUPS);
        let Aftermath::Left { undo, .. } = error.aftermath() else {
            panic!("{error:?}");
        };
        assert_eq!(*undo, Undo::Unpause(id().into()));
        assert_eq!(calls(&told, "unpause"), 5);
        told.settle().await;
    };
    let hand_over = async {
        drop(hold(&handed_over).await.unwrap());
        let settled = handed_over.docker.settle(Bounds::patient().deadline).await;
        let [failed] = &settled.failed[..] else {
            panic!("{settled:?}");
        };
        assert_eq!(failed.undo, Undo::Unpause(id().into()));
        assert_eq!(settled.unfinished, 0);
    };
    tokio::join!(tell, hand_over);
}

#[tokio::test]
async fn a_docker_that_hangs_at_a_thaw_is_killed_and_the_thaw_is_tried_again() {
    let rules = [
        Rule::on(&["pause"]),
        Rule::on(&["unpause"])
            .nth(1)
            .step(Step::IgnoreTerm)
            .step(Step::Mark("hangs".into()))
            .step(Step::Hang),
        Rule::on(&["unpause"]),
    ];
    // A sixth of it is what a thaw may take.
    let bench = Bench::with_timeout(Duration::from_secs(24), rules).await;
    hold(&bench).await.unwrap().release().await.unwrap();
    assert_eq!(calls(&bench, "unpause"), 2);
    assert!(!exists(pid_at(&bench.stand_in, "hangs")));
    let recent = bench.docker.log().recent();
    let outcomes = recent.iter().filter(|call| call.verb == "unpause");
    let outcomes: Vec<_> = outcomes.map(|call| call.outcome).collect();
    assert_eq!(outcomes, [Outcome::TimedOut, Outcome::Ended(Exit::Code(0))]);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_docker_that_hangs_at_a_pause_is_killed_and_leaves_open_who_has_paused() {
    let hangs = Rule::on(&["pause"])
        .err(HICCUPS)
        .step(Step::IgnoreTerm)
        .step(Step::Hang);
    let bench = Bench::with_timeout(Duration::from_secs(2), [hangs]).await;
    let error = hold(&bench).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    assert_eq!(error.detail().trim(), HICCUPS);
    assert!(matches!(error.aftermath(), Aftermath::Left { .. }));
    assert_guard_gone(guard(&bench)).await;
    bench.assert_all_reaped().await;
    assert_eq!(calls(&bench, "unpause"), 0);
}

#[tokio::test]
async fn a_container_that_is_not_frozen_any_more_is_not_thawed_again() {
    let cases = [
        ("Container abc is not paused", None),
        (
            "container abc is not running",
            Some(CallErrorKind::NotRunning),
        ),
        (
            "No such container: abc",
            Some(CallErrorKind::NoSuchContainer),
        ),
    ];
    for (words, kind) in cases {
        let words = format!("Error response from daemon: {words}\n");
        let unpause = Rule::on(&["unpause"]).err(words).exit(1);
        let bench = Bench::new([Rule::on(&["pause"]), unpause, Rule::on(&["ps"])]).await;
        let released = hold(&bench).await.unwrap().release().await;
        assert_eq!(released.err().map(|error| error.kind()), kind);
        assert_eq!(calls(&bench, "unpause"), 1, "{kind:?}");
        drop(hold(&bench).await.unwrap());
        bench.settle().await;
    }
}

#[tokio::test]
async fn a_hold_that_is_over_was_thawed_by_itself_and_copies_nothing() {
    let bench = Bench::new(pausing()).await;
    let request = HoldRequest::new(id()).limit(Duration::from_millis(1900));
    let bounds = Bounds::patient();
    let held = bench.docker.hold(&bounds, request).await.unwrap();
    assert!(held.remaining() <= Duration::from_secs(1), "whole seconds");
    bench.stand_in.called(&["unpause"], 1).await;
    assert!(!held.is_in_force());
    let path = crate::support::path("/tmp");
    let error = held.copy_in(&path).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::HoldEnded);
    assert_eq!(bench.stand_in.calls_of(&["cp"]).len(), 0);
    held.release().await.unwrap();
    assert_eq!(calls(&bench, "unpause"), 1);
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_guard_that_is_killed_is_stood_in_for_and_its_group_ended() {
    let bench = Bench::new(pausing()).await;
    let held = hold(&bench).await.unwrap();
    let group = guard(&bench);
    kill_process(group, Signal::KILL).unwrap();
    until("the end of the hold", || !held.is_in_force()).await;
    held.release().await.unwrap();
    assert_eq!(calls(&bench, "unpause"), 1);
    assert_guard_gone(group).await;
    bench.assert_all_reaped().await;
}

#[tokio::test]
async fn a_guard_that_is_killed_while_it_pauses_leaves_open_who_has_paused() {
    let pause = Rule::on(&["pause"])
        .step(Step::Mark("pauses".into()))
        .step(Step::Hang);
    let bench = Bench::new([pause]).await;
    let kill = async {
        bench.stand_in.reached("pauses").await;
        kill_process(guard(&bench), Signal::KILL).unwrap();
    };
    let (held, ()) = tokio::join!(hold(&bench), kill);
    let error = held.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Signalled);
    assert!(matches!(error.aftermath(), Aftermath::Left { .. }));
    assert_guard_gone(guard(&bench)).await;
    bench.settle().await;
    assert_eq!(calls(&bench, "unpause"), 0);
}

#[tokio::test]
async fn a_hold_that_nobody_waits_for_any_more_is_thawed_once_it_is_paused() {
    let pause = Rule::on(&["pause"])
        .step(Step::Mark("pauses".into()))
        .step(Step::WaitFor("go on".into()));
    let bench = Bench::new([pause, Rule::on(&["unpause"])]).await;
    let bounds = Bounds::patient();
    let cancel = async {
        bench.stand_in.reached("pauses").await;
        bounds.cancel.cancel();
    };
    let holds = bench.docker.hold(&bounds, HoldRequest::new(id()));
    let (held, ()) = tokio::join!(holds, cancel);
    let error = held.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Cancelled);
    let pending = Aftermath::Pending(Undo::Unpause(id().into()));
    assert_eq!(*error.aftermath(), pending);
    let settled = bench.docker.settle(Instant::now()).await;
    assert_eq!(settled.unfinished, 1);
    bench.stand_in.open("go on");
    bench.assert_all_reaped().await;
    assert_eq!(calls(&bench, "unpause"), 1);
}

#[tokio::test]
async fn a_terminals_signals_do_not_reach_a_hold() {
    let bench = Bench::new(pausing()).await;
    let held = hold(&bench).await.unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        rustix::process::kill_process_group(guard(&bench), signal).unwrap();
    }
    assert!(held.is_in_force());
    held.release().await.unwrap();
    assert_eq!(calls(&bench, "unpause"), 1);
}

#[test]
fn when_the_runtime_ends_the_container_is_thawed_and_the_settings_are_still_there() {
    let unpause = Rule::on(&["unpause"])
        .step(Step::Mark("thaws".into()))
        .step(Step::WaitFor("go on".into()));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stand_in = stand_in();
    runtime.block_on(async {
        let docker = Docker::bind(stand_in.config()).await.unwrap();
        stand_in.follow([Rule::on(&["pause"]), unpause]);
        let request = HoldRequest::new(id());
        let held = docker.hold(&Bounds::patient(), request).await.unwrap();
        assert!(held.is_in_force());
    });
    drop(runtime);
    let wait = async { stand_in.reached("thaws").await };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(wait);
    let call = &stand_in.calls_of(&["unpause"])[0];
    let config = Path::new(&call.environment["DOCKER_CONFIG"]);
    assert!(config.join("config.json").exists());
    let lock = File::open(config.parent().unwrap().join("lock")).unwrap();
    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
    stand_in.open("go on");
    // Gone with the guard.
    lock.lock().unwrap();
    std::fs::remove_dir_all(config.parent().unwrap()).unwrap();
}

#[tokio::test]
async fn a_lock_stays_locked_until_the_thaw_and_says_whose_pause_it_was() {
    let unpause = Rule::on(&["unpause"])
        .step(Step::Mark("thaws".into()))
        .step(Step::WaitFor("go on".into()));
    let bench = Bench::new([Rule::on(&["pause"]), unpause]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some lock");
    let lock = File::create_new(&path).unwrap();
    lock.lock().unwrap();
    let request = HoldRequest::new(id()).lock(lock, &path);
    let held = bench.docker.hold(&Bounds::patient(), request).await;
    until("the word", || {
        std::fs::read_to_string(&path).unwrap() == "paused\n"
    })
    .await;
    drop(held);
    bench.stand_in.reached("thaws").await;
    let another = File::open(&path).unwrap();
    assert!(matches!(another.try_lock(), Err(TryLockError::WouldBlock)));
    bench.stand_in.open("go on");
    bench.settle().await;
    assert!(!path.exists());
    another.lock().unwrap();
}

#[tokio::test]
async fn a_lock_of_a_pause_that_failed_says_nothing_and_stays() {
    let paused = "Error response from daemon: Container abc is already paused";
    let bench = Bench::new([Rule::on(&["pause"]).err(paused).exit(1)]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = File::create_new(&path).unwrap();
    let request = HoldRequest::new(id()).lock(lock, &path);
    let held = bench.docker.hold(&Bounds::patient(), request).await;
    assert_eq!(held.unwrap_err().kind(), CallErrorKind::AlreadyPaused);
    bench.settle().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
}
