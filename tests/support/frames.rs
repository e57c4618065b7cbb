//! What goes wrong with a frame of the channel.

use serde::{Deserialize, Serialize};
use stockade_wire::Kind;

/// How a frame goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "tests run through all of them")]
pub enum FrameFault {
    /// It never arrives, and what comes after it does.
    Dropped,
    /// Its payload is something else, of the same length.
    GarbagePayload,
    /// It is of a kind that there is not.
    GarbageHeader,
    /// Half of it arrives, and then the stream ends.
    Truncated,
    /// It arrives late.
    Late,
    /// It arrives twice.
    Duplicated,
    /// Neither it nor anything after it arrives.
    Stalled,
    /// The relay is killed in its place.
    Killed,
    /// Not a fault of the matrix, but what another one needs: the exit of a
    /// run says that its processes are not all dead.
    TreeLeft,
}

/// Who sends a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "a channel has two ends")]
pub enum Sender {
    /// The host.
    Host,
    /// The guest.
    Guest,
}

/// A place among the frames of a channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tests take it apart")]
pub struct Place {
    /// Who sends it.
    pub from: Sender,
    /// Its kind, as [`name`] says it.
    pub kind: String,
    /// Which of these it is, counted from 1.
    pub number: u32,
}

/// What goes wrong where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "tests take it apart")]
pub struct FrameRule {
    /// Which frame.
    pub place: Place,
    /// What goes wrong.
    pub fault: FrameFault,
}

impl FrameFault {
    /// Every fault of the matrix.
    pub const ALL: [Self; 8] = [
        Self::Dropped,
        Self::GarbagePayload,
        Self::GarbageHeader,
        Self::Truncated,
        Self::Late,
        Self::Duplicated,
        Self::Stalled,
        Self::Killed,
    ];
}

impl Sender {
    /// How a frame of this kind from here is written down.
    #[must_use]
    pub fn line(self, kind: Kind) -> String {
        format!("{self:?} {}", name(kind))
    }
}

/// A kind by its name.
#[must_use]
pub fn name(kind: Kind) -> String {
    format!("{kind:?}")
}
