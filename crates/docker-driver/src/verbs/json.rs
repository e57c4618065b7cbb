//! Reading what docker prints as JSON.

use std::collections::HashSet;

use serde::de::DeserializeOwned;

use crate::verb::ParseError;

/// One document, and nothing after it.
pub(super) fn one<T: DeserializeOwned>(
    expected: &'static str,
    bytes: &[u8],
) -> Result<T, ParseError> {
    serde_json::from_slice(bytes).map_err(|error| ParseError::new(expected, error))
}

/// One document a line; no line is no document. A line that says the same as
/// one before it says nothing: an engine that answers twice has not twice as
/// much.
pub(super) fn lines<T: DeserializeOwned>(
    expected: &'static str,
    bytes: &[u8],
) -> Result<Vec<T>, ParseError> {
    let mut seen = HashSet::new();
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && seen.insert(*line))
        .map(|line| one(expected, line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_comes_twice_counts_once() {
        let lines = lines::<u8>("numbers", b"1\n2\n\n1\n 2\n3").unwrap();
        assert_eq!(lines, [1, 2, 3]);
    }
}
