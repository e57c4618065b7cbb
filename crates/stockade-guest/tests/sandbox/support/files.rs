//! File operations from the host's side.

use std::path::Path;

use stockade_wire::files::{Answer, BATCH, Batch, Entry, FileFault, Item, Stat, WriteKind};
use stockade_wire::limits::FRAME_PAYLOAD;
use stockade_wire::message::{Exit, Program, Start, Status, from_payload, to_payload};
use stockade_wire::{Decoder, Kind, Text, encode};

use super::client::{Client, Outcome, start};

/// An item with its data.
pub(crate) struct Ask {
    pub(crate) item: Item,
    pub(crate) data: Vec<u8>,
}

/// What was said about an item.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) answers: Vec<Answer>,
    pub(crate) data: Vec<u8>,
}

/// What came of a batch.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) items: Vec<Told>,
    pub(crate) finished: bool,
    pub(crate) exit: Exit,
}

/// The run of a file operation.
pub(crate) fn files() -> Start {
    Start {
        stdin: true,
        ..start(Program::Files)
    }
}

/// A batch as it travels.
pub(crate) fn encoded(work: &Path, asks: &[Ask]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let batch = Batch {
        work: work.display().to_string().into(),
        items: u32::try_from(asks.len()).unwrap(),
    };
    let payload = to_payload(Kind::FileRequest, &batch).unwrap();
    encode(Kind::FileRequest, BATCH, &payload, &mut bytes);
    for (index, ask) in (0..).zip(asks) {
        let payload = to_payload(Kind::FileRequest, &ask.item).unwrap();
        encode(Kind::FileRequest, index, &payload, &mut bytes);
        for piece in ask.data.chunks(FRAME_PAYLOAD) {
            encode(Kind::FileData, index, piece, &mut bytes);
        }
    }
    bytes
}

pub(crate) fn look(path: impl Into<Text>) -> Ask {
    Ask::of(Item::Look { path: path.into() })
}

pub(crate) fn measure(path: impl Into<Text>, max_entries: u64, max_bytes: u64) -> Ask {
    Ask::of(Item::Measure {
        path: path.into(),
        max_entries,
        max_bytes,
    })
}

pub(crate) fn list(path: impl Into<Text>, recursive: bool, max_entries: u64) -> Ask {
    Ask::of(Item::List {
        path: path.into(),
        recursive,
        max_entries,
    })
}

pub(crate) fn read(path: impl Into<Text>) -> Ask {
    Ask::of(Item::Read {
        path: path.into(),
        max_bytes: u64::MAX,
    })
}

pub(crate) fn write(path: impl Into<Text>, data: &[u8]) -> Ask {
    Ask {
        item: Item::Write {
            path: path.into(),
            kind: WriteKind::File {
                size: data.len() as u64,
            },
            mode: 0o644,
            modified: None,
        },
        data: data.to_vec(),
    }
}

pub(crate) fn make(path: impl Into<Text>, mode: u32) -> Ask {
    Ask::of(Item::Write {
        path: path.into(),
        kind: WriteKind::Directory,
        mode,
        modified: None,
    })
}

pub(crate) fn remove(path: impl Into<Text>, recursive: bool) -> Ask {
    Ask::of(Item::Remove {
        path: path.into(),
        recursive,
    })
}

pub(crate) fn reclaim(path: impl Into<Text>) -> Ask {
    Ask::of(Item::Reclaim { path: path.into() })
}

impl Ask {
    pub(crate) fn of(item: Item) -> Self {
        Self {
            item,
            data: Vec::new(),
        }
    }
}

impl Client {
    /// Runs a batch to its end.
    pub(crate) fn batch(&mut self, work: &Path, asks: &[Ask]) -> Served {
        let run = self.start(&files());
        self.write(run, &encoded(work, asks));
        self.end_input(run);
        Served::from_outcome(&self.outcome(run), asks.len())
    }

    /// Runs one item to its end, which is the last answer.
    pub(crate) fn one(&mut self, work: &Path, ask: Ask) -> Answer {
        self.batch(work, &[ask]).whole().last(0)
    }
}

impl Served {
    /// Takes what the worker said apart.
    pub(crate) fn from_outcome(outcome: &Outcome, items: usize) -> Self {
        let mut served = Self {
            items: (0..items).map(|_| Told::default()).collect(),
            finished: false,
            exit: outcome.exit.clone(),
        };
        let mut decoder = Decoder::new();
        decoder.buffer().extend_from_slice(&outcome.stdout);
        let mut current = 0;
        while let Some(frame) = decoder.next_frame().expect("frames") {
            assert!(!served.finished, "nothing follows the end");
            if frame.run == BATCH {
                let answer = from_payload(Kind::FileAnswer, &frame.payload);
                assert_eq!(answer, Ok(Answer::Finished));
                served.finished = true;
                continue;
            }
            assert!(frame.run >= current, "answers come in the items' order");
            current = frame.run;
            let told = &mut served.items[frame.run as usize];
            assert!(!told.answers.last().is_some_and(Answer::is_last));
            match frame.kind {
                Kind::FileData => told.data.extend_from_slice(&frame.payload),
                Kind::FileAnswer => {
                    let answer = from_payload(Kind::FileAnswer, &frame.payload);
                    told.answers.push(answer.unwrap());
                }
                kind => panic!("a {kind:?} frame from the worker"),
            }
        }
        served
    }

    /// The same, which must have answered everything.
    pub(crate) fn whole(self) -> Self {
        assert!(self.finished, "{self:?}");
        assert_eq!(self.exit.status, Status::Exited(0), "{self:?}");
        for told in &self.items {
            assert!(told.answers.last().is_some_and(Answer::is_last), "{told:?}");
        }
        self
    }

    /// The answer that an item ended with.
    pub(crate) fn last(&self, item: usize) -> Answer {
        self.items[item].answers.last().expect("an answer").clone()
    }

    /// Asserts that each item was done.
    pub(crate) fn done(self) -> Self {
        let served = self.whole();
        for told in &served.items {
            assert_eq!(told.answers.last(), Some(&Answer::Done), "{told:?}");
        }
        served
    }
}

impl Told {
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let parts = self.answers.iter().filter_map(|answer| match answer {
            Answer::Entries(entries) => Some(entries.clone()),
            _ => None,
        });
        parts.flatten().collect()
    }
}

/// What a look saw, which must be something.
pub(crate) fn seen(answer: Answer) -> Stat {
    match answer {
        Answer::Seen(Some(stat)) => stat,
        answer => panic!("{answer:?}"),
    }
}

/// The fault that an item ended with.
pub(crate) fn fault(answer: Answer) -> FileFault {
    match answer {
        Answer::Fault(fault) => fault,
        answer => panic!("{answer:?}"),
    }
}
