//! What was asked for and did not come, or could not land.

use std::fmt;
use std::path::Path;

use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt as _;

use crate::report;

/// One such thing, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmet {
    /// As bytes: a path of the sandbox, a pattern, or a path of the host.
    path: Vec<u8>,
    /// A fixed word for scripts, as of [`stockade::FileRefusal::code`].
    reason: &'static str,
    /// The whole sentence, for people.
    text: String,
}

impl Unmet {
    /// In the sandbox.
    pub(crate) fn guest(
        path: impl AsRef<[u8]>,
        reason: &'static str,
        text: impl Into<String>,
    ) -> Self {
        Self {
            path: path.as_ref().to_vec(),
            reason,
            text: text.into(),
        }
    }

    /// On the host.
    pub(crate) fn host(path: &Path, reason: &'static str, text: impl Into<String>) -> Self {
        Self::guest(path.as_os_str().as_bytes(), reason, text)
    }

    /// The object that says it.
    pub(crate) fn object(&self) -> Value {
        json!({
            "path": report::text(&self.path),
            "reason": self.reason,
            "message": self.text,
        })
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_path_and_reason_and_a_person_the_sentence() {
        let unmet = Unmet::guest(b"a\xff", "file_missing", "`a?` is not there");
        let object = unmet.object();
        assert_eq!(object["path"], json!({ "base64": "Yf8=" }));
        assert_eq!(object["reason"], "file_missing");
        assert_eq!(object["message"], unmet.to_string());
    }
}
