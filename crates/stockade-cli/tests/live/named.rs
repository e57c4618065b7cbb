//! Sandboxes that stay: create, exec, cp, ls, rm.

use std::fs;
use std::process::{Command, Output, Stdio};

use stockade_tests::engine::docker;

use crate::tool::{User, await_signals, code, finish, names, said};

#[test]
fn a_sandbox_is_created_used_by_other_processes_and_removed() {
    let user = User::new();
    let made = user.json(&["create", "box", "--json"]);
    user.done(&[
        "exec",
        "box",
        "--env",
        "WHO=me",
        "--",
        "sh",
        "-c",
        "echo $WHO > note",
    ]);
    assert_eq!(
        user.done(&["exec", "box", "--no-stdin", "--", "cat", "note"]),
        "me\n"
    );
    let report = user.json(&["exec", "box", "--json", "--shell", "exit 0"]);
    assert_eq!(
        report["sandbox"], made["id"],
        "the same sandbox is found again"
    );
    user.refused(
        &["create", "box"],
        122,
        &["there is a sandbox `box`", "stockade rm box"],
    );
    user.refused(
        &["create", "box", "--memory", "2GiB"],
        122,
        &["there is a sandbox `box`"],
    );
    user.refused(
        &["exec", "other", "--", "true"],
        122,
        &["`other`", "stockade create"],
    );
    user.refused(
        &["exec", "a/b", "--", "true"],
        64,
        &["no name of a sandbox"],
    );
    assert_eq!(
        code(&user.run(&["exec", "box", "--", "sh", "-c", "exit 9"])),
        9
    );
    user.done(&["rm", "box"]);
    user.done(&["rm", "box"]);
    user.refused(&["exec", "box", "--", "true"], 122, &["stockade create"]);
    user.tool.assert_clean();
}

#[test]
fn a_sandbox_that_has_ended_is_told_and_never_made_anew() {
    let user = User::new();
    let made = user.json(&["create", "box", "--json"]);
    docker(["rm", "-f", "-v", made["id"].as_str().expect("an id")]);
    user.refused(&["exec", "box", "--", "true"], 122, &["has ended"]);
    user.refused(&["cp", "box:x", "."], 122, &["has ended"]);
    user.tool.assert_clean();
    user.done(&["create", "box"]);
    user.done(&["exec", "box", "--", "true"]);
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn copies_go_both_ways_with_directories_patterns_and_standard_streams() {
    for plane in ["tar", "guest"] {
        let user = User::new();
        fs::create_dir_all(user.path("src/sub")).expect("made");
        fs::write(user.path("src/sub/a"), "a").expect("written");
        fs::write(user.path("src/b.txt"), "b").expect("written");
        fs::write(user.path("one"), "one").expect("written");
        user.done(&["create", "box", "--plane", plane]);
        let done = |words: &[&str]| user.done(&[words, &["--plane", plane]].concat());
        done(&["cp", "src", "one", "box:"]);
        done(&["cp", "src/.", "box:flat"]);
        done(&["cp", "one", "box:in/renamed"]);
        done(&["cp", "one", "box:in"]);
        let mut fed = user.command(&["cp", "-", "box:fed", "--plane", plane]);
        assert_eq!(code(&finish(&mut fed, &[7; 3_000_000])), 0);
        let listed = user.done(&[
            "exec",
            "box",
            "--shell",
            "find . -type f | sort; wc -c < fed",
        ]);
        let wanted = "./fed\n./flat/b.txt\n./flat/sub/a\n./in/one\n./in/renamed\n./one\n./src/b.txt\n./src/sub/a\n3000000\n";
        assert_eq!(listed, wanted);
        done(&["cp", "box:src", "back"]);
        done(&["cp", "box:flat", "box:in", "both/"]);
        done(&["cp", "box:src/*.txt", "texts"]);
        done(&["cp", "box:one", "again"]);
        let out = user.run(&["cp", "box:fed", "-", "--plane", plane]);
        assert!(out.stdout == [7; 3_000_000], "{}", said(&out));
        assert_eq!(
            fs::read_to_string(user.path("back/sub/a")).expect("there"),
            "a"
        );
        assert_eq!(names(&user.path("both")), ["flat", "in"]);
        assert_eq!(names(&user.path("texts")), ["b.txt"]);
        assert_eq!(
            fs::read_to_string(user.path("again")).expect("there"),
            "one"
        );
        done(&["rm", "box"]);
        user.tool.assert_clean();
    }
}

#[test]
fn what_a_copy_cannot_do_is_refused_by_name() {
    let user = User::new();
    fs::write(user.path("file"), "x").expect("written");
    user.done(&["create", "box"]);
    user.done(&[
        "exec",
        "box",
        "--shell",
        "mkfifo fifo; ln -s /etc out; mkdir dir; ln -s fifo link; truncate -s 1G huge",
    ]);
    let kept = |user: &User| fs::read_to_string(user.path("file")).expect("there");
    user.done(&["cp", "file", "box:"]);
    user.refused(&["cp", "box:file", "."], 122, &["exists", "--overwrite"]);
    user.refused(&["cp", "box:none", "x"], 122, &["`none` is not there"]);
    user.refused(
        &["cp", "box:fifo", "box:link", "box:huge", "to/"],
        122,
        &["is a fifo", "is a link", "1073741824"],
    );
    user.refused(&["cp", "box:none", "box:file", "to/"], 121, &["`none`"]);
    fs::remove_dir_all(user.path("to")).expect("the other one came");
    user.refused(&["cp", "box:out/passwd", "x"], 122, &["link"]);
    user.refused(
        &["cp", "box:/etc/passwd", "x"],
        64,
        &["not below the work directory"],
    );
    user.refused(&["cp", "box:../x", "x"], 64, &["`..`"]);
    user.refused(&["cp", "file", "box:out/x"], 122, &["link"]);
    user.refused(&["cp", "file", "box:link"], 122, &["link"]);
    user.refused(&["cp", "file", "box:file/x"], 122, &["no directory"]);
    user.refused(&["cp", "a", "b"], 64, &["NAME:PATH"]);
    user.refused(&["cp", "box:dir", "-"], 122, &["directory"]);
    user.refused(&["cp", "-", "box:dir"], 64, &["no name"]);
    assert_eq!(kept(&user), "x");
    assert_eq!(
        names(user.folder.path()),
        ["file"],
        "nothing half done is left"
    );
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn listing_and_removing_files_are_typed_and_bounded() {
    let user = User::new();
    user.done(&["create", "box"]);
    user.done(&[
        "exec",
        "box",
        "--shell",
        "mkdir -p d/e; echo 12345 > d/f; ln -s /etc l; touch \"$(printf 'x\\033[2J')\"",
    ]);
    let listed = user.done(&["ls", "box"]);
    assert!(
        !listed.contains('\u{1b}') && listed.contains("x\\u{1b}[2J"),
        "{listed}"
    );
    let listed = user.json(&["ls", "box:d", "-R", "--json"]);
    let entries = listed["entries"].as_array().expect("a list");
    assert_eq!(entries.len(), 2);
    let file = entries
        .iter()
        .find(|entry| entry["name"] == "f")
        .expect("it is listed");
    assert_eq!((&file["kind"], &file["size"]), (&"file".into(), &6.into()));
    assert!(user.done(&["ls", "box:d/f"]).contains(" 6 "));
    assert!(user.done(&["ls", "box:l"]).starts_with('l'));
    user.refused(&["ls", "box:none"], 122, &["no such file"]);
    let cut = user.json(&["ls", "box", "--max-entries", "1", "--json"]);
    assert_eq!(cut["truncated"], true);
    user.refused(&["rm", "box:d"], 122, &["-r"]);
    user.done(&["rm", "box:d", "-r"]);
    user.done(&["rm", "box:d"]);
    user.done(&["rm", "box:l"]);
    user.refused(&["rm", "box:", "-r"], 122, &["work directory itself"]);
    assert_eq!(user.done(&["exec", "box", "--shell", "ls | wc -l"]), "1\n");
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn processes_copy_and_run_in_one_sandbox_at_the_same_time() {
    let user = User::new();
    fs::write(user.path("file"), vec![1; 100_000]).expect("written");
    user.done(&["create", "box"]);
    let start = |words: &[&str]| {
        let mut command = user.command(words);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut running = Vec::new();
    for at in 0..4 {
        running.push(start(&["cp", "file", &format!("box:copy{at}")]));
        running.push(start(&["exec", "box", "--", "sh", "-c", "sleep 0.2; true"]));
    }
    for child in running {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(code(&output), 0, "{}", said(&output));
    }
    assert_eq!(
        user.done(&["exec", "box", "--shell", "cat copy* | wc -c"]),
        "400000\n"
    );
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn ctrl_c_ends_a_copy_and_says_what_became_of_it() {
    let user = User::new();
    user.done(&["create", "box"]);
    let child = user
        .command(&["cp", "-", "box:x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Its standard input stays open, so that it waits for more until it hears.
    await_signals(&child);
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill starts").success());
    let output = wait_holding_input(child);
    assert_eq!(code(&output), 130, "{}", said(&output));
    // It hears wherever it is: while it looks for the engine, or later.
    let heard = ["interrupted", "cancelled"];
    assert!(
        heard.iter().any(|word| said(&output).contains(word)),
        "{}",
        said(&output)
    );
    user.refused(&["ls", "box:x"], 122, &["no such file"]);
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

/// The end of a program whose standard input is not closed before.
fn wait_holding_input(mut child: std::process::Child) -> Output {
    let held = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(held);
    output
}
