//! `stockade run --file --out`: files in, files out, and what is refused.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::Value;

use crate::tool::{Tool, code, finish, names, said};

/// `stockade run` in a folder.
fn run(tool: &Tool, folder: &Path, options: &[&str], line: &str) -> std::process::Output {
    let mut command = tool.command(options, &["sh", "-c", line]);
    finish(command.current_dir(folder), b"")
}

#[test]
fn files_and_directories_go_in_with_their_modes_and_outputs_come_back() {
    for plane in ["tar", "guest"] {
        let tool = Tool::new();
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("src/deep")).expect("made");
        fs::write(at("src/deep/a:b"), [0, 255, 10]).expect("written");
        fs::write(
            at("run.sh"),
            "#!/bin/sh\ncp -r src copied; wc -c < big > out/size\n",
        )
        .expect("written");
        fs::set_permissions(at("run.sh"), fs::Permissions::from_mode(0o755)).expect("set");
        let big: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
        fs::write(at("big"), &big).expect("written");
        let options = [
            "--plane",
            plane,
            "--file",
            "src",
            "--file",
            "run.sh",
            "--file",
            "big",
            "--out",
            "copied:back",
            "--out",
            "out/*",
            "--out",
            "big:again",
        ];
        let output = run(
            &tool,
            folder.path(),
            &options,
            "mkdir out && ./run.sh; exit 7",
        );
        assert_eq!(
            code(&output),
            7,
            "the program's own code: {}",
            said(&output)
        );
        assert_eq!(
            fs::read(at("back/deep/a:b")).expect("it landed"),
            [0, 255, 10]
        );
        assert_eq!(
            fs::read_to_string(at("out/size")).expect("it landed"),
            "20000000\n"
        );
        assert!(fs::read(at("again")).expect("it landed") == big);
        assert_eq!(
            names(folder.path()),
            ["again", "back", "big", "out", "run.sh", "src"]
        );
        tool.assert_clean();
    }
}

#[test]
fn what_is_no_file_is_named_at_once_and_nothing_is_started() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("src")).expect("made");
    let fifo = std::process::Command::new("mkfifo")
        .arg(at("src/fifo"))
        .status();
    assert!(fifo.expect("mkfifo starts").success());
    let _socket = UnixListener::bind(at("src/socket")).expect("bound");
    symlink("..", at("src/loop")).expect("linked");
    let output = run(
        &tool,
        folder.path(),
        &["--file", "src", "--file", "none"],
        "true",
    );
    assert_eq!(code(&output), 122, "{}", said(&output));
    for word in [
        "src/fifo` is a fifo",
        "src/socket` is a socket",
        "src/loop` is a link",
        "none",
    ] {
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    }
    let output = run(
        &tool,
        folder.path(),
        &["--file", "src:../x", "--out", "/etc/passwd"],
        "true",
    );
    assert_eq!(code(&output), 64, "{}", said(&output));
    assert!(
        said(&output).contains("--file") && said(&output).contains("--out"),
        "{}",
        said(&output)
    );
    tool.assert_clean();
}

#[test]
fn a_missing_output_is_121_and_the_others_land() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--out", "there", "--out", "not-there", "--out", "*.none"];
    let output = run(&tool, folder.path(), &options, "echo 1 > there");
    assert_eq!(code(&output), 121, "{}", said(&output));
    assert!(
        said(&output).contains("`not-there`") && said(&output).contains("`*.none`"),
        "{}",
        said(&output)
    );
    assert_eq!(names(folder.path()), ["there"]);
    tool.assert_clean();
}

#[test]
fn what_exists_on_the_host_is_kept_unless_it_may_be_replaced() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("old"), "old").expect("written");
    let early = run(
        &tool,
        folder.path(),
        &["--out", "old"],
        "touch ran; echo new > old",
    );
    assert_eq!(code(&early), 122, "{}", said(&early));
    assert!(said(&early).contains("--overwrite"), "{}", said(&early));
    let late = run(
        &tool,
        folder.path(),
        &["--out", "*"],
        "echo new > old; echo new > new",
    );
    assert_eq!(code(&late), 121, "{}", said(&late));
    assert!(
        said(&late).contains("`old` exists") && said(&late).contains("1 of 2 outputs have landed"),
        "{}",
        said(&late)
    );
    assert_eq!(
        (names(folder.path()), fs::read_to_string(at("old")).ok()),
        (vec!["new".into(), "old".into()], Some("old".into())),
        "the rest would be lost with the sandbox"
    );
    fs::write(at("file"), "").expect("written");
    for folder in ["*:file/x", "file/*"] {
        let early = run(&tool, at("").as_path(), &["--out", folder], "true");
        assert_eq!(code(&early), 122, "{folder}: {}", said(&early));
        assert!(
            said(&early).contains("`file` is no directory"),
            "{}",
            said(&early)
        );
    }
    let replaced = run(
        &tool,
        folder.path(),
        &["--out", "*", "--overwrite"],
        "echo new > old",
    );
    assert_eq!(code(&replaced), 0, "{}", said(&replaced));
    assert_eq!(fs::read_to_string(at("old")).expect("there"), "new\n");
    tool.assert_clean();
}

#[test]
fn a_hostile_guest_reaches_nothing_of_the_host_by_its_outputs() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), folder.path().join("way")).expect("linked");
    let hostile = "mkdir -p out way; ln -s /etc/passwd out/link; mkfifo out/fifo; echo x > 'out/a\\b'; \
                   printf x > \"$(printf 'out/\\377')\"; chmod 4777 out/*; echo x > way/evil; ln -s /etc leak";
    let output = run(
        &tool,
        folder.path(),
        &["--out", "out", "--out", "leak/passwd"],
        hostile,
    );
    assert_eq!(code(&output), 121, "{}", said(&output));
    for word in ["out/link", "out/fifo", "backslash", "leak"] {
        assert!(said(&output).contains(word), "{word}: {}", said(&output));
    }
    let landed: Vec<_> = fs::read_dir(folder.path().join("out"))
        .expect("a folder")
        .collect();
    assert_eq!(landed.len(), 1, "{landed:?}");
    let landed = landed[0].as_ref().expect("an entry");
    assert_eq!(landed.file_name().as_bytes(), b"\xff");
    let mode = landed.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o7000, 0, "no setuid lands");
    let through = run(&tool, folder.path(), &["--out", "way"], hostile);
    assert_eq!(code(&through), 121, "{}", said(&through));
    assert!(
        names(outside.path()).is_empty(),
        "a link of the host was followed"
    );
    tool.assert_clean();
}

#[test]
fn a_directory_that_its_owner_closed_is_named_and_not_taken_for_empty() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let line = "mkdir -p d/closed; echo x > d/closed/x; echo y > d/y; chmod 0 d/closed";
    let output = run(&tool, folder.path(), &["--out", "d"], line);
    assert_eq!(code(&output), 121, "{}", said(&output));
    assert!(said(&output).contains("closed"), "{}", said(&output));
    assert_eq!(
        fs::read_to_string(folder.path().join("d/y")).expect("there"),
        "y\n"
    );
    tool.assert_clean();
}

#[test]
fn the_report_says_what_was_sent_and_what_landed() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("in"), "12345").expect("written");
    let options = [
        "--json", "--file", "in", "--out", "in:copy", "--out", "none",
    ];
    let output = run(&tool, folder.path(), &options, "true");
    assert_eq!(code(&output), 121, "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(report["status"]["code"], 0);
    assert_eq!(
        (&report["sent"]["files"], &report["sent"]["bytes"]),
        (&1.into(), &5.into())
    );
    assert_eq!(report["outputs"]["files"][0]["to"], "copy");
    assert_eq!(report["outputs"]["whole"], false);
    let missing = &report["outputs"]["missing"];
    assert_eq!(missing.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&missing[0]["path"], &missing[0]["reason"]),
        (&"none".into(), &"file_missing".into())
    );
    tool.assert_clean();
}

#[test]
fn more_files_than_one_batch_takes_go_in_and_come_out() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("many")).expect("made");
    for at in 0..700 {
        fs::write(folder.path().join(format!("many/{at:03}")), at.to_string()).expect("written");
    }
    let options = ["--file", "many", "--out", "many:back"];
    let output = run(&tool, folder.path(), &options, "ls many | wc -l");
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "700");
    assert_eq!(names(&folder.path().join("back")).len(), 700);
    assert_eq!(
        fs::read_to_string(folder.path().join("back/699")).expect("there"),
        "699"
    );
    tool.assert_clean();
}

#[test]
fn files_that_cannot_fit_are_named_before_anything_moves() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let large = fs::File::create(folder.path().join("large")).expect("made");
    large.set_len(64 * 1024 * 1024 + 1).expect("set");
    let output = run(&tool, folder.path(), &["--file", "large"], "true");
    assert_eq!(code(&output), 122, "{}", said(&output));
    assert!(
        said(&output).contains("large") && said(&output).contains("67108864"),
        "{}",
        said(&output)
    );
    large.set_len(64 * 1024 * 1024).expect("set");
    let output = run(
        &tool,
        folder.path(),
        &["--file", "large", "--work-size", "32MiB"],
        "true",
    );
    assert_eq!(code(&output), 122, "{}", said(&output));
    assert!(said(&output).contains("--work-size"), "{}", said(&output));
    tool.assert_clean();
}

#[test]
fn what_the_image_has_in_its_work_directory_comes_out_where_that_is_kept() {
    let tool = Tool::new();
    let folder = tempfile::tempdir().expect("a folder");
    let image = std::env::var("STOCKADE_TEST_IMAGE_WORKDIR_CONTENT").expect("xtask sets it");
    let started = |options: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_stockade"));
        command.args(["run", "--image", &image, "--owner", &tool.owner]);
        command.args(options).args(["--", "true"]);
        finish(command.current_dir(folder.path()), b"")
    };
    let hidden = started(&["--out", "kept.txt"]);
    assert_eq!(code(&hidden), 122, "{}", said(&hidden));
    assert!(
        said(&hidden).contains("--storage root"),
        "{}",
        said(&hidden)
    );
    let root = [
        "--storage",
        "root",
        "--hardening",
        "as-image",
        "--out",
        "kept.txt",
    ];
    let output = started(&root);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert_eq!(names(folder.path()), ["kept.txt"]);
    let elsewhere = started(&[
        "--work-dir",
        "/elsewhere",
        "--file",
        "kept.txt",
        "--out",
        "kept.txt:copy",
    ]);
    assert_eq!(code(&elsewhere), 0, "{}", said(&elsewhere));
    assert_eq!(names(folder.path()), ["copy", "kept.txt"]);
    tool.assert_clean();
}
