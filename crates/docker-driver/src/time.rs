//! Times, as the engine writes them and as it reads them.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use crate::verb::ParseError;

/// What Go writes for "never": the first second of the year 1.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// Reads a time of the engine: RFC 3339 with any offset, and up to nine digits
/// of a second.
///
/// An engine that has no time to tell writes the first second of the year 1,
/// which is read as just that; in what this crate answers, such a time is
/// `None`.
///
/// # Errors
///
/// It is not such a text, or not within what the system's clock can tell.
pub fn parse_time(text: &str) -> Result<SystemTime, ParseError> {
    const EXPECTED: &str = "a time as RFC 3339 has it";
    let wrong = |error| ParseError::new(EXPECTED, error);
    let time: Timestamp = text.parse().map_err(wrong)?;
    time.try_into().map_err(wrong)
}

/// The same, where the engine may have none to tell.
pub(crate) fn maybe_time(text: &str) -> Result<Option<SystemTime>, ParseError> {
    match text {
        "" | NEVER => Ok(None),
        text => parse_time(text).map(Some),
    }
}

/// A time as options of the docker client have it, exact to the nanosecond:
/// seconds since 1970. An earlier one is 1970.
pub(crate) fn unix(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    format!("{}.{:09}", since.as_secs(), since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, nanoseconds: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
    }

    #[test]
    fn times_are_read_to_the_nanosecond_whatever_their_offset() {
        for (text, time) in [
            ("1970-01-01T00:00:00Z", at(0, 0)),
            (
                "2026-11-29T21:26:08.186360025Z",
                at(1_795_987_568, 186_360_025),
            ),
            (
                "2026-11-29T22:26:08.5+01:00",
                at(1_795_987_568, 500_000_000),
            ),
            ("2026-11-29T17:56:08-03:30", at(1_795_987_568, 0)),
        ] {
            assert_eq!(parse_time(text).unwrap(), time, "{text}");
            assert_eq!(maybe_time(text).unwrap(), Some(time), "{text}");
        }
    }

    #[test]
    fn a_time_of_never_is_none() {
        assert_eq!(maybe_time(NEVER).unwrap(), None);
        assert_eq!(maybe_time("").unwrap(), None);
        assert!(parse_time(NEVER).unwrap() < SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn what_is_no_time_is_an_error() {
        for text in [
            "",
            "now",
            "2026-11-29",
            "2026-13-29T00:00:00Z",
            "99999-01-01T00:00:00Z",
        ] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_option_holds_every_nanosecond() {
        assert_eq!(unix(at(12, 34)), "12.000000034");
        assert_eq!(
            unix(SystemTime::UNIX_EPOCH - Duration::from_secs(1)),
            "0.000000000"
        );
    }
}
