//! Reading what docker prints as JSON.

use serde::de::DeserializeOwned;

use crate::verb::ParseError;

/// One document, and nothing after it.
pub(super) fn one<T: DeserializeOwned>(
    expected: &'static str,
    bytes: &[u8],
) -> Result<T, ParseError> {
    serde_json::from_slice(bytes).map_err(|error| ParseError::new(expected, error))
}

/// One document a line; no line is no document.
pub(super) fn lines<T: DeserializeOwned>(
    expected: &'static str,
    bytes: &[u8],
) -> Result<Vec<T>, ParseError> {
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| one(expected, line)).collect()
}
