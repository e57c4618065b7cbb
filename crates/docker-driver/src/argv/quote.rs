//! Quoting: for a shell, so that a shown command can be run again; and for
//! the comma separated values of `--mount`.

use std::borrow::Cow;

/// A word as a POSIX shell reads it back.
pub(crate) fn for_shell(word: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return Cow::Borrowed(word);
    }
    // Nothing is special between single quotes but the quote itself.
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Fields as one record of comma separated values, by the rules of the
/// `encoding/csv` that docker reads `--mount` with (RFC 4180).
pub(crate) fn csv<S: AsRef<str>>(fields: &[S]) -> String {
    let quoted: Vec<_> = fields
        .iter()
        .map(|field| csv_field(field.as_ref()))
        .collect();
    quoted.join(",")
}

fn csv_field(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}
