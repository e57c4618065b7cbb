//! The guard's script, in every shell that there is.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use docker_driver::stand_in::{Rule, StandIn, Step, until};
use rustix::process::{Pid, test_kill_process_group};

use crate::support::{ID, stand_in};

const SCRIPT: &str = include_str!("../../src/hold/guard.sh");

/// How each is started; `/bin/sh` is always there.
const SHELLS: [&[&str]; 7] = [
    &["/bin/sh"],
    &["/bin/dash"],
    &["/bin/bash", "--posix"],
    &["/bin/bash"],
    &["/bin/busybox", "sh"],
    &["/bin/mksh"],
    &["/bin/yash"],
];

/// A guard, a copy in its group, and our end of what they talk over.
struct Guarded {
    stand_in: StandIn,
    guard: Child,
    copy: Child,
    talk: UnixStream,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the shell is what is tested, apart from the driver"
)]
fn guarded(shell: &[&str], seconds: u32, patience: u32, rules: Vec<Rule>) -> Guarded {
    let stand_in = stand_in();
    stand_in.follow(rules);
    let patience = patience.to_string();
    let (talk, its) = UnixStream::pair().unwrap();
    let guard = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", SCRIPT, "guard"])
        .arg(stand_in.docker())
        .args([ID, &seconds.to_string(), "", &patience, &patience])
        .args(["is not running", "is not paused"])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(its)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let copy = Command::new("/bin/sh")
        .args(["-c", "read _"])
        .stdin(Stdio::piped())
        .process_group(guard.id().cast_signed())
        .spawn()
        .unwrap();
    Guarded {
        stand_in,
        guard,
        copy,
        talk,
    }
}

/// Docker fails at the first thaw.
fn failing() -> Vec<Rule> {
    let not_paused = "Error response from daemon: Container abc is not paused\n";
    vec![
        Rule::on(&["pause"]).out(ID),
        Rule::on(&["unpause"]).nth(1).err("hiccups").exit(1),
        Rule::on(&["unpause"]).err(not_paused).exit(1),
    ]
}

/// What a guard reports then.
const FAILING: [&str; 7] = [
    "pause", "ended 0", "thaws", "unpause", "ended 1", "unpause", "ended 1",
];

impl Guarded {
    /// Reads the report to its end, and checks it and what is left.
    async fn check(mut self, shell: &[&str], expected: &[&str]) {
        let group = Pid::from_raw(self.guard.id().cast_signed()).unwrap();
        let mut talk = self.talk;
        let read = move || {
            let mut report = String::new();
            talk.read_to_string(&mut report).map(|_| report)
        };
        let report = tokio::task::spawn_blocking(read).await.unwrap().unwrap();
        let parts = report.split("\n\u{1e}");
        let marks: Vec<_> = parts
            .filter_map(|part| part.lines().next())
            .map(|mark| mark.trim_start_matches('\u{1e}'))
            .collect();
        assert_eq!(marks, expected, "{shell:?}: {report:?}");
        // Of its children it may say so, but not among docker's words.
        let attempts = report
            .split('\u{1e}')
            .filter(|part| part.starts_with("unpause"));
        for words in attempts {
            assert!(!words.contains("guard"), "{shell:?}: {report:?}");
        }
        assert!(report.contains("hiccups\n"), "{shell:?}: {report:?}");
        let thawed = marks.contains(&"thaws");
        let code = self.guard.wait().unwrap().code();
        assert_eq!(code, Some(i32::from(!thawed)), "{shell:?}");
        if !thawed {
            // It has not got as far as to end it.
            self.copy.kill().unwrap();
        }
        let signal = if thawed { 15 } else { 9 };
        assert_eq!(
            self.copy.wait().unwrap().signal(),
            Some(signal),
            "{shell:?}"
        );
        let attempts = marks.iter().filter(|mark| mark.ends_with("pause"));
        assert_eq!(self.stand_in.calls().len(), attempts.count());
        until("the end of the group", || {
            test_kill_process_group(group).is_err()
        })
        .await;
    }
}

fn shells() -> impl Iterator<Item = &'static [&'static str]> {
    SHELLS
        .into_iter()
        .filter(|shell| Path::new(shell[0]).exists())
}

#[tokio::test]
async fn every_shell_thaws_when_the_holder_has_gone() {
    for shell in shells() {
        let guarded = guarded(shell, 60, 60, failing());
        guarded.stand_in.called(&["pause"], 1).await;
        guarded.talk.shutdown(std::net::Shutdown::Write).unwrap();
        guarded.check(shell, &FAILING).await;
    }
}

#[tokio::test]
async fn every_shell_thaws_when_the_time_is_over() {
    for shell in shells() {
        guarded(shell, 1, 60, failing())
            .check(shell, &FAILING)
            .await;
    }
}

#[tokio::test]
async fn every_shell_kills_a_docker_that_hangs_and_thaws_all_the_same() {
    let hangs = |rule: Rule| rule.err("hiccups").step(Step::IgnoreTerm).step(Step::Hang);
    let runs = shells().map(async |shell| {
        let mut rules = failing();
        rules[1] = hangs(Rule::on(&["unpause"]).nth(1));
        let expected = [
            "pause",
            "ended 0",
            "thaws",
            "unpause",
            "overdue",
            "ended 137",
            "unpause",
            "ended 1",
        ];
        // Long enough for a docker that does not hang, on any machine.
        guarded(shell, 1, 10, rules).check(shell, &expected).await;
        let rules = vec![hangs(Rule::on(&["pause"]))];
        let expected = ["pause", "overdue", "ended 137"];
        guarded(shell, 1, 2, rules).check(shell, &expected).await;
    });
    futures_util::future::join_all(runs).await;
}
