//! What a command is called where people look.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use stockade_wire::Text;
use stockade_wire::inquiry::PROGRAM;

/// The first word of a command's arguments, fit to be shown: bounded, text,
/// and nothing in it that a terminal obeys. Of the other words nothing is kept;
/// they can hold secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FirstWord(String);

impl FirstWord {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&[u8]> for FirstWord {
    fn from(bytes: &[u8]) -> Self {
        let mut word = String::new();
        for char in String::from_utf8_lossy(bytes).chars() {
            let shown = match char.is_control() {
                true => char::REPLACEMENT_CHARACTER,
                false => char,
            };
            if word.len() + shown.len_utf8() > PROGRAM {
                break;
            }
            word.push(shown);
        }
        Self(word)
    }
}

impl<'de> Deserialize<'de> for FirstWord {
    /// Reads a list of words.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl<'de> Visitor<'de> for Words {
            type Value = FirstWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of words")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<FirstWord, A::Error> {
                let first: Option<Text> = words.next_element()?;
                while words.next_element::<IgnoredAny>()?.is_some() {}
                Ok(FirstWord::from(first.unwrap_or_default().as_bytes()))
            }
        }

        deserializer.deserialize_seq(Words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_word_is_kept() {
        for (json, word) in [
            (r#"["ls"]"#, "ls"),
            (r#"["curl","--token","s3cret"]"#, "curl"),
            ("[]", ""),
            (r#"[[97,255,98],"x"]"#, "a\u{fffd}b"),
        ] {
            let found: FirstWord = serde_json::from_str(json).unwrap();
            assert_eq!(found.as_str(), word);
        }
        for json in [r#""ls""#, "[1]", "{}"] {
            assert!(serde_json::from_str::<FirstWord>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_word_is_bounded_and_has_nothing_that_a_terminal_obeys() {
        let hostile = b"\x1b]0;x\x07\n\"\\\xff".repeat(100);
        let word = FirstWord::from(hostile.as_slice());
        assert!(word.as_str().len() <= PROGRAM);
        assert!(!word.as_str().chars().any(char::is_control));
        let wide = "\u{e9}".repeat(100);
        assert_eq!(FirstWord::from(wide.as_bytes()).as_str().len(), PROGRAM);
        let odd = format!("a{wide}");
        assert_eq!(FirstWord::from(odd.as_bytes()).as_str().len(), PROGRAM - 1);
    }
}
