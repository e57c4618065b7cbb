//! What the hello says.

use crate::support::Sandbox;

#[test]
fn the_hello_says_what_the_sandbox_really_has() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let client = sandbox.attach();
    let hello = &client.hello;
    assert_eq!(hello.protocol, stockade_wire::PROTOCOL);
    assert_eq!(hello.digest, "0123abcd");
    assert_eq!(hello.uid, hello.gid);
    assert!(hello.uid >= 200_000);
    assert!(hello.age_ms < 60_000);
    assert_eq!((hello.kill_generation, hello.live_runs), (0, 0));
    assert!(!hello.network);
    assert!(hello.shielded);
    assert!(hello.limits.no_new_privileges);
    assert_eq!(hello.limits.capability_bounds, 0);
    assert_eq!(hello.limits.core, Some(0));
    let work = sandbox.work();
    let mounted = hello.mounts.iter().find(|mount| {
        mount.path.as_bytes() == std::os::unix::ffi::OsStrExt::as_bytes(work.as_os_str())
    });
    let mounted = mounted.expect("the work directory is a mount");
    assert_eq!(mounted.kind, "tmpfs");
    assert!(!mounted.read_only);
    assert!(
        hello
            .mounts
            .iter()
            .all(|mount| !mount.path.as_bytes().starts_with(b"/proc"))
    );
}

#[test]
fn it_is_pid_1_or_nothing() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let output = crate::support::command(&sandbox.guest().display().to_string())
        .args([
            "init",
            "--work",
            "/",
            "--idle-limit-ms",
            "1",
            "--max-age-ms",
            "1",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(69));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(complaint.contains("first process"), "{complaint}");
}

#[test]
fn a_relay_without_a_pid_1_says_so() {
    let Some(sandbox) = Sandbox::start() else {
        return;
    };
    let mut client = sandbox.attach();
    client.ping();
    // Outside, where nobody listens.
    let output = crate::support::command(&sandbox.guest().display().to_string())
        .args(["attach", "--wait-ms", "50"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(69));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(complaint.contains("cannot be reached"), "{complaint}");
}
