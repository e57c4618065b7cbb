//! The guard's script, in every shell that there is.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use docker_driver::stand_in::{Rule, StandIn, until};
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
fn guarded(shell: &[&str], seconds: u32) -> Guarded {
    let stand_in = stand_in();
    let not_paused = "Error response from daemon: Container abc is not paused\n";
    stand_in.follow([
        Rule::on(&["pause"]).out(ID),
        Rule::on(&["unpause"]).nth(1).err("hiccups").exit(1),
        Rule::on(&["unpause"]).err(not_paused).exit(1),
    ]);
    let (talk, its) = UnixStream::pair().unwrap();
    let guard = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", SCRIPT, "guard"])
        .arg(stand_in.docker())
        .args([ID, &seconds.to_string(), ""])
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

impl Guarded {
    /// Reads the report to its end, and checks it and what is left.
    async fn check(mut self, shell: &[&str]) {
        let group = Pid::from_raw(self.guard.id().cast_signed()).unwrap();
        let mut report = String::new();
        self.talk.read_to_string(&mut report).unwrap();
        let marks: Vec<_> = report
            .lines()
            .filter_map(|line| line.strip_prefix('\u{1e}'))
            .collect();
        let expected = [
            "pause", "ended 0", "thaws", "unpause", "ended 1", "unpause", "ended 1",
        ];
        assert_eq!(marks, expected, "{shell:?}: {report:?}");
        assert!(report.contains("hiccups"), "{shell:?}: {report:?}");
        assert_eq!(self.guard.wait().unwrap().code(), Some(0), "{shell:?}");
        assert_eq!(self.copy.wait().unwrap().signal(), Some(15), "{shell:?}");
        assert_eq!(self.stand_in.calls().len(), 3);
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
        let guarded = guarded(shell, 60);
        guarded.stand_in.called(&["pause"], 1).await;
        guarded.talk.shutdown(std::net::Shutdown::Write).unwrap();
        guarded.check(shell).await;
    }
}

#[tokio::test]
async fn every_shell_thaws_when_the_time_is_over() {
    for shell in shells() {
        guarded(shell, 1).check(shell).await;
    }
}
