//! Exit codes, once.
//!
//! A program's own code passes through unchanged, whatever it is. What the
//! other codes mean is also said in one line on standard error, which starts
//! with `stockade:`, and in `--json`; a script that must tell a program's own
//! 124 from a timeout reads one of those.

use stockade::exec::NotStartedWhy;
use stockade::{ErrorKind, ExecStatus};

/// What was asked for was done in part: the program succeeded and an output did
/// not come or could not land, or some of several things were done.
pub(crate) const INCOMPLETE: u8 = 121;
/// The program wrote more than `--max-output` allows and was ended.
pub(crate) const OUTPUT_LIMIT: u8 = 123;
/// The program ran longer than `--timeout` and was ended.
pub(crate) const TIMED_OUT: u8 = 124;
/// Stockade or the engine failed; the program may not have run.
pub(crate) const FAILED: u8 = 125;
/// The program exists and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program does not exist.
pub(crate) const NOT_FOUND: u8 = 127;
/// What was asked for is refused, or does not exist, or does not fit.
pub(crate) const REFUSED: u8 = 122;
/// The arguments were not understood (as in sysexits.h).
pub(crate) const USAGE: u8 = 64;
/// Ctrl-C, or another request to terminate.
pub(crate) const INTERRUPTED: u8 = 130;
/// 128 and SIGPIPE: nobody reads our standard output any more.
pub(crate) const BROKEN_PIPE: u8 = 141;

/// For `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0..255  the program's own exit code, unchanged
  128+N   the program was ended by signal N
  64      the arguments were not understood
  121     done in part: the program succeeded, and something of --out is missing
          or could not land; or some of several files or sandboxes were done
  122     nothing was done: what was asked for is refused, is not there (a file
          too, in every command) or does not fit
  123     the program wrote more than --max-output
  124     the program ran longer than --timeout
  125     stockade or the engine failed, or --deadline passed
  126     the program cannot be executed
  127     the program (or the working directory, or the shell) does not exist
  130     interrupted by Ctrl-C, or by a signal to terminate
  141     nobody reads standard output any more
A line on standard error that starts with `stockade:` and --json tell a
program's own code from one of these.";

/// For `--help` of commands that run no program.
pub(crate) const OPERATOR_HELP: &str = "\
Exit codes:
  0       done; what was not there to be removed counts as done
  64      the arguments were not understood
  121     done in part: the rest is named
  122     nothing was done: it is refused, or not there
  125     stockade or the engine failed, something could not be removed, or
          --deadline passed
  130     interrupted by Ctrl-C, or by a signal to terminate
  141     nobody reads standard output any more";

/// The code for the way a program ended.
pub(crate) fn of_status(status: &ExecStatus) -> u8 {
    match status {
        ExecStatus::Exited(code) => low_byte(*code),
        ExecStatus::Signaled(signal) => low_byte(128 + *signal),
        ExecStatus::NotStarted(not_started) => match not_started.why {
            NotStartedWhy::NotFound | NotStartedWhy::NoShell | NotStartedWhy::WorkingDirectory => {
                NOT_FOUND
            }
            _ => NOT_EXECUTABLE,
        },
        ExecStatus::TimedOut => TIMED_OUT,
        ExecStatus::OutputLimit => OUTPUT_LIMIT,
        // By Ctrl-C, which the caller knows, or by the deadline.
        _ => FAILED,
    }
}

/// The code for an error.
pub(crate) fn of_error(error: &stockade::Error) -> u8 {
    match error.kind() {
        ErrorKind::Refused | ErrorKind::NotFound => REFUSED,
        // Files that do not fit; other limits are failures.
        ErrorKind::LimitExceeded if error.refusal().is_some() => REFUSED,
        ErrorKind::InvalidRequest => USAGE,
        ErrorKind::Cancelled => INTERRUPTED,
        _ => FAILED,
    }
}

/// The code for a copy: what was not done at all is refused, what was done in
/// part is incomplete.
pub(crate) const fn of_copy(whole: bool, some: bool) -> u8 {
    match (whole, some) {
        (true, _) => 0,
        (false, true) => INCOMPLETE,
        (false, false) => REFUSED,
    }
}

/// The code for what was written to standard output, if nothing else counts.
pub(crate) fn of_writing(said: &std::io::Result<()>) -> u8 {
    match said {
        Ok(()) => 0,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => BROKEN_PIPE,
        Err(_) => FAILED,
    }
}

/// A process ends with one byte; the kernel cuts codes in the same way.
fn low_byte(code: i32) -> u8 {
    code.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_program_passes_through() {
        for code in 0..=255 {
            assert_eq!(i32::from(of_status(&ExecStatus::Exited(code))), code);
        }
    }

    #[test]
    fn a_signal_is_128_and_its_number() {
        assert_eq!(of_status(&ExecStatus::Signaled(9)), 137);
        assert_eq!(of_status(&ExecStatus::Signaled(15)), 143);
    }

    #[test]
    fn the_help_names_every_code() {
        let codes = [
            INCOMPLETE,
            OUTPUT_LIMIT,
            TIMED_OUT,
            FAILED,
            NOT_EXECUTABLE,
            NOT_FOUND,
            REFUSED,
            USAGE,
            INTERRUPTED,
            BROKEN_PIPE,
        ];
        for code in codes {
            assert!(
                HELP.lines()
                    .any(|line| line.trim_start().starts_with(&code.to_string()))
            );
        }
    }
}
