//! What stockade itself has to say.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};

use crate::advice;

/// Faults that are listed one by one; the others are counted.
const LISTED: usize = 20;

/// One line on standard error, which starts with `stockade:` so that it can be
/// told from what the program wrote.
///
/// Names in it may be the guest's: nothing in it moves a terminal's cursor.
pub(crate) fn line(text: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "stockade: {}", tame(text));
}

/// The text with what a terminal would obey, or hide, spelled out.
pub(crate) fn tame(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut tamed = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unseen(character) {
            tamed.extend(character.escape_default());
        } else {
            tamed.push(character);
        }
    }
    Cow::Owned(tamed)
}

/// Control characters, and those that are not seen or turn the order of
/// others around (separators, zero widths, bidirectional marks).
pub(crate) fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A line for each, as far as a person reads.
pub(crate) fn lines<T: Display>(texts: &[T]) {
    for text in texts.iter().take(LISTED) {
        line(&text.to_string());
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
    text(&format!("{}\n", plain(&format!("{object:#}"))))
}

/// JSON in which no character is left that a terminal could act on: labels and
/// names are whoever's. Such characters are within strings only, where JSON has
/// another spelling for them.
fn plain(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        let acts = matches!(
            character,
            '\u{7f}'..='\u{9f}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        );
        if acts {
            let _ = write!(plain, "\\u{:04x}", u32::from(character));
        } else {
            plain.push(character);
        }
    }
    plain
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_and_no_escape_sequence_gets_through() {
        assert_eq!(tame("a `b` \u{e9}"), "a `b` \u{e9}");
        assert_eq!(tame("a\n\u{1b}[2J\r"), "a\\n\\u{1b}[2J\\r");
        assert_eq!(tame("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
    }

    #[test]
    fn json_holds_nothing_that_a_terminal_acts_on_and_means_the_same() {
        let label = "a\u{9b}31m\u{202e}b\u{7f}\u{2066}\u{1b}\n\u{e4}";
        let object = serde_json::json!({ label: label });
        let plain = plain(&format!("{object:#}"));
        let acts =
            |c: char| (c.is_control() && c != '\n') || ('\u{2028}'..='\u{2069}').contains(&c);
        assert!(!plain.chars().any(acts), "{plain:?}");
        let read: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(read, object);
    }
}
