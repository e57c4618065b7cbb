//! What is asked of the tar decoder, whatever it is fed. Shared by the fuzz
//! target and by the test that replays its corpus on a stable compiler.

use bytes::Bytes;
use docker_driver::tar::{Decoder, Event, TarError};

/// Longest name or link: all that may be said of one entry.
const LONGEST: usize = 64 * 1024;

/// Decodes `data` whole, and in pieces whose size its first byte chooses:
/// both give the same, and nothing that was not there. Where that byte is odd,
/// every block gets the checksum of a header first, which no fuzzer finds.
///
/// # Panics
///
/// When the decoder breaks one of its promises.
pub(crate) fn tar(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else {
        return;
    };
    let repaired;
    let stream = match first % 2 {
        0 => stream,
        _ => {
            repaired = repaired_of(stream);
            &repaired[..]
        }
    };
    let pieces = decode(stream, 1 + 7 * usize::from(*first));
    let whole = decode(stream, stream.len().max(1));
    assert_eq!(pieces, whole);
}

fn repaired_of(stream: &[u8]) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for block in stream.chunks_exact_mut(512) {
        if block.iter().all(|byte| *byte == 0) {
            continue;
        }
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    }
    stream
}

fn decode(stream: &[u8], piece: usize) -> (Vec<Event>, Result<(), TarError>) {
    let mut decoder = Decoder::new();
    let mut events = Vec::new();
    let (mut announced, mut left) = (0, 0_u64);
    for piece in stream.chunks(piece) {
        decoder.feed(Bytes::copy_from_slice(piece));
        loop {
            match decoder.next() {
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.finish(), Err(error));
                    return (events, Err(error));
                }
                Ok(Some(Event::Data(new))) => {
                    assert!(!new.is_empty());
                    left = left
                        .checked_sub(new.len() as u64)
                        .expect("no more than was announced");
                    match events.last_mut() {
                        Some(Event::Data(data)) => *data = [&data[..], &new[..]].concat().into(),
                        _ => events.push(Event::Data(new)),
                    }
                }
                Ok(Some(event)) => {
                    match &event {
                        Event::Entry(entry) => {
                            assert!(!entry.path.is_empty() && !entry.path.contains(&0));
                            assert!(entry.path.len() <= LONGEST && entry.link.len() <= LONGEST);
                            announced += 1;
                            left = entry.size;
                        }
                        Event::EntryEnd => assert_eq!(left, 0, "the body is complete"),
                        _ => {}
                    }
                    events.push(event);
                }
            }
        }
    }
    // Every entry has cost a block.
    assert!(announced * 512 <= stream.len());
    (events, decoder.finish())
}
