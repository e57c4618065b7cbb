//! What stockade itself has to say.

use std::error::Error as _;
use std::io::{self, Write as _};

use crate::advice;

/// Faults that are listed one by one; the others are counted.
const LISTED: usize = 20;

/// One line on standard error, which starts with `stockade:` so that it can be
/// told from what the program wrote.
pub(crate) fn line(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "stockade: {text}");
}

/// A line for each, as far as a person reads.
pub(crate) fn lines(texts: &[String]) {
    for text in texts.iter().take(LISTED) {
        line(text);
    }
    if let Some(more) = texts.len().checked_sub(LISTED).filter(|more| *more > 0) {
        line(&format!("and {more} more"));
    }
}

/// An error with what led to it, what to do, and what it left behind.
pub(crate) fn error(error: &stockade::Error) {
    let mut said = error.to_string();
    line(&said);
    if let Some(advice) = advice::of(error) {
        line(&format!("  here: {advice}"));
    }
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Many errors tell their cause in their own sentence.
        if !said.contains(&text) {
            line(&format!("  because: {text}"));
        }
        said = text;
        source = cause.source();
    }
    for left in error.left_behind() {
        line(&format!("  left behind: {left}"));
    }
    for text in error.detail().lines().take(LISTED) {
        line(&format!("  | {text}"));
    }
}

/// One object on standard output.
///
/// # Errors
///
/// It cannot be written, such as on a full disk; that has been said.
pub(crate) fn object(object: &serde_json::Value) -> io::Result<()> {
    text(&format!("{object:#}\n"))
}

/// Text on standard output.
///
/// # Errors
///
/// It cannot be written; that has been said, unless nobody reads any more.
pub(crate) fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        line(&format!("standard output cannot be written: {error}"));
    }
    written
}
