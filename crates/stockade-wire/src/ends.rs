//! Why PID 1 ended, as its exit code tells it.
//!
//! The engine keeps the exit code of a container in the event of its death,
//! also when the container itself is gone: the last thing that can be known of
//! a sandbox. So each reason has a code that nothing else makes: not 0 and 1,
//! not 64 and 69 (the runtime's own refusals, of `sysexits.h`), not 125 to 127
//! (the engine's, for what it could not start), and nothing above 128 (a
//! signal; 137 is a kill from outside).

use std::fmt;

/// Why PID 1 ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// No host was heard for the idle limit.
    IdleLimit,
    /// The maximum age was reached.
    MaximumAge,
    /// It was asked to retire, and nobody used it.
    Retired,
    /// The engine asked for its end (`docker stop`, SIGTERM).
    Stopped,
}

impl End {
    /// Every reason, for tables and tests.
    pub const ALL: [Self; 4] = [
        Self::IdleLimit,
        Self::MaximumAge,
        Self::Retired,
        Self::Stopped,
    ];

    /// The exit code that stands for it.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::IdleLimit => 80,
            Self::MaximumAge => 81,
            Self::Retired => 82,
            Self::Stopped => 83,
        }
    }

    /// The reason that an exit code stands for; `None` when PID 1 did not end
    /// by itself, or for a reason that this build does not know.
    #[must_use]
    pub fn of_code(code: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|end| i64::from(end.code()) == code)
    }
}

impl fmt::Display for End {
    /// As part of a sentence about the sandbox.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdleLimit => "no host was heard for the idle limit",
            Self::MaximumAge => "the maximum age was reached",
            Self::Retired => "it was not in use, and was retired",
            Self::Stopped => "the engine stopped it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_its_code_and_no_code_has_another_meaning() {
        for end in End::ALL {
            let code = end.code();
            assert_eq!(End::of_code(i64::from(code)), Some(end));
            // 101 is a panic of Rust, 65 to 78 are the rest of `sysexits.h`.
            let taken = matches!(code, 0..=2 | 64..=78 | 101 | 124..=127 | 128..);
            assert!(!taken, "{end:?} is {code}");
        }
        let codes: std::collections::BTreeSet<u8> = End::ALL.map(End::code).into();
        assert_eq!(codes.len(), End::ALL.len());
    }

    #[test]
    fn what_is_no_such_code_is_no_reason() {
        for code in [-1, 0, 1, 64, 69, 125, 126, 127, 137, 143, 80 + 256] {
            assert_eq!(End::of_code(code), None);
        }
    }
}
