//! The program itself.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::script::{Received, Rule, Step};

/// The only word of the process that holds pipes.
const HOLD: &str = "--hold-pipes";

/// After this a stand-in ends, whatever it waits for: its test has gone.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

/// Does what the script beside the path of this program says, and ends the
/// process.
///
/// # Panics
///
/// When there is no script.
pub fn run() -> ! {
    let mut words = std::env::args_os();
    let own = PathBuf::from(words.next().expect("a program has a path"));
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let folder = own
        .parent()
        .expect("the stand-in is started by its path")
        .to_owned();
    if let [hold, gate] = words.as_slice()
        && hold == HOLD
    {
        wait_for(&folder.join(gate));
        end(0);
    }
    let script = fs::read(folder.join("script.json")).expect("there is a script");
    let rules: Vec<Rule> = serde_json::from_slice(&script).expect("the script can be read");
    let call = received(words);
    let earlier = record(&folder, &call).expect("a call can be recorded");
    let mut fitting = rules.iter().filter(|rule| rule.fits(&call)).filter(|rule| {
        rule.is_for(1 + earlier.iter().filter(|earlier| rule.fits(earlier)).count())
    });
    let Some(rule) = fitting.next() else {
        let _ = writeln!(
            io::stderr(),
            "docker: the script has no rule for {:?}",
            call.words
        );
        end(125);
    };
    // Handlers of signals need a runtime, and nothing else here does.
    let handler = rule.steps().contains(&Step::IgnoreTerm).then(ignore_term);
    for step in rule.steps() {
        // A reader that has gone is no reason to stop.
        let _ = follow(step, &folder, &own, &call);
    }
    drop(handler);
    end(0);
}

fn ignore_term() -> (Runtime, Signals) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be made");
    let entered = runtime.enter();
    let signals = signal(SignalKind::terminate()).expect("a signal can be handled");
    drop(entered);
    (runtime, signals)
}

fn follow(step: &Step, folder: &Path, own: &Path, call: &Received) -> io::Result<()> {
    match step {
        Step::Out(text) => say(io::stdout(), text.as_bytes()),
        Step::OutBytes(bytes) => say(io::stdout(), bytes),
        Step::Err(text) => say(io::stderr(), text.as_bytes()),
        Step::Flood(bytes) => flood(io::stdout(), *bytes),
        Step::FloodErr(bytes) => flood(io::stderr(), *bytes),
        Step::CopyInput => {
            let mut input = Vec::new();
            io::stdin().read_to_end(&mut input)?;
            say(io::stdout(), &input)
        }
        Step::Input(name) => {
            let mut file = File::create(folder.join(name))?;
            io::copy(&mut io::stdin(), &mut file).map(drop)
        }
        Step::WriteId(id) => {
            if let Some(path) = value_of(call, "--iidfile=") {
                fs::write(path, format!("sha256:{id}"))?;
            }
            value_of(call, "--cidfile=").map_or(Ok(()), |path| fs::write(path, id))
        }
        Step::Pause(milliseconds) => {
            sleep(Duration::from_millis(*milliseconds));
            Ok(())
        }
        Step::Mark(mark) => fs::write(folder.join(mark), std::process::id().to_string()),
        Step::WaitFor(gate) => {
            wait_for(&folder.join(gate));
            Ok(())
        }
        Step::IgnoreTerm => Ok(()),
        Step::Hang => {
            sleep(LONGEST_LIFE);
            Ok(())
        }
        Step::HoldPipes(gate) => hold_pipes(own, gate),
        Step::Exit(code) => end((*code).into()),
        Step::Die => Ok(kill_process(getpid(), Signal::KILL)?),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a process of the stand-in, not of the driver"
)]
fn hold_pipes(own: &Path, gate: &str) -> io::Result<()> {
    Command::new(own)
        .args([HOLD, gate])
        .stdin(Stdio::null())
        .spawn()
        .map(drop)
}

fn say(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

fn flood(mut stream: impl Write, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::repeat(b'x').take(bytes), &mut stream)?;
    stream.flush()
}

#[expect(
    clippy::disallowed_methods,
    reason = "no runtime whose time could be paused"
)]
fn wait_for(gate: &Path) {
    let started = Instant::now();
    // Its folder goes with its test.
    let test_lives = || gate.parent().is_some_and(Path::exists);
    while !gate.exists() && test_lives() && started.elapsed() < LONGEST_LIFE {
        sleep(Duration::from_millis(2));
    }
}

fn received(words: Vec<String>) -> Received {
    let mut call = Received {
        pid: std::process::id(),
        group: getpgrp().as_raw_nonzero().get().cast_unsigned(),
        words,
        environment: std::env::vars().collect(),
        env_file: None,
        env_file_mode: None,
    };
    if let Some(path) = value_of(&call, "--env-file=") {
        call.env_file_mode = fs::metadata(&path)
            .ok()
            .map(|file| file.permissions().mode() & 0o777);
        call.env_file = fs::read_to_string(path).ok();
    }
    call
}

fn value_of(call: &Received, option: &str) -> Option<String> {
    call.words
        .iter()
        .find_map(|word| word.strip_prefix(option))
        .map(str::to_owned)
}

/// Adds a call to the record, and gives those before it.
fn record(folder: &Path, call: &Received) -> io::Result<Vec<Received>> {
    let path = folder.join("calls.jsonl");
    let mut file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    let line = serde_json::to_string(call)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

#[expect(clippy::exit, reason = "the whole of a program")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
