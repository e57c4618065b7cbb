//! Request methods of rules.

use std::fmt;
use std::str::FromStr;

/// Most bytes of a method; the longest registered one has 17.
const LONGEST: usize = 64;

/// A request method: an upper-case token (RFC 9110, section 5.6.2).
///
/// Methods are case-sensitive. A lower-case one is refused, never turned into
/// another method on the caller's behalf.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method(String);

/// What is wrong with a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MethodFault {
    /// There is none.
    #[error("a method is empty; leave methods out to allow every one")]
    Empty,
    /// A character that a token does not have.
    #[error("{0:?} cannot stand in a method")]
    Character(char),
    /// A lower-case letter.
    #[error("methods are case-sensitive; write it in upper case")]
    LowerCase,
    /// It is longer than 64 bytes.
    #[error("it is longer than 64 bytes")]
    Long,
    /// The same method stands there twice.
    #[error("a method stands there twice")]
    Twice,
}

impl Method {
    /// The method.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Method {
    type Err = MethodFault;

    fn from_str(text: &str) -> Result<Self, MethodFault> {
        if text.is_empty() {
            return Err(MethodFault::Empty);
        }
        let stray = |c: &char| !(c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(*c));
        if let Some(c) = text.chars().find(stray) {
            return Err(MethodFault::Character(c));
        }
        if text.bytes().any(|b| b.is_ascii_lowercase()) {
            return Err(MethodFault::LowerCase);
        }
        if text.len() > LONGEST {
            return Err(MethodFault::Long);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_upper_case_token_is_a_method() {
        for text in ["GET", "PROPFIND", "M-SEARCH", "X_1", "!#$"] {
            assert_eq!(text.parse::<Method>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_method_is_never_made_upper_case() {
        assert_eq!("get".parse::<Method>(), Err(MethodFault::LowerCase));
        assert_eq!("GeT".parse::<Method>(), Err(MethodFault::LowerCase));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        assert_eq!("".parse::<Method>(), Err(MethodFault::Empty));
        for c in [' ', '(', '/', ':', '@', '\r', '\0', 'É'] {
            assert_eq!(
                format!("A{c}").parse::<Method>(),
                Err(MethodFault::Character(c))
            );
        }
        assert_eq!("A".repeat(65).parse::<Method>(), Err(MethodFault::Long));
    }
}
