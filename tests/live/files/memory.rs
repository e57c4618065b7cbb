//! What large files cost the host.

#![expect(
    clippy::disallowed_methods,
    reason = "another host is a process of its own"
)]

use std::process::Command;

use stockade_tests::engine::unique;

/// Most KiB that 64 MiB in and out may add: 16 MiB.
const MOST: u64 = 16 * 1024;

fn extra(plane: &str) -> u64 {
    let output = Command::new(env!("CARGO_BIN_EXE_stockade-test-host"))
        .args(["memory", &unique("memory"), &unique("thread"), plane])
        .output()
        .expect("the host starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number of KiB")
}

#[test]
fn large_files_stream_through_the_host_in_the_tar_plane() {
    let extra = extra("tar");
    assert!(extra < MOST, "{extra} KiB more");
}

#[test]
fn large_files_stream_through_the_host_in_the_guest_plane() {
    let extra = extra("guest");
    assert!(extra < MOST, "{extra} KiB more");
}
