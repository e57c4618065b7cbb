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
        if has_dot_segment(fixed) {
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

/// Whether a server that decodes `%2e`, `%2f` or `%5c` would see `.` or `..`.
fn has_dot_segment(path: &str) -> bool {
    let decoded = path
        .to_ascii_lowercase()
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/");
    decoded
        .split('/')
        .any(|segment| matches!(segment, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> PathFault {
        text.parse::<PathPattern>().unwrap_err()
    }

    #[test]
    fn exact_paths_and_prefixes_are_told_apart() {
        let exact: PathPattern = "/v1/status".parse().unwrap();
        assert_eq!(exact.prefix(), None);
        let below: PathPattern = "/v1/*".parse().unwrap();
        assert_eq!(below.prefix(), Some("/v1/"));
        let all: PathPattern = "/*".parse().unwrap();
        assert_eq!(all.prefix(), Some("/"));
    }

    #[test]
    fn a_star_stands_only_as_the_last_segment() {
        for text in ["/*/a", "/v*", "/v1/**", "/v1/*/*", "/v1/a*"] {
            assert_eq!(fault(text), PathFault::Wildcard, "{text}");
        }
    }

    #[test]
    fn dot_segments_are_refused_however_they_are_written() {
        for text in [
            "/..",
            "/.",
            "/a/../b",
            "/./a",
            "/%2e%2E/a",
            "/a/.%2e",
            "/a%2f..%2fb",
            "/a%5C.%5cb",
            "/../*",
        ] {
            assert_eq!(fault(text), PathFault::DotSegment, "{text}");
        }
        for text in ["/...", "/a..b", "/.well-known/x", "/@scope/a%2fb"] {
            assert!(text.parse::<PathPattern>().is_ok(), "{text}");
        }
    }

    #[test]
    fn what_no_request_path_holds_is_refused() {
        assert_eq!(fault(""), PathFault::Relative);
        assert_eq!(fault("v1"), PathFault::Relative);
        for c in ['?', '#', '[', ']', '\\', ' ', '\t', '\0', 'é'] {
            assert_eq!(fault(&format!("/a{c}b")), PathFault::Character(c));
        }
        for text in ["/%", "/%4", "/%zz", "/a%2"] {
            assert_eq!(fault(text), PathFault::Escape, "{text}");
        }
        assert_eq!(fault(&format!("/{}", "a".repeat(2048))), PathFault::Long);
    }
}
