//! How many files go at a time.

use std::ops::Range;

use stockade::TransferLimits;

/// Most bytes of one batch, whatever more a sandbox allows: it is set aside
/// whole on its way, and a person sees progress once for each.
const BATCH_BYTES: u64 = 64 * 1024 * 1024;

/// Splits entries of these sizes into batches that keep the limits, in order.
/// An entry over the limits gets a batch of its own, which is then refused.
pub(crate) fn batches(
    sizes: impl IntoIterator<Item = u64>,
    limits: &TransferLimits,
) -> Vec<Range<usize>> {
    let most_bytes = limits.max_total_bytes.min(BATCH_BYTES);
    let most_files = usize::try_from(limits.max_files)
        .unwrap_or(usize::MAX)
        .max(1);
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0_u64;
    for (at, size) in sizes.into_iter().enumerate() {
        let total = bytes.saturating_add(size);
        match batches.last_mut() {
            Some(batch) if batch.len() < most_files && total <= most_bytes => {
                batch.end = at + 1;
                bytes = total;
            }
            _ => {
                batches.push(at..at + 1);
                bytes = size;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sizes: &[u64], bytes: u64, files: u64) -> Vec<Range<usize>> {
        batches(
            sizes.iter().copied(),
            &TransferLimits::new(bytes, bytes, files),
        )
    }

    #[test]
    fn a_batch_ends_where_the_next_entry_would_break_a_limit() {
        assert_eq!(split(&[], 10, 3), Vec::<Range<usize>>::new());
        assert_eq!(split(&[1, 1, 1, 1], 10, 3), [0..3, 3..4]);
        assert_eq!(split(&[6, 4, 1], 10, 3), [0..2, 2..3]);
        assert_eq!(split(&[11, 1], 10, 3), [0..1, 1..2]);
        assert_eq!(split(&[0; 5], 10, 5), [0..5; 1]);
    }

    #[test]
    fn every_entry_is_in_exactly_one_batch_and_every_batch_keeps_the_limits() {
        let sizes: Vec<u64> = (0..1000).map(|at| at * 7919 % 50_000).collect();
        let limits = TransferLimits::new(50_000, 100_000, 64);
        let batches = batches(sizes.iter().copied(), &limits);
        let mut next = 0;
        for batch in batches {
            assert_eq!(batch.start, next);
            assert!(batch.len() <= 64 && sizes[batch.clone()].iter().sum::<u64>() <= 100_000);
            next = batch.end;
        }
        assert_eq!(next, sizes.len());
    }

    #[test]
    fn files_of_the_largest_size_go_one_by_one() {
        let sizes = [64 * 1024 * 1024; 3];
        assert_eq!(batches(sizes, &TransferLimits::CEILING), [0..1, 1..2, 2..3]);
    }
}
