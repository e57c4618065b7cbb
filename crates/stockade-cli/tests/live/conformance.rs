//! `stockade conformance`: a table or an object, and a code that means it.

use std::process::Command;

use serde_json::Value;
use stockade_tests::engine::PYTHON;

use crate::tool::{Tool, code, said};

#[test]
fn a_suite_is_run_and_reported_for_each_plane() {
    for plane in ["tar", "guest"] {
        let tool = Tool::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
        command
            .args(["conformance", "--suite", "exec", "--json", "--plane", plane])
            .args(["--image", PYTHON, "--owner", &tool.owner]);
        let output = command.output().expect("the program ends");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(code(&output), 0, "{report:#}\n{}", said(&output));
        assert_eq!(
            (&report["green"], &report["plane"]),
            (&true.into(), &plane.into())
        );
        assert_eq!(report["suites"].as_array().map(Vec::len), Some(1));
        tool.assert_clean();
    }
}

#[test]
fn an_unknown_suite_is_a_usage_fault() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
    command.args(["conformance", "--suite", "nonsense", "--image", PYTHON]);
    let output = command.output().expect("the program ends");
    assert_eq!(code(&output), 64, "{}", said(&output));
}
