//! What stockade itself has to say, on standard error.

use std::error::Error as _;
use std::io::Write as _;

/// One line, which starts with `stockade:` so that it can be told from what
/// the program wrote.
pub(crate) fn line(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "stockade: {text}");
}

/// An error with what led to it, and what it left behind.
pub(crate) fn error(error: &stockade::Error) {
    line(&error.to_string());
    let mut source = error.source();
    while let Some(cause) = source {
        line(&format!("  because: {cause}"));
        source = cause.source();
    }
    for left in error.left_behind() {
        line(&format!("  left behind: {left}"));
    }
    for text in error.detail().lines().take(20) {
        line(&format!("  | {text}"));
    }
}
