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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads one record by RFC 4180, as `encoding/csv` of Go does: a quote is
    /// special only at the start of a field.
    fn read(record: &str) -> Vec<String> {
        let mut fields = Vec::new();
        let mut rest = record;
        loop {
            let (field, after) = match rest.strip_prefix('"') {
                Some(quoted) => read_quoted(quoted),
                None => {
                    let end = rest.find(',').unwrap_or(rest.len());
                    assert!(!rest[..end].contains('"'), "a bare quote: {record:?}");
                    (rest[..end].to_owned(), &rest[end..])
                }
            };
            fields.push(field);
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => {
                    assert_eq!(after, "", "something after a quote: {record:?}");
                    return fields;
                }
            }
        }
    }

    fn read_quoted(mut rest: &str) -> (String, &str) {
        let mut field = String::new();
        loop {
            let end = rest.find('"').expect("a quote that is closed");
            field.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            match rest.strip_prefix('"') {
                Some(after) => {
                    field.push('"');
                    rest = after;
                }
                None => return (field, rest),
            }
        }
    }

    proptest! {
        #[test]
        fn a_record_is_read_back_as_the_same_fields(
            fields in prop::collection::vec("[ab=,\"' \\PC]{0,12}", 1..6),
        ) {
            prop_assert_eq!(read(&csv(&fields)), fields);
        }
    }

    #[test]
    fn only_fields_that_need_it_are_quoted() {
        assert_eq!(
            csv(&["type=volume", "o=a,b", "l=\"x\""]),
            "type=volume,\"o=a,b\",\"l=\"\"x\"\"\""
        );
    }

    #[test]
    fn only_words_that_need_it_are_quoted() {
        assert_eq!(for_shell("--name=a/b:c"), "--name=a/b:c");
        assert_eq!(for_shell(""), "''");
        assert_eq!(for_shell("it's"), r"'it'\''s'");
        assert_eq!(for_shell("a b"), "'a b'");
        assert_eq!(for_shell("{{json .}}"), "'{{json .}}'");
    }
}
