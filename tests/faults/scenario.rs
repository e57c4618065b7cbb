//! The operations of a sandbox's life, each from the state in which it asks
//! docker for the most.

use std::sync::Arc;
use std::time::Duration;

use stockade::spec::{Image, Storage};
use stockade::{IsolationScope, Operation, Phase, SandboxSpec, SpecBuilder};
use stockade_docker::FilePlane;
use stockade_tests::client::{At, Fault, Rule};
use stockade_tests::engine::PYTHON;

use crate::expected::faults_of;
use crate::world::{Configure, World};

/// One operation and the state before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    /// A backend is made.
    Bind,
    /// The first sandbox on an engine that does not have the guest runtime.
    AcquireOnNewEngine,
    /// The first sandbox of a process.
    Acquire,
    /// Another sandbox, of an image that is known.
    AcquireAnother,
    /// The same, with an undo that fails as well.
    AcquireWithoutUndo,
    /// An image that has to be pulled.
    AcquireWithPull,
    /// An image that has to be built.
    AcquireWithBuild,
    /// A work directory on disk.
    AcquireOnDisk,
    /// Another process has made the sandbox.
    AcquireWhatIsThere,
    /// The sandbox has ended, with its content.
    AcquireWhatHasEnded,
    /// A sandbox of another definition is there.
    AcquireWhatHasDrifted,
    /// An acquire is cancelled once its container is being made, and the
    /// backend closed.
    Close,
    /// The first command of a process in a sandbox.
    Exec,
    /// The same, when the first relay comes to nothing.
    ExecBesideDeadRelay,
    /// The same, in a sandbox that somebody has paused.
    ExecWhilePaused,
    /// A look at a file as the first thing in a sandbox.
    Stat,
    /// A write by tar streams.
    WriteTar,
    /// A read by tar streams.
    ReadTar,
    /// A write and a read by the guest runtime.
    FilesOfGuest,
    /// The sandboxes of a key are removed.
    Dispose,
    /// Those of one kind.
    DisposeKind,
    /// One of them.
    DisposeInstance,
    /// Those of a conversation, by the key of it.
    DisposeWithCalls,
    /// Those of a conversation, by its name.
    DisposeScope,
    /// The container was removed by hand, and its volume was not.
    DisposeOfVolume,
    /// Everything is removed, used or not.
    Reap,
    /// The same, when the container was removed by hand.
    ReapOfVolume,
    /// What nobody uses is removed.
    ReapUnused,
    /// An operator asks which sandboxes there are.
    List,
    /// What one of them is doing.
    Activity,
    /// What became of one of them.
    History,
    /// What is taken of the engine's disk.
    Usage,
    /// What of it nobody uses is removed.
    Prune,
}

impl Scenario {
    pub(crate) const ALL: [Self; 33] = [
        Self::Bind,
        Self::AcquireOnNewEngine,
        Self::Acquire,
        Self::AcquireAnother,
        Self::AcquireWithoutUndo,
        Self::AcquireWithPull,
        Self::AcquireWithBuild,
        Self::AcquireOnDisk,
        Self::AcquireWhatIsThere,
        Self::AcquireWhatHasEnded,
        Self::AcquireWhatHasDrifted,
        Self::Close,
        Self::Exec,
        Self::ExecBesideDeadRelay,
        Self::ExecWhilePaused,
        Self::Stat,
        Self::WriteTar,
        Self::ReadTar,
        Self::FilesOfGuest,
        Self::Dispose,
        Self::DisposeKind,
        Self::DisposeInstance,
        Self::DisposeWithCalls,
        Self::DisposeScope,
        Self::DisposeOfVolume,
        Self::Reap,
        Self::ReapOfVolume,
        Self::ReapUnused,
        Self::List,
        Self::Activity,
        Self::History,
        Self::Usage,
        Self::Prune,
    ];

    /// A host for its cells.
    pub(crate) async fn world(self, patience: Duration) -> World {
        let configure: Configure = Arc::new(move |config| match self {
            Self::FilesOfGuest => config
                .command_timeout(patience)
                .file_plane(FilePlane::Guest),
            _ => config.command_timeout(patience),
        });
        let mut world = World::new(self.spec(), configure).await;
        if !self.is_of_conversation() {
            world.key = world.key.with_call("1");
        }
        world
    }

    pub(crate) fn spec(self) -> SpecBuilder {
        let spec = SandboxSpec::builder("test").image(Image::reference(PYTHON));
        match self {
            _ if !self.is_of_conversation() => spec.isolation_scope(IsolationScope::Call),
            _ => spec.storage(Storage::Disk),
        }
    }

    fn is_of_conversation(self) -> bool {
        matches!(self, Self::AcquireOnDisk | Self::AcquireWhatHasEnded)
    }

    /// What goes wrong in it already, so that there is more to go wrong.
    pub(crate) fn base(self) -> Vec<Rule> {
        let rule = |verb: &str, at, fault| Rule {
            verb: verb.to_owned(),
            at,
            fault,
        };
        match self {
            Self::AcquireWithoutUndo => vec![rule("rm", At::Always, Fault::Fails)],
            Self::ExecBesideDeadRelay => vec![rule("exec", At::Nth(1), Fault::KilledBefore)],
            _ => Vec::new(),
        }
    }

    /// The operation that its errors are of, and the phases that it has.
    pub(crate) fn phases(self) -> &'static [Phase] {
        use Phase::{
            Admit, Bind, Build, Channel, Create, Dispose, Image, Observe, Pull, Queue, Run,
            Runtime, Start, Transfer, Undo,
        };
        match self {
            Self::Bind => &[Bind],
            Self::AcquireOnNewEngine
            | Self::Acquire
            | Self::AcquireAnother
            | Self::AcquireWithoutUndo
            | Self::AcquireWithPull
            | Self::AcquireWithBuild
            | Self::AcquireOnDisk
            | Self::AcquireWhatIsThere
            | Self::AcquireWhatHasEnded
            | Self::AcquireWhatHasDrifted => &[
                Admit, Image, Pull, Build, Runtime, Observe, Create, Undo, Dispose,
            ],
            Self::Exec | Self::ExecBesideDeadRelay | Self::ExecWhilePaused => {
                &[Queue, Observe, Channel, Start, Run]
            }
            Self::Stat | Self::WriteTar | Self::ReadTar | Self::FilesOfGuest => {
                &[Queue, Observe, Channel, Start, Transfer, Undo]
            }
            Self::Dispose
            | Self::DisposeKind
            | Self::DisposeInstance
            | Self::DisposeWithCalls
            | Self::DisposeScope
            | Self::DisposeOfVolume
            | Self::Reap
            | Self::ReapOfVolume
            | Self::ReapUnused => &[Observe, Dispose],
            Self::List | Self::Activity | Self::History | Self::Usage => &[Observe],
            Self::Prune => &[Observe, Dispose],
            // The acquire that it waits for may fail before it is cancelled.
            Self::Close => &[Image, Observe, Create, Undo],
        }
    }

    pub(crate) fn operations(self) -> &'static [Operation] {
        match self {
            Self::Bind => &[Operation::Bind],
            Self::AcquireOnNewEngine
            | Self::Acquire
            | Self::AcquireAnother
            | Self::AcquireWithoutUndo
            | Self::AcquireWithPull
            | Self::AcquireWithBuild
            | Self::AcquireOnDisk
            | Self::AcquireWhatIsThere
            | Self::AcquireWhatHasEnded
            | Self::AcquireWhatHasDrifted => &[Operation::Acquire],
            Self::Exec | Self::ExecBesideDeadRelay | Self::ExecWhilePaused => {
                &[Operation::Exec, Operation::Spawn, Operation::Wait]
            }
            // What opens the channel says that it is of a command.
            Self::Stat => &[Operation::Stat, Operation::Exec],
            Self::WriteTar => &[Operation::WriteFiles, Operation::Exec],
            Self::ReadTar => &[Operation::ReadFiles, Operation::Exec],
            Self::FilesOfGuest => &[Operation::WriteFiles, Operation::ReadFiles, Operation::Exec],
            Self::Dispose
            | Self::DisposeKind
            | Self::DisposeInstance
            | Self::DisposeWithCalls
            | Self::DisposeOfVolume => &[Operation::Dispose],
            Self::DisposeScope => &[Operation::Dispose, Operation::DisposeScope],
            Self::Reap | Self::ReapOfVolume | Self::ReapUnused => {
                &[Operation::Reap, Operation::Dispose]
            }
            Self::Close => &[Operation::Acquire, Operation::Close],
            Self::List | Self::Activity | Self::History | Self::Usage => &[Operation::Inspect],
            Self::Prune => &[Operation::Prune],
        }
    }

    /// Whether it makes a sandbox.
    pub(crate) fn acquires(self) -> bool {
        self.operations() == [Operation::Acquire]
    }

    /// Whether there is a sandbox, or what is left of one, before it.
    pub(crate) fn has_sandbox(self) -> bool {
        let makes_it = matches!(
            self,
            Self::Bind
                | Self::AcquireOnNewEngine
                | Self::Acquire
                | Self::AcquireAnother
                | Self::AcquireWithoutUndo
                | Self::AcquireWithPull
                | Self::AcquireWithBuild
                | Self::AcquireOnDisk
                | Self::Close
        );
        !makes_it
    }

    /// Whether it removes everything that it can.
    pub(crate) fn removes(self) -> bool {
        self.phases() == [Phase::Observe, Phase::Dispose]
    }

    /// The verbs that go wrong in it: all of them, or those that no other
    /// scenario has from the same state.
    pub(crate) fn is_about(self, verb: &str) -> bool {
        match self {
            Self::Acquire => verb != "run",
            Self::AcquireAnother | Self::AcquireWithoutUndo => verb == "run",
            Self::AcquireOnNewEngine => !matches!(verb, "image inspect" | "run attached" | "run"),
            Self::AcquireWithPull => verb == "pull",
            Self::AcquireWithBuild => verb == "build",
            Self::AcquireOnDisk | Self::Close => !matches!(verb, "image inspect" | "run attached"),
            Self::AcquireWhatHasDrifted => matches!(verb, "exec" | "rm"),
            Self::ExecBesideDeadRelay => matches!(verb, "kill" | "container inspect"),
            Self::DisposeOfVolume | Self::ReapOfVolume => verb.starts_with("volume"),
            Self::ReapUnused => verb == "exec",
            Self::Usage => matches!(verb, "system df" | "image ls"),
            Self::Prune => verb == "image rm",
            _ => true,
        }
    }

    /// Whether how often it uses a verb depends on what else goes on.
    pub(crate) fn varies(self) -> bool {
        // A sandbox that retires goes while it is looked at.
        matches!(self, Self::AcquireWhatHasDrifted | Self::ReapUnused)
    }

    /// The faults that it is done with: all of them, or one of each sort where
    /// another scenario does the same by another name.
    pub(crate) fn faults(self, verb: &str) -> Vec<Fault> {
        let mut faults = faults_of(verb);
        let is_another = matches!(
            self,
            Self::Stat
                | Self::FilesOfGuest
                | Self::DisposeKind
                | Self::DisposeInstance
                | Self::DisposeWithCalls
                | Self::DisposeScope
                | Self::List
                | Self::Activity
                | Self::History
                | Self::Usage
                | Self::Prune
        );
        if is_another {
            faults.retain(|fault| ONE_OF_EACH.contains(fault));
        }
        faults
    }
}

/// Before the work, instead of it, after it, and none at all.
pub(crate) const ONE_OF_EACH: [Fault; 4] = [
    Fault::Fails,
    Fault::Garbage,
    Fault::KilledAfter,
    Fault::Late,
];
