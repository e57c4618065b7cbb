//! Pax records: `length key=value`, in both directions.

use super::{ModifiedAt, TarError};

const NANOS: u32 = 1_000_000_000;

/// What records say of the entry that follows them.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) modified: Option<ModifiedAt>,
}

impl Overrides {
    /// Reads records. A later one counts, and an empty value takes an earlier
    /// one back.
    pub(super) fn read(&mut self, mut records: &[u8]) -> Result<(), TarError> {
        while !records.is_empty() {
            let (key, value, rest) = record(records).ok_or(TarError::BadRecord)?;
            self.take(key, value)?;
            records = rest;
        }
        Ok(())
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), TarError> {
        if key.starts_with(b"GNU.sparse.") {
            return Err(TarError::Sparse);
        }
        let given = !value.is_empty();
        let number = || given.then(|| decimal(value)).transpose();
        match key {
            b"path" => self.path = name(value)?,
            b"linkpath" => self.link = name(value)?,
            b"size" => self.size = number()?,
            b"uid" => self.uid = number()?,
            b"gid" => self.gid = number()?,
            b"mtime" => self.modified = given.then(|| moment(value)).transpose()?,
            // Everything else says nothing about what is where.
            _ => {}
        }
        Ok(())
    }
}

/// Checks records that say nothing about the next entry.
pub(super) fn check(mut records: &[u8]) -> Result<(), TarError> {
    while !records.is_empty() {
        (_, _, records) = record(records).ok_or(TarError::BadRecord)?;
    }
    Ok(())
}

/// Key and value of the first record, and what follows it.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(&records[..space]).ok()?).ok()?;
    if length > records.len() {
        return None;
    }
    let (record, rest) = records.split_at(length);
    let text = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = text.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&text[..equals], &text[equals + 1..]);
    (!key.is_empty()).then_some((key, value, rest))
}

fn name(value: &[u8]) -> Result<Option<Vec<u8>>, TarError> {
    match value {
        [] => Ok(None),
        name if name.contains(&0) => Err(TarError::NulInName),
        name => Ok(Some(name.to_vec())),
    }
}

/// Digits only: no sign, no space.
fn decimal(text: &[u8]) -> Result<u64, TarError> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| digits);
    text.and_then(|text| text.parse().ok())
        .ok_or(TarError::BadNumber)
}

/// `[-]seconds[.fraction]`. What is finer than a nanosecond is cut off.
fn moment(text: &[u8]) -> Result<ModifiedAt, TarError> {
    let (negative, text) = match text.strip_prefix(b"-") {
        Some(text) => (true, text),
        None => (false, text),
    };
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b"0"[..]),
    };
    let whole = i64::try_from(decimal(whole)?).map_err(|_| TarError::BadNumber)?;
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return Err(TarError::BadNumber);
    }
    let digits = fraction.iter().copied().chain(std::iter::repeat(b'0'));
    let nanos = digits
        .take(9)
        .fold(0, |nanos, digit| 10 * nanos + u32::from(digit - b'0'));
    Ok(match (negative, nanos) {
        (false, nanos) => ModifiedAt {
            seconds: whole,
            nanos,
        },
        (true, 0) => ModifiedAt {
            seconds: -whole,
            nanos: 0,
        },
        (true, nanos) => ModifiedAt {
            // It cannot overflow: the smallest is -i64::MAX - 1.
            seconds: -whole - 1,
            nanos: NANOS - nanos,
        },
    })
}

/// Adds one record.
pub(super) fn write(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    // The space, the equals sign and the line feed. The length counts itself,
    // and so is found in at most two steps.
    let without = key.len() + value.len() + 3;
    let mut length = without;
    while length != without + length.to_string().len() {
        length = without + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// A moment as the value of a record.
pub(super) fn moment_text(at: ModifiedAt) -> String {
    let ModifiedAt { seconds, nanos } = at;
    let (sign, whole, nanos) = match (seconds < 0, nanos) {
        (true, 1..) => ("-", (seconds + 1).unsigned_abs(), NANOS - nanos),
        (true, 0) => ("-", seconds.unsigned_abs(), 0),
        (false, nanos) => ("", seconds.unsigned_abs(), nanos),
    };
    let text = format!("{sign}{whole}.{nanos:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
