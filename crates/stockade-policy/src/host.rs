//! Host names of rules.

use std::fmt;
use std::str::FromStr;

/// Most bytes of a host, a leading `*.` included (RFC 1035, section 2.3.4).
const LONGEST_HOST: usize = 253;

/// Most bytes of one label (RFC 1035, section 2.3.4).
const LONGEST_LABEL: usize = 63;

/// A host of a rule: a name, or `*.` and a name for every name below it.
///
/// `*.example.com` covers `a.example.com` and `a.b.example.com`, and not
/// `example.com` itself. Comparison ignores case; the spelling is kept.
/// A name is labels of letters, digits and inner hyphens, joined by dots, at
/// most 253 bytes with 63 a label. The last label is not a number in any
/// spelling that a resolver would take for an IPv4 address: rules are for
/// names, never for addresses.
#[derive(Debug, Clone)]
pub struct Host {
    spelling: String,
}

/// What is wrong with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostFault {
    /// There is no name.
    #[error("it is empty; name a host, such as `example.com`")]
    Empty,
    /// `*` stands somewhere else than as a leading `*.`, or alone.
    #[error("`*` may only stand as a leading `*.` before a name, as in `*.example.com`")]
    Wildcard,
    /// A character that no host name has.
    #[error(
        "{0:?} is not a letter, digit, hyphen or dot; give the bare name, internationalised names in their `xn--` form"
    )]
    Character(char),
    /// A label is empty, which includes a trailing dot.
    #[error("a label is empty; leave out leading, doubled and trailing dots")]
    EmptyLabel,
    /// A label begins or ends with a hyphen.
    #[error("a label begins or ends with a hyphen")]
    Hyphen,
    /// A label is longer than 63 bytes.
    #[error("a label is longer than 63 bytes")]
    LongLabel,
    /// The whole is longer than 253 bytes.
    #[error("it is longer than 253 bytes")]
    Long,
    /// The last label is a number, as of an IPv4 address.
    #[error("its last label is a number, as of an address; rules name hosts, never addresses")]
    Numeric,
}

impl Host {
    /// The host as it was first written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.spelling
    }

    /// Whether this covers the names below a name instead of one name.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.spelling.starts_with("*.")
    }

    /// The name without a leading `*.`, in lower case.
    #[must_use]
    pub fn name(&self) -> String {
        self.spelling
            .strip_prefix("*.")
            .unwrap_or(&self.spelling)
            .to_ascii_lowercase()
    }
}

impl FromStr for Host {
    type Err = HostFault;

    fn from_str(text: &str) -> Result<Self, HostFault> {
        if text.is_empty() {
            return Err(HostFault::Empty);
        }
        let name = match text.strip_prefix("*.") {
            Some("") => return Err(HostFault::Wildcard),
            Some(name) => name,
            None => text,
        };
        if name.contains('*') {
            return Err(HostFault::Wildcard);
        }
        let stray = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        if let Some(c) = name.chars().find(stray) {
            return Err(HostFault::Character(c));
        }
        if text.len() > LONGEST_HOST {
            return Err(HostFault::Long);
        }
        name.split('.').try_for_each(label)?;
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(HostFault::Numeric);
        }
        Ok(Self {
            spelling: text.to_owned(),
        })
    }
}

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.spelling.eq_ignore_ascii_case(&other.spelling)
    }
}

impl Eq for Host {}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelling)
    }
}

fn label(label: &str) -> Result<(), HostFault> {
    if label.is_empty() {
        return Err(HostFault::EmptyLabel);
    }
    if label.len() > LONGEST_LABEL {
        return Err(HostFault::LongLabel);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(HostFault::Hyphen);
    }
    Ok(())
}

/// Whether a label is what `inet_aton` takes for the last part of an address:
/// decimal or octal digits, or hexadecimal ones after `0x`, even none.
fn is_number(label: &str) -> bool {
    let hexadecimal = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"))
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    hexadecimal || label.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> HostFault {
        text.parse::<Host>().unwrap_err()
    }

    #[test]
    fn names_and_wildcards_are_told_apart() {
        let host: Host = "PyPI.org".parse().unwrap();
        assert_eq!(
            (host.is_wildcard(), host.name().as_str()),
            (false, "pypi.org")
        );
        assert_eq!(host.to_string(), "PyPI.org");
        let below: Host = "*.Example.com".parse().unwrap();
        assert_eq!(
            (below.is_wildcard(), below.name().as_str()),
            (true, "example.com")
        );
        assert_ne!(host, below);
        assert_ne!("example.com".parse::<Host>().unwrap(), below);
    }

    #[test]
    fn case_is_kept_and_ignored() {
        let one: Host = "EXAMPLE.com".parse().unwrap();
        assert_eq!(one, "example.COM".parse().unwrap());
    }

    #[test]
    fn stars_stand_only_before_a_name() {
        for text in ["*", "*.", "a.*.b", "*a.b", "a*.b", "*.*.b", "**.b"] {
            assert_eq!(fault(text), HostFault::Wildcard, "{text}");
        }
    }

    #[test]
    fn what_is_no_bare_name_is_refused() {
        assert_eq!(fault(""), HostFault::Empty);
        for c in [' ', ',', '_', ':', '/', '@', '[', 'ü', '。', '\0', '\n'] {
            assert_eq!(fault(&format!("a{c}b.test")), HostFault::Character(c));
        }
        for text in [".a", "a..b", "a.", "*..a"] {
            assert_eq!(fault(text), HostFault::EmptyLabel, "{text}");
        }
        for text in ["-a.b", "a-.b", "a.-"] {
            assert_eq!(fault(text), HostFault::Hyphen, "{text}");
        }
    }

    #[test]
    fn lengths_are_those_of_the_name_system() {
        let label = "a".repeat(63);
        assert!(format!("{label}.b").parse::<Host>().is_ok());
        assert_eq!(fault(&format!("{label}a.b")), HostFault::LongLabel);
        let long = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(long.len(), 253);
        assert!(long.parse::<Host>().is_ok());
        assert_eq!(fault(&format!("{long}a")), HostFault::Long);
        assert_eq!(fault(&format!("*.{long}")), HostFault::Long);
    }

    #[test]
    fn no_spelling_of_an_address_is_a_name() {
        for text in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0X7f.1",
            "127.1",
            "0177.0.0.1",
            "a.0x",
            "a.09",
        ] {
            assert_eq!(fault(text), HostFault::Numeric, "{text}");
        }
        for text in ["1.test", "127.0.0.1.nip.io", "0xg", "a.0xz", "4chan.org"] {
            assert!(text.parse::<Host>().is_ok(), "{text}");
        }
    }
}
