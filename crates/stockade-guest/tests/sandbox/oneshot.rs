//! `facts` and `version`, and a wrong command line.

use std::process::Output;

use stockade_wire::message::{Facts, PathKind};

use crate::support::{binary, command};

#[test]
fn facts_are_one_json_document_that_answers_in_order() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(stockade_wire::MARKER), "beef\n").unwrap();
    let runtime = format!("--runtime-dir={}", folder.path().display());
    let output = guest(&[
        "facts",
        "--user",
        "0:7",
        "--path",
        "/etc/passwd",
        "--path=/no",
        &runtime,
    ]);
    assert!(output.status.success());
    let facts: Facts = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts.protocol, stockade_wire::PROTOCOL);
    assert_eq!(facts.digest, "beef");
    let user = facts.user.unwrap();
    assert_eq!((user.uid, user.gid), (0, 7));
    assert!(facts.shell);
    let kinds: Vec<PathKind> = facts.paths.iter().map(|path| path.what).collect();
    assert_eq!(kinds, [PathKind::File, PathKind::Absent]);
}

#[test]
fn a_user_that_does_not_exist_is_part_of_the_answer() {
    let output = guest(&["facts", "--user", "no-such-user"]);
    assert!(output.status.success());
    let facts: Facts = serde_json::from_slice(&output.stdout).unwrap();
    assert!(facts.user.unwrap_err().contains("no-such-user"));
}

#[test]
fn an_answer_over_the_bound_is_refused() {
    let path = format!("--path=/{}", "x".repeat(100_000));
    let output = guest(&["facts", "--user=", &path]);
    assert_eq!(output.status.code(), Some(69));
    assert!(output.stdout.is_empty());
}

#[test]
fn the_version_names_package_and_protocol() {
    let output = guest(&["version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text,
        format!(
            "stockade-guest {}, protocol 1 to 1\n",
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn a_wrong_command_line_is_explained_on_standard_error() {
    let output = guest(&["dance"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: guest init"));
}

fn guest(arguments: &[&str]) -> Output {
    command(&binary().display().to_string())
        .args(arguments)
        .output()
        .unwrap()
}
