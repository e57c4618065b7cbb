//! Names that may stand as a word of their own. None can start with a dash,
//! so none can be read as an option.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Longest name of a container or volume that is accepted, in bytes.
const LONGEST_NAME: usize = 255;
/// Longest image reference, path, label or environment name, in bytes.
const LONGEST_TEXT: usize = 4096;

/// A text that docker would read as something else, or refuse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {shown:?} is not valid: {why}")]
pub struct InvalidName {
    what: &'static str,
    shown: String,
    why: &'static str,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        // An error message is no place for a megabyte.
        let shown = text.chars().take(80).collect();
        Self { what, shown, why }
    }

    /// What kind of name was asked for, for instance `container name`.
    pub fn what(&self) -> &'static str {
        self.what
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// Checks and takes the text.
            ///
            /// # Errors
            ///
            /// What is wrong with it.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                match $check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(why) => Err(InvalidName::new($what, &text, why)),
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = InvalidName;

            fn try_from(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    };
}

name! {
    /// A container's name: `[a-zA-Z0-9][a-zA-Z0-9_.-]+`, as the engine demands.
    ContainerName, "container name", object_name
}
name! {
    /// A container's full id: 64 lower-case hexadecimal digits.
    ContainerId, "container id", hex_64
}
name! {
    /// A volume's name: `[a-zA-Z0-9][a-zA-Z0-9_.-]+`, as the engine demands.
    VolumeName, "volume name", object_name
}
name! {
    /// An image: `name[:tag][@digest]`, or an id. What the engine makes of it
    /// is the engine's to say; here it is only one harmless word.
    ImageRef, "image reference", word
}
name! {
    /// An image's id: `sha256:` and 64 lower-case hexadecimal digits.
    ImageId, "image id", sha_256
}
name! {
    /// A platform: `os[/architecture[/variant]]`.
    Platform, "platform", word
}

/// An absolute path inside a container.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerPath(Vec<u8>);

impl ContainerPath {
    const WHAT: &str = "container path";

    /// `/`.
    pub fn root() -> Self {
        Self(b"/".to_vec())
    }

    /// Checks and takes a text.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidName> {
        let text = text.into();
        match absolute_path(&text) {
            Ok(()) => Ok(Self(text.into_bytes())),
            Err(why) => Err(InvalidName::new(Self::WHAT, &text, why)),
        }
    }

    /// Checks and takes bytes: any but NUL. Copies carry them exactly; in
    /// anything else, docker itself replaces what is not UTF-8.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidName> {
        let bytes = bytes.into();
        let why = if !bytes.starts_with(b"/") {
            "it is not absolute"
        } else if bytes.len() > LONGEST_TEXT {
            "it is longer than 4096 bytes"
        } else if bytes.contains(&0) {
            "it holds NUL"
        } else {
            return Ok(Self(bytes));
        };
        let shown = String::from_utf8_lossy(&bytes);
        Err(InvalidName::new(Self::WHAT, &shown, why))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn is_text(&self) -> bool {
        std::str::from_utf8(&self.0).is_ok()
    }
}

impl fmt::Display for ContainerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for ContainerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

impl FromStr for ContainerPath {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl TryFrom<&str> for ContainerPath {
    type Error = InvalidName;

    fn try_from(text: &str) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

/// A container, by name or by id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContainerRef {
    /// By the name that it has now.
    Name(ContainerName),
    /// By the id that it has for ever.
    Id(ContainerId),
}

impl ContainerRef {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Name(name) => name.as_str(),
            Self::Id(id) => id.as_str(),
        }
    }
}

impl fmt::Display for ContainerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ContainerName> for ContainerRef {
    fn from(name: ContainerName) -> Self {
        Self::Name(name)
    }
}

impl From<ContainerId> for ContainerRef {
    fn from(id: ContainerId) -> Self {
        Self::Id(id)
    }
}

impl From<&ContainerName> for ContainerRef {
    fn from(name: &ContainerName) -> Self {
        Self::Name(name.clone())
    }
}

impl From<&ContainerId> for ContainerRef {
    fn from(id: &ContainerId) -> Self {
        Self::Id(id.clone())
    }
}

/// A label and its value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    key: String,
    value: String,
}

impl Label {
    /// Checks and takes both parts. Values may be empty and may hold anything
    /// but control characters.
    ///
    /// # Errors
    ///
    /// What is wrong with which part.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Result<Self, InvalidName> {
        let (key, value) = (key.into(), value.into());
        if key.contains('=') {
            return Err(InvalidName::new("label key", &key, "it holds `=`"));
        }
        word(&key).map_err(|why| InvalidName::new("label key", &key, why))?;
        printable(&value).map_err(|why| InvalidName::new("label value", &value, why))?;
        Ok(Self { key, value })
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A label whose value no other creation has. It is put on what is created,
/// so that an undo finds exactly what this call made, whatever became of the
/// docker client that was to tell us its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreationMark(Label);

impl CreationMark {
    /// Takes a label; that its value is unique is the caller's promise.
    pub fn new(unique: Label) -> Self {
        Self(unique)
    }

    /// The label.
    pub fn label(&self) -> &Label {
        &self.0
    }
}

fn object_name(text: &str) -> Result<(), &'static str> {
    let word = |byte: u8| byte.is_ascii_alphanumeric();
    match text.as_bytes() {
        [] | [_] => Err("it has fewer than two characters"),
        long if long.len() > LONGEST_NAME => Err("it is longer than 255 bytes"),
        [first, ..] if !word(*first) => Err("it does not start with a letter or digit"),
        all if all.iter().all(|byte| word(*byte) || b"_.-".contains(byte)) => Ok(()),
        _ => Err("only letters, digits, `_`, `.` and `-` are allowed"),
    }
}

fn hex_64(text: &str) -> Result<(), &'static str> {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(digit) {
        Ok(())
    } else {
        Err("it is not 64 lower-case hexadecimal digits")
    }
}

fn sha_256(text: &str) -> Result<(), &'static str> {
    match text.strip_prefix("sha256:") {
        Some(digits) => hex_64(digits),
        None => Err("it does not start with `sha256:`"),
    }
}

fn word(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("it is empty")
    } else if text.starts_with('-') {
        Err("it starts with `-`")
    } else if text.len() > LONGEST_TEXT {
        Err("it is longer than 4096 bytes")
    } else if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        Err("it holds white space or a control character")
    } else {
        Ok(())
    }
}

fn absolute_path(text: &str) -> Result<(), &'static str> {
    if text.starts_with('/') {
        printable(text)
    } else {
        Err("it is not absolute")
    }
}

fn printable(text: &str) -> Result<(), &'static str> {
    if text.len() > LONGEST_TEXT {
        Err("it is longer than 4096 bytes")
    } else if text.chars().any(char::is_control) {
        Err("it holds a control character")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_are_those_that_the_engine_takes() {
        for name in ["ab", "a1", "0-a", "stockade-0123456789ab", "A.b_c-d"] {
            assert!(ContainerName::new(name).is_ok(), "{name}");
        }
        let long = "a".repeat(256);
        for name in [
            "", "a", "-ab", "_ab", ".ab", "a b", "a/b", "a=b", "\u{e9}a", "ab\n", "ab\0", &long,
        ] {
            assert!(ContainerName::new(name).is_err(), "{name:?}");
            assert!(VolumeName::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_id_is_full_or_none() {
        let id = "0123456789abcdef".repeat(4);
        assert!(ContainerId::new(id.as_str()).is_ok());
        for wrong in [
            "",
            "0123456789ab",
            &id[1..],
            &id.to_uppercase(),
            &format!("{id}0"),
            &format!("{id}\n"),
        ] {
            assert!(ContainerId::new(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_image_is_one_harmless_word() {
        for image in ["a", "registry.example:5000/a/b:1@sha256:00", "sha256:00"] {
            assert!(ImageRef::new(image).is_ok(), "{image}");
        }
        for image in [
            "",
            "-a",
            "--privileged",
            "a b",
            "a\tb",
            "a\n",
            "a\u{a0}b",
            "a\0",
        ] {
            assert!(ImageRef::new(image).is_err(), "{image:?}");
        }
    }

    #[test]
    fn a_path_is_absolute_and_printable() {
        assert!(ContainerPath::new("/a b/\u{e9},:").is_ok());
        for path in [
            "",
            "a",
            "./a",
            "-",
            "/a\nb",
            "/a\0",
            &format!("/{}", "a".repeat(5000)),
        ] {
            assert!(ContainerPath::new(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_path_of_bytes_is_absolute_and_has_no_nul() {
        let path = ContainerPath::from_bytes(&b"/a\n\xff: -"[..]).unwrap();
        assert_eq!(path.as_bytes(), b"/a\n\xff: -");
        assert_eq!(path.to_string(), "/a\n\u{fffd}: -");
        let long = [&b"/"[..], &[b'a'; 4096]].concat();
        for path in [&b""[..], b"a", b"-", b"/a\0", &long] {
            assert!(ContainerPath::from_bytes(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_label_has_a_key_without_an_equals_sign_and_any_printable_value() {
        assert!(Label::new("a.b/c", "x = \"y\", z").is_ok());
        assert!(Label::new("a", "").is_ok());
        for (key, value) in [
            ("", "x"),
            ("a=b", "x"),
            ("-a", "x"),
            ("a b", "x"),
            ("a", "x\ny"),
        ] {
            assert!(Label::new(key, value).is_err(), "{key:?} {value:?}");
        }
    }

    #[test]
    fn an_error_quotes_a_bounded_part() {
        let error = ContainerName::new("\u{7}".repeat(100_000)).unwrap_err();
        assert!(error.to_string().len() < 600);
        assert_eq!(error.what(), "container name");
    }
}
