//! How much room arguments and variables take on their way into a sandbox.
//!
//! A request travels as JSON and may have 1 MiB; the kernel takes no single
//! argument or variable of more than 32 pages. Counting here, before anything
//! is sent, makes a request that is too long the caller's typed fault instead
//! of a failure half-way.

/// Most bytes of one argument, and of one `NAME=value`.
///
/// Linux: `MAX_ARG_STRLEN`, 32 pages of 4 KiB, less the terminating NUL.
pub(crate) const ARGUMENT_BYTES: usize = 131_071;

/// What stands around one value in JSON, at most: quotes, comma, brackets.
const AROUND: usize = 8;

/// Bytes of an argument as JSON, at most.
pub(crate) fn argument(bytes: &[u8]) -> usize {
    AROUND + value(bytes)
}

/// Bytes of a variable as JSON, at most.
pub(crate) fn variable(name: &str, value_bytes: &[u8]) -> usize {
    AROUND + value(name.as_bytes()) + value(value_bytes)
}

/// What is wrong with a variable, and what to do.
pub(crate) fn variable_fault(name: &str, value: &[u8]) -> Option<(&'static str, &'static str)> {
    if name.is_empty() {
        return Some(("a name is empty", "name the variable"));
    }
    if name.contains(['=', '\0']) {
        return Some((
            "the name holds `=` or NUL, which no variable's name can",
            "give name and value apart",
        ));
    }
    if value.contains(&0) {
        return Some((
            "the value holds a NUL, which no variable can",
            "pass binary data on standard input or as a file",
        ));
    }
    if name.len() + 1 + value.len() > ARGUMENT_BYTES {
        return Some((
            "name and value together are longer than the 131071 bytes that the kernel takes",
            "pass large values on standard input or as files",
        ));
    }
    None
}

/// Text with its escapes; a list of numbers when it is not UTF-8.
fn value(bytes: &[u8]) -> usize {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return bytes.iter().map(|byte| digits(*byte) + 1).sum();
    };
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => 2,
            0..0x20 | 0x7f => 6,
            _ => 1,
        })
        .sum()
}

fn digits(byte: u8) -> usize {
    match byte {
        0..10 => 1,
        10..100 => 2,
        100.. => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_bytes_that_are_no_text_count_as_they_are_written() {
        assert_eq!(value(b"abc"), 3);
        assert_eq!(value("é".as_bytes()), 2);
        assert_eq!(value(b"\"\\\n"), 2 + 2 + 6);
        assert_eq!(value(&[0xff, 7, 42]), "255,7,42,".len());
    }

    #[test]
    fn a_variable_is_as_long_as_the_kernel_sees_it() {
        let value = vec![b'x'; ARGUMENT_BYTES - 2];
        assert_eq!(variable_fault("A", &value), None);
        assert!(variable_fault("AB", &value).is_some());
    }
}
