//! The grammar of image references.
//!
//! That of the distribution project (`reference/reference.go`), and image ids.

/// Most bytes of the name, its domain included.
const LONGEST_NAME: usize = 255;

/// Says what is wrong with a reference.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if is_sha256(text) {
        return Ok(());
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    if let Some(digest) = digest
        && !is_sha256(digest)
    {
        return Err("what follows `@` is not `sha256:` and 64 hexadecimal digits".to_owned());
    }
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last..].rfind(':') {
        Some(colon) => (&rest[..last + colon], Some(&rest[last + colon + 1..])),
        None => (rest, None),
    };
    if let Some(tag) = tag
        && !is_tag(tag)
    {
        return Err("its tag is not 1 to 128 letters, digits, `_`, `.` or `-`".to_owned());
    }
    check_name(name)
}

/// The digest that a well-formed reference names after `@`.
pub(super) fn digest(text: &str) -> Option<&str> {
    text.split_once('@').map(|(_, digest)| digest)
}

/// Whether the text is `sha256:` and 64 lower-case hexadecimal digits.
pub(super) fn is_sha256(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn check_name(name: &str) -> Result<(), String> {
    if name.len() > LONGEST_NAME {
        return Err(format!("its name is longer than {LONGEST_NAME} bytes"));
    }
    // The first component is a domain only when it cannot be a path component.
    let path = match name.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':']) || first == "localhost" || has_upper(first) =>
        {
            if !is_domain(first) {
                return Err("its registry is no host name with an optional port".to_owned());
            }
            rest
        }
        _ => name,
    };
    if path.split('/').all(is_path_component) {
        return Ok(());
    }
    Err(if has_upper(path) {
        "its name has upper-case letters, which image names never have".to_owned()
    } else {
        "its name is not lower-case letters and digits joined by `.`, `_`, `__`, `-` or `/`"
            .to_owned()
    })
}

fn has_upper(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    let port_fits = port.is_none_or(|port| {
        (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit())
    });
    port_fits && (is_bracketed(host) || host.split('.').all(is_label))
}

/// An IPv6 address in brackets.
fn is_bracketed(host: &str) -> bool {
    host.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Letters and digits, joined by one `.`, one or two `_`, or any number of `-`.
fn is_path_component(component: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends_in_words =
        bytes.first().is_some_and(|b| is_word(*b)) && bytes.last().is_some_and(|b| is_word(*b));
    ends_in_words
        && component
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(|between| {
                matches!(between, "" | "." | "_" | "__") || between.bytes().all(|b| b == b'-')
            })
}
