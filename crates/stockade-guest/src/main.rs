//! The guest runtime: PID 1 of every sandbox with its supervisors and its
//! workers for files, the relay that hosts attach through, the inquiries of
//! whoever looks, and the one-shot look into an image.
//!
//! One static binary, so that the image needs nothing. It is installed with
//! mode 0111: a file that its user may execute but not read makes a process
//! that is not dumpable from its first instruction, and such a process can be
//! neither traced nor looked into by guest code of the same user. A fork keeps
//! that, which is why a supervisor is a fork and never executes anything.

mod args;
mod cgroup;
mod clock;
mod facts;
mod files;
mod inquire;
mod kill;
mod limits;
mod memory;
mod mounts;
mod poller;
mod proc;
mod reach;
mod relay;
mod sandbox;
mod server;
mod space;
mod supervisor;
mod sys;
mod usage;

use std::process::ExitCode;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// The version of the runtime, for people.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The command line is wrong (`sysexits.h`, EX_USAGE).
const USAGE: u8 = 64;

/// What is needed is not there (`sysexits.h`, EX_UNAVAILABLE).
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    let shielded = server::is_shielded();
    // Belt and braces, for a file that can be read after all; the hello says
    // how it was before this line.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let command = match args::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            complain(&format!("{error}\n{}", args::USAGE));
            return ExitCode::from(USAGE);
        }
    };
    match run(command, shielded) {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("{error}\n"));
            ExitCode::from(UNAVAILABLE)
        }
    }
}

fn run(command: args::Command, shielded: bool) -> Result<ExitCode, String> {
    match command {
        args::Command::Init(init) => {
            memory::reserve_stack();
            let end = server::serve(init, shielded)?;
            return Ok(ExitCode::from(end.code()));
        }
        args::Command::Attach { wait } => relay::attach(wait)?,
        args::Command::Inquire(inquiry) => {
            let (text, asked) = inquire::ask(inquiry)?;
            answer(&text)?;
            asked.until_the_end();
        }
        args::Command::Facts(asked) => answer(&facts::answer(&asked)?)?,
        args::Command::Version => {
            let stockade_wire::message::ProtocolRange { min, max } = stockade_wire::PROTOCOL;
            let text = format!("stockade-guest {VERSION}, protocol {min} to {max}\n");
            answer(text.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("the answer cannot be written: {error}")),
        }
    }
    Ok(())
}

fn complain(text: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("guest: {text}").as_bytes());
}
