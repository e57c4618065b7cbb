//! Keeps output within a bound: the start, and the end where that is asked for.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};

use super::outcome::Gap;
use super::process::{OutputChunk, StreamName};
use super::request::AtOutputLimit;

/// What is kept of both outputs.
///
/// The start is shared by both, first come first served. The end is kept of
/// each on its own, and shared out at last, so that a flood on one output
/// does not push the last words of the other away. Never holds more than
/// one and a quarter of the limit, however small the pieces are.
pub(super) struct Kept {
    head_left: usize,
    tail_most: usize,
    outputs: [Output; 2],
}

#[derive(Default)]
struct Output {
    head: BytesMut,
    tail: VecDeque<u8>,
    total: u64,
}

/// What is left of one output.
pub(super) struct Rest {
    pub(super) bytes: Bytes,
    pub(super) gap: Option<Gap>,
}

impl Kept {
    pub(super) fn new(limit: u64, rule: AtOutputLimit) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let tail_most = match rule {
            AtOutputLimit::End => 0,
            AtOutputLimit::KeepHeadAndTail => limit / 4,
        };
        Self {
            head_left: limit - tail_most,
            tail_most,
            outputs: Default::default(),
        }
    }

    /// Takes a piece in; false when a part of it was left out for good.
    pub(super) fn push(&mut self, chunk: &OutputChunk) -> bool {
        let output = &mut self.outputs[place(chunk.stream)];
        output.total += chunk.bytes.len() as u64;
        let to_head = chunk.bytes.len().min(self.head_left);
        let (head, rest) = chunk.bytes.split_at(to_head);
        self.head_left -= to_head;
        output.head.put_slice(head);
        let newest = &rest[rest.len().saturating_sub(self.tail_most)..];
        output.tail.extend(newest);
        let excess = output.tail.len().saturating_sub(self.tail_most);
        output.tail.drain(..excess);
        newest.len() == rest.len() && excess == 0
    }

    /// What is left of standard output and standard error.
    pub(super) fn finish(mut self) -> (Rest, Rest) {
        let [stdout, stderr] = &mut self.outputs;
        // Each may have half; what one does not need is the other's.
        let half = self.tail_most / 2;
        let stderr_share = stderr
            .tail
            .len()
            .min((self.tail_most - half).max(self.tail_most.saturating_sub(stdout.tail.len())));
        let stdout_share = self.tail_most - stderr_share;
        (stdout.finish(stdout_share), stderr.finish(stderr_share))
    }
}

impl Output {
    fn finish(&mut self, share: usize) -> Rest {
        let excess = self.tail.len().saturating_sub(share);
        self.tail.drain(..excess);
        let kept = self.head.len() + self.tail.len();
        let left_out = self.total - kept as u64;
        let gap = (left_out > 0).then_some(Gap {
            at: self.head.len(),
            bytes: left_out,
        });
        let (older, newer) = self.tail.as_slices();
        self.head.put_slice(older);
        self.head.put_slice(newer);
        Rest {
            bytes: std::mem::take(&mut self.head).freeze(),
            gap,
        }
    }
}

fn place(stream: StreamName) -> usize {
    match stream {
        StreamName::Stdout => 0,
        StreamName::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(stream: StreamName, bytes: &[u8]) -> OutputChunk {
        OutputChunk {
            stream,
            bytes: Bytes::copy_from_slice(bytes),
        }
    }

    fn keep(limit: u64, rule: AtOutputLimit, chunks: &[OutputChunk]) -> (Rest, Rest) {
        let mut kept = Kept::new(limit, rule);
        for chunk in chunks {
            kept.push(chunk);
        }
        kept.finish()
    }

    #[test]
    fn three_quarters_are_kept_from_the_start_and_one_from_the_end() {
        let chunks = [chunk(StreamName::Stdout, b"0123456789abcdef")];
        let (stdout, stderr) = keep(8, AtOutputLimit::KeepHeadAndTail, &chunks);
        assert_eq!(&stdout.bytes[..], b"012345ef");
        assert_eq!(stdout.gap, Some(Gap { at: 6, bytes: 8 }));
        assert!(stderr.bytes.is_empty() && stderr.gap.is_none());
    }

    #[test]
    fn a_flood_on_one_output_leaves_the_last_words_of_the_other() {
        let chunks = [
            chunk(StreamName::Stdout, &[b'x'; 100]),
            chunk(StreamName::Stderr, b"why"),
            chunk(StreamName::Stdout, &[b'y'; 100]),
        ];
        let (stdout, stderr) = keep(40, AtOutputLimit::KeepHeadAndTail, &chunks);
        assert_eq!(&stderr.bytes[..], b"why");
        assert_eq!(stdout.bytes.len(), 37);
    }

    #[test]
    fn at_the_end_rule_the_first_bytes_of_both_are_kept() {
        let mut kept = Kept::new(4, AtOutputLimit::End);
        assert!(kept.push(&chunk(StreamName::Stdout, b"ab")));
        assert!(kept.push(&chunk(StreamName::Stderr, b"cd")));
        assert!(!kept.push(&chunk(StreamName::Stdout, b"e")));
        let (stdout, stderr) = kept.finish();
        assert_eq!(
            (&stdout.bytes[..], &stderr.bytes[..]),
            (&b"ab"[..], &b"cd"[..])
        );
        assert_eq!(stdout.gap, Some(Gap { at: 2, bytes: 1 }));
        assert_eq!(stderr.gap, None);
    }

    fn pieces() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
        prop::collection::vec(
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)),
            0..20,
        )
    }

    proptest! {
        #[test]
        fn what_is_kept_is_the_start_and_the_end_of_each_output(
            pieces in pieces(),
            limit in 0_u64..200,
            keep_tail in any::<bool>(),
        ) {
            let rule = if keep_tail { AtOutputLimit::KeepHeadAndTail } else { AtOutputLimit::End };
            let mut whole = [Vec::new(), Vec::new()];
            let chunks: Vec<OutputChunk> = pieces.iter().map(|(to_stderr, bytes)| {
                whole[usize::from(*to_stderr)].extend_from_slice(bytes);
                let stream = if *to_stderr { StreamName::Stderr } else { StreamName::Stdout };
                chunk(stream, bytes)
            }).collect();
            let (stdout, stderr) = keep(limit, rule, &chunks);
            let kept = stdout.bytes.len() + stderr.bytes.len();
            let total = whole[0].len() + whole[1].len();
            prop_assert_eq!(kept, total.min(limit as usize), "as much as fits, and no more");
            for (rest, whole) in [(stdout, &whole[0]), (stderr, &whole[1])] {
                let at = rest.gap.map_or(rest.bytes.len(), |gap| gap.at);
                let (head, tail) = rest.bytes.split_at(at);
                prop_assert!(whole.starts_with(head));
                prop_assert!(whole.ends_with(tail));
                let left_out = rest.gap.map_or(0, |gap| gap.bytes);
                prop_assert_eq!(rest.bytes.len() as u64 + left_out, whole.len() as u64);
            }
        }
    }
}
