//! What guest code does to the guest runtime costs the guest, and nobody else.

use std::time::Duration;

use stockade::{ExecRequest, ExecStatus};
use stockade_tests::engine::Fixture;

/// The sandbox does its job after an attack, on the same container.
async fn still_works(fixture: &Fixture) {
    let outcome = fixture.sh("echo on").await;
    assert_eq!(outcome.stdout, "on\n", "{outcome:?}");
}

#[tokio::test]
async fn pid_1_ignores_every_signal_from_inside() {
    let fixture = Fixture::python().await;
    let outcome = fixture
        .sh("for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; echo sent")
        .await;
    assert_eq!(outcome.stdout, "sent\n");
    still_works(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn killing_everything_that_can_be_killed_ends_the_command_only() {
    let fixture = Fixture::python().await;
    let outcome = fixture.sh("kill -9 -1").await;
    assert!(!outcome.success(), "{outcome:?}");
    still_works(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn a_killed_relay_ends_its_commands_and_a_new_one_is_opened() {
    let fixture = Fixture::python().await;
    let outcome = fixture.sh("pkill -9 -f 'guest attach'; sleep 300").await;
    assert!(!outcome.success(), "{outcome:?}");
    assert!(outcome.tree_ended);
    still_works(&fixture).await;
    assert_eq!(fixture.sh("pgrep -c -f '^sleep 300'").await.stdout, "0\n");
    fixture.close().await;
}

#[tokio::test]
async fn a_stopped_relay_costs_its_own_command_and_the_end_is_proved() {
    let fixture = Fixture::python().await;
    let line = "setsid sleep 344 & pkill -STOP -f 'guest attach'; sleep 345";
    let request = ExecRequest::shell(line).timeout(Duration::from_secs(2));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert!(outcome.tree_ended, "{outcome:?}");
    still_works(&fixture).await;
    assert_eq!(
        fixture.sh("pgrep -c -f '^sleep 34[45]'").await.stdout,
        "0\n"
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_tree_with_it() {
    let fixture = Fixture::python().await;
    let outcome = fixture
        .sh("setsid sleep 341 & kill -9 $PPID; sleep 342")
        .await;
    assert!(!outcome.success(), "{outcome:?}");
    still_works(&fixture).await;
    assert_eq!(
        fixture.sh("pgrep -c -f '^sleep 34[12]'").await.stdout,
        "0\n"
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_stopped_supervisor_does_not_save_its_command() {
    let fixture = Fixture::python().await;
    let request = ExecRequest::shell("kill -STOP $PPID; sleep 343").timeout(Duration::from_secs(2));
    let outcome = fixture.exec(request).await;
    assert_eq!(outcome.status, ExecStatus::TimedOut);
    assert!(outcome.tree_ended);
    still_works(&fixture).await;
    assert_eq!(fixture.sh("pgrep -c -f '^sleep 343'").await.stdout, "0\n");
    fixture.close().await;
}

#[tokio::test]
async fn pid_1_accepts_no_connection_of_guest_code() {
    let fixture = Fixture::python().await;
    let program = "
import socket
names = {line.split()[-1] for line in open('/proc/net/unix') if '@' in line}
assert names, 'PID 1 listens nowhere'
for name in names:
    for _ in range(200):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect('\\0' + name[1:])
        try: got = s.recv(1000)
        except ConnectionResetError: got = b''
        assert got == b'', got
print('refused')
";
    let outcome = fixture.py(program).await;
    assert_eq!(outcome.stdout, "refused\n", "{}", outcome.stderr_text());
    still_works(&fixture).await;
    fixture.close().await;
}

#[tokio::test]
async fn nothing_of_the_guest_runtime_can_be_traced_or_read() {
    let fixture = Fixture::python().await;
    let program = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in (1, os.getppid()):
    assert libc.ptrace(16, pid, 0, 0) == -1, f'attached to {pid}'
    for what in ('mem', 'environ', 'maps'):
        try:
            open(f'/proc/{pid}/{what}', 'rb').read(1)
            raise SystemExit(f'read {what} of {pid}')
        except (PermissionError, OSError): pass
    try:
        os.listdir(f'/proc/{pid}/fd')
        raise SystemExit(f'listed descriptors of {pid}')
    except PermissionError: pass
try:
    open('/.stockade/guest', 'rb')
    raise SystemExit('read the binary')
except PermissionError: pass
print('shielded')
";
    let outcome = fixture.py(program).await;
    assert_eq!(outcome.stdout, "shielded\n", "{}", outcome.stderr_text());
    fixture.close().await;
}

#[tokio::test]
async fn limits_lowered_on_the_guest_runtime_cost_the_guest_and_are_told() {
    let fixture = Fixture::python().await;
    let program = "
import os, resource
for pid in (1, os.getppid()):
    for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK):
        try: resource.prlimit(pid, what, (1, 1))
        except (PermissionError, OSError): pass
print('tried')
";
    let outcome = fixture.py(program).await;
    assert_eq!(outcome.stdout, "tried\n", "{}", outcome.stderr_text());
    // Commands inherit what was lowered, and PID 1 may not raise it again:
    // the guest has hurt itself. PID 1 lives, says so, and goes when told.
    for _ in 0..3 {
        let outcome = fixture.sh("echo on").await;
        match outcome.status {
            ExecStatus::NotStarted(not_started) => {
                assert_eq!(not_started.why, stockade::exec::NotStartedWhy::Resources);
            }
            status => assert_ne!(status, ExecStatus::SupervisorLost, "{outcome:?}"),
        }
    }
    fixture.close().await;
}

#[tokio::test]
async fn a_full_process_table_does_not_stop_the_recovery() {
    let fixture = Fixture::python().await;
    // Kills the relay as well, so that a new one must start while the table
    // is full and every freed place is taken again at once.
    let program = "
import os, signal, subprocess
subprocess.run(['pkill', '-9', '-f', 'guest attach'])
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError: pass
";
    let request = ExecRequest::argv(["python3", "-c", program]).timeout(Duration::from_secs(5));
    let outcome = fixture.exec(request).await;
    assert!(!outcome.success(), "{outcome:?}");
    still_works(&fixture).await;
    fixture.close().await;
}
