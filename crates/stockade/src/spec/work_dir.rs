//! The work directory's path.

use std::fmt;

/// Where a sandbox's own paths live, and the engine's.
const TAKEN: [&str; 5] = ["/proc", "/sys", "/dev", "/tmp", "/.stockade"];

/// Most bytes of the path.
const LONGEST: usize = 1024;

/// The directory of the guest in which commands start and files are kept.
///
/// Absolute, without NUL, backslash, control characters, doubled or trailing
/// slashes and dot segments, at most 1024 bytes; not `/`, and not at or under
/// `/proc`, `/sys`, `/dev`, `/tmp` or `/.stockade`. The default is `/work`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkDir(String);

impl WorkDir {
    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory of a text, or what is wrong and what to do.
    pub(super) fn parse(text: &str) -> Result<Self, (&'static str, &'static str)> {
        const SPELL: &str = "write it like `/work`";
        if !text.starts_with('/') {
            return Err(("it is not absolute", SPELL));
        }
        if text.contains('\\') || text.chars().any(char::is_control) {
            return Err(("it holds a NUL, a control character or a backslash", SPELL));
        }
        if text.len() > LONGEST {
            return Err(("it is longer than 1024 bytes", "choose a shorter one"));
        }
        if text == "/" {
            return Err((
                "it is the root, where the image's content is",
                "choose a directory below it, like `/work`",
            ));
        }
        let mut segments = text[1..].split('/');
        if segments.any(|segment| matches!(segment, "" | "." | "..")) {
            return Err((
                "it has a doubled or trailing slash, or a `.` or `..` segment",
                SPELL,
            ));
        }
        if TAKEN.iter().any(|taken| is_at_or_under(text, taken)) {
            return Err((
                "it is at or under /proc, /sys, /dev, /tmp or /.stockade, which are mounts already",
                "choose another directory, like `/work`",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Default for WorkDir {
    fn default() -> Self {
        Self("/work".to_owned())
    }
}

impl fmt::Display for WorkDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a path is a directory or below it.
pub(super) fn is_at_or_under(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
