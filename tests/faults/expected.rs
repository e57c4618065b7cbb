//! What may come of a fault, as tables.

use stockade::ErrorKind;
use stockade::vocabulary::DisposalCode;
use stockade_tests::client::Fault;

use ErrorKind::{Internal, LimitExceeded, Lost, Refused, TimedOut, Unavailable};

/// The verbs by what their failure costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Looks at the engine, and is told in one document.
    Asks,
    /// Makes a container or a volume.
    Makes,
    /// Runs a program of ours to its end.
    Runs,
    /// Changes a container that goes on.
    Changes,
    /// Removes something.
    Removes,
    /// Sends files.
    Sends,
    /// Is sent files.
    Receives,
    /// Brings an image.
    Brings,
    /// Carries the channel.
    Relays,
    /// Tells what happens.
    Watches,
}

/// The class of a verb. A new one has to be given one here.
pub(crate) fn class_of(verb: &str) -> Class {
    match verb {
        "context inspect" | "version" | "info" | "system df" | "image inspect" | "image ls"
        | "container inspect" | "ps" | "volume inspect" | "volume ls" => Class::Asks,
        "run" | "create" | "volume create" => Class::Makes,
        "run attached" => Class::Runs,
        "start" | "kill" | "pause" | "unpause" => Class::Changes,
        "rm" | "volume rm" | "image rm" => Class::Removes,
        "cp in" => Class::Sends,
        "cp out" => Class::Receives,
        "pull" | "build" => Class::Brings,
        "exec" => Class::Relays,
        "events" => Class::Watches,
        other => panic!("what does a failure of {other:?} cost? give it a class"),
    }
}

impl Class {
    /// Whether it needs room on the engine's disk.
    fn writes(self) -> bool {
        matches!(
            self,
            Self::Makes | Self::Runs | Self::Sends | Self::Brings | Self::Relays
        )
    }

    /// Whether what is said beside the answer is used at all.
    fn is_heard(self) -> bool {
        !matches!(self, Self::Changes)
    }
}

/// The faults that a verb can have.
pub(crate) fn faults_of(verb: &str) -> Vec<Fault> {
    let class = class_of(verb);
    let can = |fault: &Fault| match fault {
        Fault::DiskFull => class.writes() || verb == "start",
        // An answer that nobody reads cannot be wrong.
        Fault::Duplicate | Fault::Truncated => class.is_heard(),
        _ => true,
    };
    Fault::ALL.into_iter().filter(can).collect()
}

/// The kinds of error that a fault of a verb may come to, where it is not made
/// good. None: it has to be.
pub(crate) fn kinds(fault: Fault, verb: &str) -> &'static [ErrorKind] {
    let class = class_of(verb);
    match (fault, class) {
        (Fault::Late, _) => &[],
        // The call's own patience is the shorter one there.
        (Fault::Hangs | Fault::HangsAfter, Class::Relays | Class::Watches) => &[TimedOut],
        // Its own, or that of the several commands that it is one of.
        (Fault::Hangs | Fault::HangsAfter, Class::Makes | Class::Brings | Class::Receives) => {
            &[Unavailable, TimedOut]
        }
        (Fault::DiskFull, _) => &[LimitExceeded],
        // A recipe that does not build looks the same, and so does an image
        // that is not there after its pull.
        (_, Class::Brings) => &[Unavailable, Internal, Refused],
        // What it was about was removed with it, so that nothing half is left.
        (_, Class::Changes | Class::Sends | Class::Relays) => &[Unavailable, Lost, Internal],
        (Fault::Garbage | Fault::Truncated | Fault::Duplicate, _) => &[Internal, Unavailable],
        _ => &[Unavailable],
    }
}

/// The codes of a removal that failed.
pub(crate) fn codes(fault: Fault, verb: &str) -> &'static [DisposalCode] {
    use DisposalCode::{Refused, Timeout, Unknown, Unlisted, Unreachable};
    match (fault, class_of(verb)) {
        (Fault::Late, _) => &[],
        // What is not known to be there cannot be removed.
        (_, Class::Asks) => &[Unlisted, Unreachable, Unknown],
        // Nor what may be in use.
        (_, Class::Relays) => &[Refused, Unreachable, Timeout],
        (Fault::Hangs | Fault::HangsAfter, _) => &[Unreachable, Timeout, Unknown],
        _ => &[Unreachable, Unknown],
    }
}
