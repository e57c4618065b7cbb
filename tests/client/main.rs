//! A docker client that does what it is told, around the real one; see
//! `stockade_tests::client`.

#![expect(
    clippy::disallowed_methods,
    reason = "it stands in for docker, outside the library"
)]
#![expect(clippy::print_stderr, reason = "docker complains there")]

mod relay;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use stockade_tests::client::{Fault, Told};

/// How late what is late is: far longer than anything takes, and far shorter
/// than anybody's patience.
const LATE: Duration = Duration::from_millis(500);

/// Between two looks whether the test has moved on.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes that are taken at a time from a stream; more than its first message.
const CHUNK: usize = 64 * 1024;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().map(PathBuf::from).expect("it has a name");
    let words: Vec<OsString> = words.collect();
    let told = Told::of(&name);
    let verb = verb_of(&words);
    if let Some(fault) = told.fault(&verb) {
        return match is_stream(&verb, &words) {
            true => in_a_stream(fault, &told, &words),
            false => in_a_command(fault, &told, &verb, &stood_in(&told, &verb, words)),
        };
    }
    if is_relay(&words)
        && let Some(rules) = told.frames()
    {
        return relay::run(&told, rules, docker(&words));
    }
    let error = docker(&stood_in(&told, &verb, words)).exec();
    panic!("docker does not start: {error}");
}

/// The words, or what stands in for them: there is no registry to pull from.
fn stood_in(told: &Told, verb: &str, words: Vec<OsString>) -> Vec<OsString> {
    match (verb, told.pulls(), words.last()) {
        ("pull", Some(image), Some(name)) => vec!["tag".into(), image.into(), name.clone()],
        _ => words,
    }
}

/// The verb of a command line, as the driver counts it.
fn verb_of(words: &[OsString]) -> String {
    let text: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let text: Vec<&str> = text.iter().map(|word| word.as_ref()).collect();
    let verb = docker_driver::verb_of(&text);
    verb.unwrap_or_else(|| panic!("no verb renders {text:?}"))
        .to_owned()
}

/// The real client, found as the user would find it.
fn docker(words: &[OsString]) -> Command {
    let mut command = Command::new("docker");
    command.args(words);
    command
}

fn is_relay(words: &[OsString]) -> bool {
    words.first().is_some_and(|word| word == "exec")
        && words.last().is_some_and(|word| word == "attach")
}

/// Whether its answer is used as it comes.
fn is_stream(verb: &str, words: &[OsString]) -> bool {
    is_relay(words) || verb == "events"
}

fn in_a_command(fault: Fault, told: &Told, verb: &str, words: &[OsString]) -> ExitCode {
    match fault {
        Fault::Late => late(words),
        Fault::HangsAfter => {
            work(words);
            hang(told)
        }
        Fault::KilledAfter => {
            work(words);
            killed()
        }
        Fault::Truncated => {
            let output = work(words);
            say(half(&output.stdout));
            complain(&output.stderr);
            code(&output)
        }
        Fault::FailsAfter => {
            let output = work(words);
            say(half(&output.stdout));
            ExitCode::FAILURE
        }
        Fault::DaemonLost => {
            let output = work(words);
            say(half(&output.stdout));
            lost()
        }
        Fault::Duplicate => {
            let output = work(words);
            say(&output.stdout);
            ended(&output)
        }
        Fault::DiskFull => {
            // What is sent to the engine, it takes.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            full(verb)
        }
        Fault::Fails | Fault::Hangs | Fault::Garbage | Fault::KilledBefore | Fault::DaemonGone => {
            without_work(fault, told)
        }
    }
}

/// A stream begins with one message, the hello of PID 1 or the first event.
fn in_a_stream(fault: Fault, told: &Told, words: &[OsString]) -> ExitCode {
    let mut stream = match fault {
        Fault::Late => return late(words),
        Fault::DiskFull => return full("exec"),
        Fault::Fails | Fault::Hangs | Fault::Garbage | Fault::KilledBefore | Fault::DaemonGone => {
            return without_work(fault, told);
        }
        _ => docker(words)
            .stdout(Stdio::piped())
            .spawn()
            .expect("docker starts"),
    };
    let mut from = stream.stdout.take().expect("it has an output");
    let mut first = vec![0; CHUNK];
    let read = from.read(&mut first).unwrap_or(0);
    let first = &first[..read];
    match fault {
        Fault::Duplicate => {
            say(first);
            say(first);
            let _ = std::io::copy(&mut from, &mut std::io::stdout());
            return match stream.wait() {
                Ok(status) if status.success() => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            };
        }
        Fault::HangsAfter => hang(told),
        Fault::KilledAfter => killed(),
        _ => say(half(first)),
    };
    let _ = stream.kill();
    match fault {
        Fault::DaemonLost => lost(),
        Fault::FailsAfter => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// What goes wrong before the engine hears of it.
fn without_work(fault: Fault, told: &Told) -> ExitCode {
    match fault {
        Fault::Hangs => hang(told),
        Fault::Garbage => {
            say(b"{\"Oops\": [1, 2\n");
            ExitCode::SUCCESS
        }
        Fault::KilledBefore => killed(),
        Fault::DaemonGone => {
            eprintln!(
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
            );
            ExitCode::FAILURE
        }
        _ => {
            eprintln!("something went wrong");
            ExitCode::FAILURE
        }
    }
}

/// Docker's whole work, with our own standard input.
fn work(words: &[OsString]) -> Output {
    docker(words)
        .stdin(Stdio::inherit())
        .output()
        .expect("docker starts")
}

fn late(words: &[OsString]) -> ExitCode {
    sleep(LATE);
    eprintln!("WARNING: it was late");
    let error = docker(words).exec();
    panic!("docker does not start: {error}");
}

fn hang(told: &Told) -> ExitCode {
    while !told.is_over() {
        sleep(LOOK);
    }
    ExitCode::FAILURE
}

fn killed() -> ExitCode {
    let us = rustix::process::getpid();
    let _ = rustix::process::kill_process(us, rustix::process::Signal::KILL);
    ExitCode::FAILURE
}

/// What a client says whose daemon goes away in the middle.
fn lost() -> ExitCode {
    eprintln!(
        "error during connect: Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.47/containers\": EOF"
    );
    ExitCode::FAILURE
}

/// What an engine says whose disk is full.
fn full(verb: &str) -> ExitCode {
    const MADE: &str =
        "Error response from daemon: mkdir /var/lib/docker/overlay2/abc: no space left on device";
    match verb {
        "run" | "run attached" => {
            eprintln!("docker: {MADE}.\n\nRun 'docker run --help' for more information");
            ExitCode::from(125)
        }
        "cp in" => {
            eprintln!(
                "Error response from daemon: Error processing tar file(exit status 1): write /a: no space left on device"
            );
            ExitCode::FAILURE
        }
        "pull" => {
            eprintln!("failed to register layer: write /usr/lib/a: no space left on device");
            ExitCode::FAILURE
        }
        "exec" => {
            eprintln!(
                "OCI runtime exec failed: write /tmp/runc-process838923749: no space left on device: unknown"
            );
            ExitCode::from(126)
        }
        _ => {
            eprintln!("{MADE}");
            ExitCode::FAILURE
        }
    }
}

fn half(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 2]
}

fn say(bytes: &[u8]) -> ExitCode {
    let mut to = std::io::stdout();
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}

fn ended(output: &Output) -> ExitCode {
    say(&output.stdout);
    complain(&output.stderr);
    code(output)
}

fn code(output: &Output) -> ExitCode {
    let code = output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
