//! What an engine needs to remap the user ids of its containers.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The value of `userns-remap` that means [`USER`].
pub(super) const DEFAULT: &str = "default";

/// The user whose ranges the engine then takes. It would make it with programs
/// that the root file system does not have.
const USER: &str = "dockremap";

/// Inside the root file system, who it is, and which ids stand for those of its containers.
const LINES: [(&str, &str); 4] = [
    ("etc/passwd", "x:989:989::/nonexistent:/usr/sbin/nologin"),
    ("etc/group", "x:989:"),
    ("etc/subuid", "231072:65536"),
    ("etc/subgid", "231072:65536"),
];

/// Writes the user and its ranges, as far as they are not there.
pub(super) fn prepare(root: &Path) -> Result<()> {
    write(root, USER, &LINES)
}

/// Writes these lines of a user into these files of a root file system, as far as they are not
/// there.
pub(super) fn write(root: &Path, user: &str, lines: &[(&str, &str)]) -> Result<()> {
    for (file, line) in lines {
        let path = root.join(file);
        let text = match fs::read_to_string(&path) {
            Err(why) if why.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| path.display().to_string())?,
        };
        if let Some(text) = with_line(&text, user, line) {
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

/// The text with a line for the user, unless it has one.
fn with_line(text: &str, user: &str, line: &str) -> Option<String> {
    let name = format!("{user}:");
    if text.lines().any(|found| found.starts_with(&name)) {
        return None;
    }
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Some(format!("{text}{end}{name}{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_written_once_and_on_a_line_of_its_own() {
        let once = with_line("root:x:0:", USER, "x:989:").expect("it is not there");
        assert_eq!(once, "root:x:0:\ndockremap:x:989:\n");
        assert_eq!(with_line(&once, USER, "x:989:"), None);
        assert_eq!(
            with_line("", USER, "1:2").as_deref(),
            Some("dockremap:1:2\n")
        );
    }
}
