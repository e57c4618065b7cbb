//! Excerpts of foreign text for messages.

use std::fmt::Write;

/// Most characters of an excerpt.
const LONGEST: usize = 120;

/// A caller's or an engine's text, short and on one line, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == LONGEST {
            short.push('…');
            break;
        }
        if c.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(short, "{}", c.escape_debug());
        } else {
            short.push(c);
        }
    }
    short
}

/// As [`excerpt`], of bytes that need not be text.
pub(crate) fn excerpt_bytes(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(4 * LONGEST + 4)];
    excerpt(&String::from_utf8_lossy(start))
}
