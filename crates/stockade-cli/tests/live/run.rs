//! `stockade run`: streams, codes and reports.

use std::process::{Command, Stdio};

use serde_json::Value;
use stockade_tests::engine::PYTHON;

use crate::tool::{Tool, code, finish};

#[test]
fn standard_streams_pass_through_byte_for_byte() {
    let tool = Tool::new();
    let input: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    let program = "import sys; b = sys.stdin.buffer.read(); sys.stdout.buffer.write(b); sys.stderr.write('note')";
    let output = tool.run(&[], &["python3", "-c", program], &input);
    assert_eq!(code(&output), 0);
    assert!(
        output.stdout == input,
        "{} of {} bytes",
        output.stdout.len(),
        input.len()
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "note");
    tool.assert_clean();
}

#[test]
fn codes_of_the_program_pass_through_and_the_others_are_explained() {
    let tool = Tool::new();
    for wanted in [0, 3, 124, 137, 143, 255] {
        let output = tool.run(&[], &["sh", "-c", &format!("exit {wanted}")], b"");
        assert_eq!((code(&output), output.stderr.len()), (wanted, 0));
    }
    let cases: [(&[&str], &[&str], i32, &str); 5] = [
        (&["--timeout", "1s"], &["sleep", "60"], 124, "--timeout"),
        (&["--max-output", "1000"], &["yes"], 123, "--max-output"),
        (&[], &["no-such-program"], 127, "did not start"),
        (&[], &["/etc/passwd"], 126, "did not start"),
        (&["--cwd", "/nope"], &["true"], 127, "did not start"),
    ];
    for (options, program, wanted, said) in cases {
        let output = tool.run(options, program, b"");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), wanted, "{program:?}: {stderr}");
        assert!(
            stderr.starts_with("stockade: ") && stderr.contains(said),
            "{stderr}"
        );
    }
    tool.assert_clean();
}

#[test]
fn a_signal_that_ends_the_program_is_128_and_its_number() {
    let tool = Tool::new();
    assert_eq!(code(&tool.run(&[], &["sh", "-c", "kill -9 $$"], b"")), 137);
    tool.assert_clean();
}

#[test]
fn bad_arguments_are_64_with_every_fault_and_nothing_is_started() {
    let tool = Tool::new();
    let output = tool.run(
        &[
            "--memory",
            "1MiB",
            "--digest",
            "nonsense",
            "--env",
            "NO_SUCH_VARIABLE_HERE",
        ],
        &["true"],
        b"",
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 64, "{stderr}");
    for word in ["memory", "--digest", "NO_SUCH_VARIABLE_HERE"] {
        assert!(stderr.contains(word), "{word} is not in {stderr}");
    }
    assert_eq!(code(&tool.run(&["--no-such-option"], &["true"], b"")), 64);
    assert_eq!(code(&tool.run(&["--timeout", "0s"], &["true"], b"")), 64);
    tool.assert_clean();
}

#[test]
fn what_cannot_be_served_is_122_and_named() {
    let tool = Tool::new();
    let mut command = tool.command(
        &["--pull", "never", "--image", "stockade-test/none:1"],
        &["true"],
    );
    let output = finish(&mut command, b"");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The later option wins, as everywhere on this command line.
    assert!(
        stderr.contains("stockade-test/none:1") || code(&output) == 64,
        "{stderr}"
    );
    let output = tool.run(&["--cpus", "4000"], &["true"], b"");
    assert_eq!(
        code(&output),
        122,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    tool.assert_clean();
}

#[test]
fn the_report_is_one_object_that_loses_nothing() {
    let tool = Tool::new();
    let output = tool.run(
        &["--json", "--env", "WHO=me"],
        &["sh", "-c", "echo \"$WHO\"; printf '\\377' >&2; exit 4"],
        b"",
    );
    assert_eq!(code(&output), 4);
    let report: Value = serde_json::from_slice(&output.stdout).expect("standard output is JSON");
    assert_eq!(report["status"]["kind"], "exited");
    assert_eq!(report["status"]["code"], 4);
    assert_eq!(report["stdout"], "me\n");
    assert_eq!(report["stderr"]["base64"], "/w==");
    assert_eq!(report["timeout_seconds"], 120.0);
    let refused = tool.run(&["--json", "--cpus", "4000"], &["true"], b"");
    let report: Value = serde_json::from_slice(&refused.stdout).expect("standard output is JSON");
    assert_eq!(report["error"]["kind"], "refused");
    tool.assert_clean();
}

#[test]
fn it_works_without_a_terminal_and_with_closed_input() {
    let tool = Tool::new();
    let output = tool
        .command(&[], &["sh", "-c", "cat; echo end"])
        .stdin(Stdio::null())
        .output()
        .expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n");
    tool.assert_clean();
}

#[test]
fn a_reader_that_goes_away_ends_the_program() {
    let tool = Tool::new();
    let mut child = tool
        .command(&[], &["yes"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut first = [0; 2];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut first)
        .expect("it writes");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
    tool.assert_clean();
}

#[test]
fn output_that_cannot_be_written_is_never_success_and_no_broken_pipe() {
    let tool = Tool::new();
    for options in [&[][..], &["--json"]] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("there is a full device");
        let output = tool
            .command(options, &["echo", "text"])
            .stdin(Stdio::null())
            .stdout(full)
            .output()
            .expect("the program ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 125, "{options:?}: {stderr}");
        assert!(
            stderr.contains("cannot be written"),
            "{options:?}: {stderr}"
        );
    }
    tool.assert_clean();
}

#[test]
fn input_that_cannot_be_read_is_no_end_of_input() {
    let tool = Tool::new();
    let directory = std::fs::File::open("/").expect("it opens");
    let output = tool
        .command(&[], &["sh", "-c", "cat; sleep 60"])
        .stdin(directory)
        .output()
        .expect("the program ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 125, "{stderr}");
    assert!(stderr.contains("standard input cannot be read"), "{stderr}");
    tool.assert_clean();
}

#[test]
fn values_of_variables_are_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let tool = Tool::new();
    let mut command = tool.command(&["--env", "RAW"], &["sh", "-c", "printf %s \"$RAW\""]);
    command.env("RAW", std::ffi::OsStr::from_bytes(b"\xff="));
    let output = finish(&mut command, b"");
    assert_eq!(
        code(&output),
        0,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stdout, b"\xff=");
    tool.assert_clean();
}

#[test]
fn the_doctor_finds_this_engine_healthy_and_a_missing_one_not() {
    let doctor = |engine: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
        command.args(["doctor", "--json"]);
        match engine {
            Some(host) => command.env("DOCKER_HOST", host),
            None => command.args(["--image", PYTHON, "--owner", "doctor-test"]),
        };
        let output = command.output().expect("the program ends");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        (code(&output), report)
    };
    let (healthy, report) = doctor(None);
    assert_eq!(healthy, 0, "{report:#}");
    assert_eq!(report["healthy"], true);
    let (sick, report) = doctor(Some("unix:///no/such/socket"));
    assert_eq!(sick, 125);
    let checks = report["checks"].as_array().expect("a list");
    let failed: Vec<_> = checks
        .iter()
        .filter(|check| check["verdict"] == "failed")
        .collect();
    assert!(
        !failed.is_empty() && failed.iter().all(|check| check["fix"].is_string()),
        "{report:#}"
    );
}
