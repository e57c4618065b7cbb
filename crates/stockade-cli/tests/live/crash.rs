//! The host program is killed at every step; what it leaves ends by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use stockade_tests::engine::left_of;

use crate::tool::Tool;

/// A docker client that kills who started it, at its N-th start.
fn deadly_client(folder: &Path, at: u32, before: bool) -> String {
    let path = folder.join("docker");
    let real = std::env::var("STOCKADE_DOCKER").unwrap_or_else(|_| "docker".into());
    let count = folder.join("count");
    fs::write(&count, "").expect("the count can be written");
    // The parent's descriptors close with it, so that the real client sees
    // what it would see after any kill.
    let script = format!(
        "#!/bin/sh\n\
         echo x >> {count}\n\
         if [ $(wc -l < {count}) -eq {at} ]; then\n\
         {kill_before}\n\
           {real} \"$@\"\n\
           kill -9 $PPID\n\
           exit 1\n\
         fi\n\
         exec {real} \"$@\"\n",
        count = count.display(),
        kill_before = if before { "kill -9 $PPID" } else { ":" },
    );
    fs::write(&path, script).expect("the client can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .expect("it can be made executable");
    path.display().to_string()
}

#[test]
fn a_host_that_is_killed_at_any_step_leaves_nothing_that_does_not_end_by_itself() {
    let mut killed = 0;
    for before in [true, false] {
        for at in 1..20 {
            let tool = Tool::new();
            let folder = tempfile::tempdir().expect("a folder can be made");
            let client = deadly_client(folder.path(), at, before);
            let options = ["--docker", &client, "--idle-limit", "3s"];
            let status = tool
                .command(&options, &["sh", "-c", "echo on"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .expect("the program ends");
            ends_by_itself(&tool, at, before);
            if status.code() == Some(0) {
                // It made fewer starts than this: every step was tried.
                break;
            }
            killed += 1;
        }
    }
    assert!(killed >= 8, "only {killed} steps were tried");
}

/// What is left goes without anybody's help. The bound is far above the idle
/// limit, for loaded machines; the loop ends as soon as nothing is left.
fn ends_by_itself(tool: &Tool, at: u32, before: bool) {
    let start = Instant::now();
    loop {
        let left = left_of(&tool.owner);
        if left.is_empty() {
            return;
        }
        let moment = if before { "before" } else { "after" };
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "killed {moment} start {at}: {left:?} does not end"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
