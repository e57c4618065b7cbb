//! What an operator does: ps, logs, rm, reap, df, prune, setup, completions.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use stockade_tests::engine::{PYTHON, docker, left_of};

use crate::tool::{User, code, said};

impl User {
    /// The sandboxes that `ps` lists.
    fn listed(&self, options: &[&str]) -> Vec<Value> {
        let report = self.json(&[&["ps", "--json"], options].concat());
        report["sandboxes"].as_array().expect("a list").clone()
    }

    /// `stockade run` of a shell line, in the background, once it runs.
    fn running(&self, line: &str) -> Child {
        let child = self
            .command(&["run", "--idle-limit", "1m", "--shell", line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        self.until(|| {
            let listed = self.listed(&[]);
            let busy = |one: &Value| {
                one["kind"] == "run"
                    && one["activity"]["commands"]
                        .as_array()
                        .is_some_and(|commands| !commands.is_empty())
            };
            listed.iter().any(busy)
        });
        child
    }

    /// Looks again until it is so; a test that waits in vain is ended by its
    /// runner.
    fn until(&self, mut so: impl FnMut() -> bool) {
        while !so() {
            std::thread::yield_now();
        }
    }
}

fn ended(mut child: Child) {
    let ended = child.wait().expect("it ends");
    assert_ne!(ended.code(), Some(0), "its sandbox was taken away");
}

fn container(one: &Value) -> String {
    one["container"].as_str().expect("a name").to_owned()
}

fn id(one: &Value) -> String {
    one["id"].as_str().expect("an id").to_owned()
}

#[test]
fn ps_shows_for_whom_a_sandbox_is_what_it_does_and_what_it_uses() {
    let user = User::new();
    let other = User::new();
    let made = user.json(&["create", "box", "--json"]);
    let child = user.running("sleep 300");
    let listed = user.listed(&[]);
    assert_eq!(listed.len(), 2);
    let named = &listed[0];
    assert_eq!(
        (&named["name"], &named["id"], &named["owner"]),
        (&"box".into(), &made["id"], &user.tool.owner.clone().into())
    );
    assert_eq!(named["activity"]["answer"], "given");
    assert!(named["activity"]["idle_seconds"].as_f64() > Some(0.0));
    let busy = &listed[1];
    assert_eq!(
        (&busy["name"], &busy["key"]["scope"], &busy["key"]["thread"]),
        (&Value::Null, &"cli".into(), &"run".into())
    );
    assert!(busy["key"]["call"].is_string());
    let doing = &busy["activity"];
    assert_eq!(doing["commands"][0]["program"], "sh -c");
    assert_eq!(
        (&doing["hosts"], &doing["idle_seconds"]),
        (&1.into(), &0.0.into())
    );
    assert!(doing["memory"].as_u64() > Some(0) && doing["memory"].as_u64() < Some(1 << 30));
    assert_eq!(doing["memory_limit"], 1 << 30);
    assert_eq!(doing["work_dir"]["size"], 256 << 20);

    let text = user.done(&["ps"]);
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[1].starts_with("box ") && rows[1].contains("cli/box/named"),
        "{text}"
    );
    assert!(
        rows[2].starts_with(&container(busy)) && rows[2].contains("in use"),
        "{text}"
    );
    assert!(rows[2].contains("sh -c "), "{text}");
    assert_eq!(
        user.done(&["ps", "--quiet"]),
        format!("{}\n{}\n", id(named), id(busy))
    );
    assert_eq!(user.listed(&["--no-activity"])[0]["activity"], Value::Null);
    assert!(user.listed(&["--scope", "other"]).is_empty());

    let nothing = other.run(&["ps"]);
    assert_eq!(code(&nothing), 0);
    assert!(
        said(&nothing).contains("no sandbox of the owner") && nothing.stdout.is_empty(),
        "{}",
        said(&nothing)
    );
    let all = other.listed(&["--all-owners", "--no-activity"]);
    let ids: BTreeSet<String> = all.iter().map(id).collect();
    assert!(ids.contains(&id(named)) && ids.contains(&id(busy)));

    let all = user.done(&["rm", "--all"]);
    assert!(all.contains("removed 2 sandboxes"), "{all}");
    ended(child);
    user.tool.assert_clean();
}

#[test]
fn a_sandbox_that_does_not_answer_holds_up_nobody_but_itself() {
    let user = User::new();
    for name in ["silent", "paused", "well"] {
        user.done(&["create", name]);
    }
    let listed = user.listed(&["--no-activity"]);
    // From outside, PID 1 can be stopped.
    docker(["kill", "--signal", "STOP", &container(&listed[0])]);
    docker(["pause", &container(&listed[1])]);
    let answers: Vec<Value> = user
        .listed(&[])
        .iter()
        .map(|one| one["activity"]["answer"].clone())
        .collect();
    assert_eq!(answers, ["none", "paused", "given"]);
    let text = user.done(&["ps"]);
    assert!(
        text.contains("no answer") && text.contains("paused"),
        "{text}"
    );
    user.done(&["rm", "silent", "paused", "well"]);
    user.tool.assert_clean();
}

#[test]
fn sandboxes_are_removed_by_name_container_id_and_its_first_digits() {
    let user = User::new();
    let other = User::new();
    for name in ["one", "two", "three", "four"] {
        user.done(&["create", name]);
    }
    let listed = user.listed(&["--no-activity"]);
    let digits = &id(&listed[2])[..12];
    other.done(&["rm", &container(&listed[0]), &id(&listed[1]), digits]);
    assert_eq!(
        user.listed(&["--no-activity"]).len(),
        4,
        "nobody removes what is another owner's"
    );
    let removed = user.json(&[
        "rm",
        &container(&listed[0]),
        &id(&listed[1]),
        digits,
        "four",
        "five",
        "--json",
    ]);
    let counts: Vec<&Value> = removed["targets"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|target| &target["sandboxes"])
        .collect();
    assert_eq!(counts, [1, 1, 1, 1, 0]);
    assert_eq!(removed["targets"][0]["name"], "one", "its name is known");
    user.refused(&["exec", "one", "--", "true"], 122, &["no note"]);
    let again = user.run(&[
        "rm",
        &container(&listed[0]),
        &id(&listed[1]),
        digits,
        "four",
    ]);
    assert_eq!((code(&again), again.stdout.len()), (0, 0));
    assert_eq!(said(&again).matches("there was no sandbox").count(), 4);
    user.refused(&["rm"], 64, &[]);
    user.refused(&["rm", "a/b", "four"], 64, &["a/b"]);
    user.refused(&["rm", "--all", "four"], 64, &[]);
    user.tool.assert_clean();
}

#[test]
fn a_reap_keeps_what_is_in_use_and_says_so() {
    let user = User::new();
    user.done(&["create", "box"]);
    let child = user.running("sleep 300");
    user.refused(
        &["reap"],
        64,
        &["--older-than", "--idle-for", "--scope", "--all"],
    );
    let count = |words: &[&str]| {
        let report = user.json(&[&["reap", "--json"], words].concat());
        (report["sandboxes"].clone(), report["kept"].clone())
    };
    assert_eq!(count(&["--idle-for", "1h"]).0, 0);
    assert_eq!(
        count(&["--older-than", "1h", "--in-use"]),
        (0.into(), 0.into())
    );
    assert_eq!(count(&["--scope", "other"]), (0.into(), 0.into()));
    assert_eq!(count(&["--scope", "cli"]), (1.into(), 1.into()));
    // The note outlives it, and says what became of it.
    user.refused(&["exec", "box", "--", "true"], 122, &["has ended"]);
    let text = user.done(&["reap", "--all"]);
    assert!(text.contains("kept 1 sandbox in use"), "{text}");
    assert_eq!(count(&["--all", "--in-use"]), (1.into(), 0.into()));
    ended(child);
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn logs_tell_what_happened_and_why_a_sandbox_ended() {
    let user = User::new();
    let made = user.json(&["create", "box", "--idle-limit", "10s", "--json"]);
    user.done(&["exec", "box", "--", "true"]);
    let report = user.json(&["logs", "box", "--json"]);
    assert_eq!(
        (&report["exists"], &report["death"]),
        (&true.into(), &Value::Null)
    );
    let events: Vec<&str> = report["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| event["event"].as_str().expect("a word"))
        .collect();
    for wanted in [
        "created",
        "started",
        "attached",
        "command_started",
        "command_ended",
    ] {
        assert!(events.contains(&wanted), "{wanted}: {events:?}");
    }
    user.until(|| left_of(&user.tool.owner).is_empty());
    for sandbox in ["box", made["id"].as_str().expect("an id")] {
        let output = user.run(&["logs", sandbox, "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        // An engine that others use, too, forgets within seconds.
        if report["engine_forgot"] == true && report["death"]["reason"] != "idle_limit" {
            assert_eq!(report["death"]["reason"], "unknown", "{report:#}");
            continue;
        }
        assert_eq!(report["exists"], false);
        assert_eq!(report["death"]["reason"], "idle_limit", "{report:#}");
    }
    user.refused(
        &["exec", "box", "--", "true"],
        122,
        &["`box` has ended", "stockade create box"],
    );
    user.refused(
        &["logs", "other"],
        122,
        &["nothing is known", "stockade ps"],
    );
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn whoever_looks_for_one_that_has_ended_makes_none() {
    let user = User::new();
    let made = user.json(&["create", "box", "--json"]);
    docker(["kill", made["id"].as_str().expect("an id")]);
    user.until(|| left_of(&user.tool.owner).is_empty());
    let (client, log) = (user.path("docker"), user.path("log"));
    let real = std::env::var("STOCKADE_DOCKER").unwrap_or_else(|_| "docker".into());
    let script = format!(
        "#!/bin/sh\necho \" $* \" >> {}\nexec {real} \"$@\"\n",
        log.display()
    );
    fs::write(&client, script).expect("written");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("set");
    let client = client.display().to_string();
    let options = ["--docker", client.as_str()];
    for words in [&["ls", "box"][..], &["cp", "box:x", "."], &["rm", "box:x"]] {
        user.refused(&[words, &options].concat(), 122, &["`box` has ended"]);
    }
    let program = ["--", "true"];
    let exec = [&["exec", "box"][..], &options, &program].concat();
    user.refused(&exec, 122, &["`box` has ended", "stockade create box"]);
    let asked = fs::read_to_string(&log).expect("a log");
    assert!(asked.lines().count() >= 8, "{asked}");
    for verb in [" run ", " create ", " start "] {
        assert!(!asked.contains(verb), "{asked}");
    }
    user.done(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn an_image_is_built_from_a_directory_and_its_sandbox_found_when_that_changes() {
    let user = User::new();
    let file = |text: &str| {
        let text = format!("FROM {PYTHON}\nRUN echo {text} > /built\n");
        fs::write(user.path("Dockerfile"), text).expect("written");
    };
    file("one");
    let run = |words: &[&str]| {
        let mut command = user.command(words);
        command.env_remove("STOCKADE_IMAGE");
        let output = crate::tool::finish(&mut command, b"");
        assert_eq!(code(&output), 0, "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(
        run(&["run", "--build", ".", "--", "cat", "/built"]),
        "one\n"
    );
    run(&["create", "box", "--build", "."]);
    file("two");
    assert_eq!(run(&["exec", "box", "--", "cat", "/built"]), "one\n");
    assert_eq!(
        run(&["run", "--build", ".", "--", "cat", "/built"]),
        "two\n"
    );
    let usage = user.json(&["df", "--json"]);
    assert_eq!(usage["images"]["count"], 2, "{usage:#}");
    let dry = user.json(&["prune", "--dry-run", "--json"]);
    let image = |item: &&Value| item["what"] == "image";
    let items = dry["items"].as_array().expect("a list");
    assert_eq!(
        (items.iter().filter(image).count(), &dry["dry_run"]),
        (0, &true.into()),
        "one is used, the other is the newest: {dry:#}"
    );
    user.refused(&["run", "--build", "none", "--", "true"], 122, &["none"]);
    user.done(&["rm", "box"]);
    let label = format!("label=dev.stockade.owner={}", user.tool.owner);
    let images = docker(["images", "--quiet", "--no-trunc", "--filter", &label]);
    for image in String::from_utf8_lossy(&images.stdout).lines() {
        docker(["rmi", "--force", image]);
    }
    user.tool.assert_clean();
}

#[test]
fn a_sandbox_that_is_there_is_never_replaced_by_who_looks_for_it() {
    let user = User::new();
    let tag = format!("stockade-test-{}:1", user.tool.owner);
    docker(["tag", PYTHON, &tag]);
    user.done(&["create", "box", "--image", &tag]);
    user.done(&["exec", "box", "--shell", "echo 42 > answer"]);
    // Its name means another image now, and its user another runtime.
    docker(["tag", "stockade-test/uid-12345:1", &tag]);
    assert_eq!(user.done(&["exec", "box", "--", "cat", "answer"]), "42\n");
    let notes = user.notes.path().join("stockade/sandboxes");
    let note = fs::read_dir(&notes).expect("notes").next();
    let note = note.expect("a note").expect("it is read").path();
    let text = fs::read_to_string(&note).expect("text");
    let other = text.replace("stockade-runtime-", "stockade-runtime-0");
    assert_ne!(text, other);
    fs::write(&note, other).expect("written");
    user.refused(&["exec", "box", "--", "true"], 122, &["another version"]);
    user.refused(&["create", "box"], 122, &["there is a sandbox `box`"]);
    fs::write(&note, text).expect("written");
    assert_eq!(user.done(&["exec", "box", "--", "cat", "answer"]), "42\n");
    user.done(&["rm", "box"]);
    docker(["rmi", &tag]);
    user.tool.assert_clean();
}

#[test]
fn setup_makes_ready_what_the_first_sandbox_needs_and_again_changes_nothing() {
    let user = User::new();
    user.done(&["setup", "--image", PYTHON]);
    let ready = user.json(&["setup", "--json"]);
    assert_eq!(ready["images"][0]["origin"], "present");
    assert_eq!(ready["runtime"]["filled"], false);
    assert!(
        user.done(&["setup"]).contains("present  guest runtime"),
        "it was there"
    );
    let usage = user.json(&["df", "--json"]);
    assert!(usage["runtimes"]["count"].as_u64() >= Some(1));
    assert_eq!(usage["sandboxes"]["count"], 0);
    user.refused(&["setup", "--remove", "--image", PYTHON], 64, &[]);
    user.refused(&["setup", "--image", "No/Image"], 64, &["No/Image"]);
    user.tool.assert_clean();
}

#[test]
fn every_shell_has_completions_of_every_command() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = user.done(&["completions", shell]);
        for word in ["reap", "older-than", "all-owners", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    user.refused(&["completions", "tcsh"], 64, &["elvish"]);
}

#[test]
fn no_configuration_no_home_and_no_terminal_are_needed() {
    let user = User::new();
    user.done(&["create", "box"]);
    let bare = |words: &[&str]| {
        let mut command = user.command(words);
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "TERM"] {
            command.env_remove(name);
        }
        let output = command.stdin(Stdio::null()).output().expect("it ends");
        assert_eq!(code(&output), 0, "{words:?}: {}", said(&output));
    };
    bare(&["ps"]);
    bare(&["logs", "box"]);
    bare(&["df"]);
    bare(&["reap", "--older-than", "1h"]);
    bare(&["rm", "box"]);
    user.tool.assert_clean();
}

#[test]
fn an_engine_that_hangs_is_given_up_at_the_deadline_and_at_ctrl_c() {
    let user = User::new();
    let client = user.path("docker");
    fs::write(&client, "#!/bin/sh\nexec sleep 300\n").expect("written");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("set");
    let client = client.display().to_string();
    for words in [
        &["ps"][..],
        &["logs", "box"],
        &["rm", "--all"],
        &["reap", "--all"],
        &["df"],
        &["prune"],
        &["setup"],
        &["setup", "--remove"],
    ] {
        let begun = Instant::now();
        let options = ["--docker", &client, "--deadline", "1s"];
        user.refused(&[words, &options].concat(), 125, &[]);
        assert!(begun.elapsed().as_secs() < 60, "{words:?}");
    }
    let mut child = user.command(&["ps", "--docker", &client]);
    let child = child.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("it starts");
    crate::tool::await_signals(&child);
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill starts").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130, "{}", said(&output));
}
