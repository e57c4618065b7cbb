//! What probes write and read.

use stockade::TransferLimits;

use crate::probe::{Stop, Verdict};

/// Sizes at which something has gone wrong somewhere: nothing, one, around a
/// tar block, a tar record, two pages and a half, around 64 KiB, and 1 MiB.
pub(super) const SIZES: [usize; 10] = [
    0, 1, 511, 512, 513, 10_240, 18_432, 65_535, 65_536, 1_048_576,
];

/// Every byte value, text of several bytes a character, a replacement
/// character, all sorts of line ends, and a character that is cut off.
pub(super) fn binary() -> Vec<u8> {
    let mut content: Vec<u8> = (0..=u8::MAX).collect();
    content.extend("grün 漢字 🦀 \u{fffd} line\r\nline\nline\r".bytes());
    content.extend(&"漢".as_bytes()[..2]);
    content
}

/// So many bytes, in which no stretch repeats soon.
pub(super) fn bytes(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    std::iter::repeat_with(next).take(size).collect()
}

/// A name of every byte that may be in one: 253 of them.
pub(super) fn every_legal_byte() -> Vec<u8> {
    let all = 1..=u8::MAX;
    all.filter(|byte| !b"/\\".contains(byte)).collect()
}

/// Names that are traps for what takes them for options, patterns or text.
pub(super) fn trap_names() -> Vec<Vec<u8>> {
    let traps: [&[u8]; 9] = [
        b"-rf",
        b"--",
        b" both sides ",
        b"*",
        b"two\nlines",
        b"$(id)",
        b"...",
        b"\xff\xfe",
        b"tab\tand'quote\"",
    ];
    traps.iter().map(|name| name.to_vec()).collect()
}

/// Skips the probe unless the spec has room for it.
pub(super) fn room(limits: &TransferLimits, files: u64, file: u64, total: u64) -> Verdict {
    if TransferLimits::new(file, total, files).within(limits) {
        return Ok(());
    }
    Err(Stop::Skipped(format!(
        "the spec must allow {files} files, {file} bytes a file and {total} in all"
    )))
}
