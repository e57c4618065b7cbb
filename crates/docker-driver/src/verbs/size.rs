//! Sizes, as docker prints them for people.

use crate::verb::ParseError;

/// The units of docker's sizes, each a thousand of the one before.
const UNITS: [&str; 9] = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];

/// Bytes of a size such as `1.237MB`; none where docker does not know it. Three
/// or four digits are all that docker prints.
pub(super) fn parse(text: &str) -> Result<Option<u64>, ParseError> {
    if text == "N/A" {
        return Ok(None);
    }
    let wrong = || ParseError::new("a size", format_args!("{text:?} is none"));
    let unit = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit);
    let power = UNITS
        .iter()
        .position(|known| *known == unit)
        .ok_or_else(wrong)?;
    bytes(number, power).map(Some).ok_or_else(wrong)
}

/// A decimal number of units of `1000^power` bytes, exactly.
fn bytes(number: &str, power: usize) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let places = 3 * power;
    // What is less than a byte is left out.
    let digits = fraction.chars().chain(std::iter::repeat('0')).take(places);
    let digits: String = whole.chars().chain(digits).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_size_is_its_bytes() {
        for (text, bytes) in [
            ("0B", 0),
            ("23B", 23),
            ("999.5B", 999),
            ("1.24kB", 1240),
            ("208.4MB", 208_400_000),
            ("1.237GB", 1_237_000_000),
            ("18EB", 18_000_000_000_000_000_000),
        ] {
            assert_eq!(parse(text).unwrap(), Some(bytes), "{text}");
        }
        assert_eq!(parse("N/A").unwrap(), None);
    }

    #[test]
    fn what_is_no_size_is_an_error() {
        for text in [
            "", "B", "1", "-1B", "1.5", "1.B.", ".5kB", "1e3B", "1 kB", "1KB", "19EB", "1YB", "١B",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,20}|[0-9.]{0,40}[kMGTPEZY]?B") {
            let _ = parse(&text);
        }
    }
}
