//! Verbs that answer with the name of what they were about.

use crate::verb::{Output, ParseError};

/// Nothing but that name; anything else is no answer.
pub(super) fn parse(expected: &'static str, name: &str, output: &Output) -> Result<(), ParseError> {
    if output.stdout.trim_ascii() == name.as_bytes() {
        Ok(())
    } else {
        let found = format_args!("{} bytes of something else", output.stdout.len());
        Err(ParseError::new(expected, found))
    }
}
