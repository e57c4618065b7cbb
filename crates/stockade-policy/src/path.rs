//! Path patterns of rules.

use std::fmt;
use std::str::FromStr;

/// Most bytes of a pattern.
const LONGEST: usize = 2048;

/// A path of a rule: exact, or everything below a directory with a final `/*`.
///
/// Printable ASCII that begins with `/`, as it stands in a request before any
/// query. No dot segments, no `? # [ ] \`, no spaces; `*` only as the end `/*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern(String);

/// What is wrong with a path pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// It does not begin with `/`.
    #[error("a path begins with `/`")]
    Relative,
    /// A character that a pattern cannot have.
    #[error("{0:?} cannot stand in a path; percent-encode what a client percent-encodes")]
    Character(char),
    /// A segment is `.` or `..`.
    #[error("a segment is `.` or `..`")]
    DotSegment,
    /// `*` stands somewhere else than as the final `/*`.
    #[error("`*` may only stand at the end, after a slash, as in `/v1/*`")]
    Wildcard,
    /// `%` without two hexadecimal digits.
    #[error("`%` is not followed by two hexadecimal digits")]
    Escape,
    /// It is longer than 2048 bytes.
    #[error("it is longer than 2048 bytes")]
    Long,
    /// The same pattern stands there twice.
    #[error("a path stands there twice")]
    Twice,
}

impl PathPattern {
    /// The pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before `*` when this is a prefix, its final slash included.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }
}

impl FromStr for PathPattern {
    type Err = PathFault;

    fn from_str(text: &str) -> Result<Self, PathFault> {
        if !text.starts_with('/') {
            return Err(PathFault::Relative);
        }
        let stray = |c: &char| !c.is_ascii_graphic() || r"?#[]\".contains(*c);
        if let Some(c) = text.chars().find(stray) {
            return Err(PathFault::Character(c));
        }
        if text.len() > LONGEST {
            return Err(PathFault::Long);
        }
        let fixed = match text.strip_suffix("/*") {
            Some(fixed) => fixed,
            None => text,
        };
        if fixed.contains('*') {
            return Err(PathFault::Wildcard);
        }
        escapes(fixed)?;
        if fixed.split('/').any(is_dot_segment) {
            return Err(PathFault::DotSegment);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn escapes(text: &str) -> Result<(), PathFault> {
    let well_formed = text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    });
    if well_formed {
        Ok(())
    } else {
        Err(PathFault::Escape)
    }
}

/// `.` and `..`, and their percent-encoded spellings, which a server may decode.
fn is_dot_segment(segment: &str) -> bool {
    let decoded = segment.replace("%2e", ".").replace("%2E", ".");
    decoded == "." || decoded == ".."
}
