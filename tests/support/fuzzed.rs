//! The bodies of the fuzz targets, so that their corpora can be replayed by
//! an ordinary test on a stable compiler.

use stockade_wire::files::{Answer, Batch, Item};
use stockade_wire::frame::{EndReason, Grant};
use stockade_wire::inquiry::{Activity, Inquiry, Retired};
use stockade_wire::limits::FRAME_PAYLOAD;
use stockade_wire::message::{
    self, Exit, Facts, Goodbye, Hello, KilledAll, Start, Started, Welcome,
};
use stockade_wire::{Decoder, Frame, Kind, encode};

/// Decodes `data` in pieces whose sizes the data itself chooses, parses each
/// payload as what its kind says, and checks that what was decoded encodes to
/// the bytes that were consumed.
///
/// # Panics
///
/// When the codec breaks one of its promises.
pub fn frames(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let piece = usize::from(*first) + 1;
    let mut decoder = Decoder::new();
    let mut again = Vec::new();
    for chunk in rest.chunks(piece) {
        decoder.buffer().extend_from_slice(chunk);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    assert!(frame.payload.len() <= FRAME_PAYLOAD);
                    parse(&frame);
                    encode(frame.kind, frame.run, &frame.payload, &mut again);
                }
                Ok(None) => break,
                Err(_) => {
                    assert!(rest.starts_with(&again));
                    return;
                }
            }
        }
        assert!(decoder.buffer().len() <= FRAME_PAYLOAD + stockade_wire::frame::HEADER + piece);
    }
    assert!(rest.starts_with(&again));
}

fn parse(frame: &Frame) {
    let (kind, payload) = (frame.kind, &frame.payload[..]);
    match kind {
        Kind::Hello => drop(message::from_payload::<Hello>(kind, payload)),
        Kind::Welcome => drop(message::from_payload::<Welcome>(kind, payload)),
        Kind::KilledAll => drop(message::from_payload::<KilledAll>(kind, payload)),
        Kind::Goodbye => drop(message::from_payload::<Goodbye>(kind, payload)),
        Kind::Start | Kind::StartMore => drop(message::from_payload::<Start>(kind, payload)),
        Kind::Started => drop(message::from_payload::<Started>(kind, payload)),
        Kind::Exit => drop(message::from_payload::<Exit>(kind, payload)),
        Kind::Credit => drop(Grant::from_payload(payload)),
        Kind::End => drop(EndReason::from_payload(payload)),
        Kind::Inquiry => {
            if let Ok(inquiry) = message::from_payload::<Inquiry>(kind, payload) {
                let again = message::to_payload(kind, &inquiry).expect("what came in a frame fits");
                assert_eq!(message::from_payload(kind, &again), Ok(inquiry));
            }
        }
        Kind::Answer | Kind::AnswerMore => {
            drop(message::from_payload::<Retired>(kind, payload));
            drop(message::from_payload::<Activity>(kind, payload));
        }
        Kind::FileRequest => {
            drop(message::from_payload::<Batch>(kind, payload));
            if let Ok(item) = message::from_payload::<Item>(kind, payload) {
                let again = message::to_payload(kind, &item).expect("what came in a frame fits");
                assert_eq!(message::from_payload(kind, &again), Ok(item));
            }
        }
        Kind::FileAnswer => {
            if let Ok(answer) = message::from_payload::<Answer>(kind, payload) {
                assert!(
                    answer.is_last() || matches!(answer, Answer::Opened(_) | Answer::Entries(_))
                );
            }
        }
        _ => drop(message::from_payload::<Facts>(kind, payload)),
    }
}
