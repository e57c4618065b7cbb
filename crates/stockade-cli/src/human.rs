//! Figures as people read them.

use std::time::{Duration, SystemTime};

use bytesize::ByteSize;

/// What is not known.
pub(crate) const UNKNOWN: &str = "-";

/// The two largest units: `12s`, `3m 5s`, `2h 10m`, `4d 3h`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m {}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

/// Bytes, such as `1.5 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// So much of so much, such as `1.0 MiB/1.0 GiB`.
pub(crate) fn share(used: Option<u64>, of: Option<u64>) -> String {
    match (used, of) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(used), None) => size(used),
        (Some(used), Some(of)) => format!("{}/{}", size(used), size(of)),
    }
}

/// A moment in UTC, to the second.
pub(crate) fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// `1 sandbox`, `2 sandboxes`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_shows_its_two_largest_units() {
        let shown = |seconds| duration(Duration::from_secs(seconds));
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(59), "59s");
        assert_eq!(shown(185), "3m 5s");
        assert_eq!(shown(7_800), "2h 10m");
        assert_eq!(shown(4 * 86_400 + 3 * 3600 + 59), "4d 3h");
    }

    #[test]
    fn a_share_without_a_limit_or_a_figure_says_so() {
        assert_eq!(share(None, Some(1)), "-");
        assert_eq!(share(Some(1024), None), "1.0 KiB");
        assert_eq!(share(Some(1024), Some(1 << 30)), "1.0 KiB/1.0 GiB");
    }
}
