//! Lies that the backend in memory can tell, for the tests of test suites.

/// Declares the flaws once.
macro_rules! flaws {
    ($($(#[$about:meta])* $flaw:ident,)+) => {
        /// One realistic way in which a backend breaks the contract while it
        /// claims to keep it.
        ///
        /// Exists for the tests of test suites: a suite that does not fail a
        /// backend with a flaw proves nothing about one without. See
        /// [`MemoryBackend::with_flaw`](super::MemoryBackend::with_flaw).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Flaw {
            $($(#[$about])* $flaw,)+
        }

        impl Flaw {
            /// Every flaw.
            pub const ALL: &'static [Self] = &[$(Self::$flaw),+];
        }
    };
}

flaws! {
    // Commands.
    /// Standard error comes as standard output.
    ExecMergesStreams,
    /// Every program exits with 0.
    ExecLosesExitCode,
    /// No timeout ever fires.
    ExecIgnoresTimeout,
    /// No cancel ever ends a command.
    ExecIgnoresCancel,
    /// Arguments are split again at their spaces.
    ExecSplitsArguments,
    /// Empty arguments are left out.
    ExecDropsEmptyArguments,
    /// Every command runs in the work directory.
    ExecIgnoresDirectory,
    /// Standard input ends after 64 KiB.
    ExecCutsInput,
    /// Variables of the command are left out.
    ExecDropsVariables,
    /// Nothing bounds the output.
    ExecIgnoresOutputLimit,
    /// What is not UTF-8 is replaced in the output.
    ExecMakesText,
    /// A program that does not exist exits with 127.
    ExecFakesMissingProgram,

    // Reads and looks.
    /// A link is read through.
    ReadFollowsLink,
    /// A linked directory on the way is followed.
    ReadFollowsLinkedParent,
    /// A directory is read as an empty file.
    ReadTakesDirectoryForEmpty,
    /// A fifo, socket or device is read as an empty file.
    ReadTakesSpecialForEmpty,
    /// What is missing is read as an empty file.
    ReadTakesMissingForEmpty,
    /// A file over the limit is cut.
    ReadCutsAtLimit,
    /// Files that are too much together are read all the same.
    ReadIgnoresBatchLimit,
    /// The last byte is lost at exactly 64 KiB.
    ReadLosesByteAt64KiB,
    /// Files are answered in the order of their names.
    ReadSortsAnswers,
    /// What is not UTF-8 is replaced.
    ReadMakesText,
    /// Files that may not be read are read.
    ReadIgnoresRights,
    /// A link is described by its target.
    StatFollowsLink,
    /// A linked directory on the way is followed.
    StatFollowsLinkedParent,
    /// A link has a size.
    StatSizesLinks,
    /// Sizes are one too large.
    StatIsOffByOne,
    /// Every mode is 0644.
    StatFakesMode,
    /// What is below a file is missing, and not refused.
    StatTakesFileParentForMissing,
    /// What is missing is an error.
    StatRefusesMissing,

    // Writes.
    /// A link in the place of the file is followed.
    WriteFollowsLink,
    /// A link in the place of the file is replaced.
    WriteReplacesLink,
    /// A linked directory on the way is followed.
    WriteFollowsLinkedParent,
    /// Content is appended to what is there.
    WriteAppends,
    /// What was longer keeps its end.
    WriteKeepsOldTail,
    /// The last byte is lost at exactly 64 KiB.
    WriteLosesByteAt64KiB,
    /// Line ends are made Unix's.
    WriteTranslatesLineEnds,
    /// Bytes that are no UTF-8 are replaced in names.
    WriteMakesTextOfNames,
    /// Every file has mode 0644.
    WriteIgnoresMode,
    /// Every file was last changed now.
    WriteIgnoresTime,
    /// Directories on the way get mode 0755 and a new time.
    WriteRestampsDirectories,
    /// Files belong to the host.
    WriteBelongsToHost,
    /// Directories that are made belong to the host.
    DirectoriesBelongToHost,
    /// An empty directory in the place of the file is replaced.
    WriteReplacesDirectory,
    /// Missing directories are not made.
    WriteNeedsParents,
    /// Files after the sixty-fourth are forgotten.
    WriteStopsAt64Files,
    /// Files without content are forgotten.
    WriteSkipsEmptyFiles,
    /// What cannot be written is found when its turn comes, and what arrived
    /// is not named.
    WriteChecksAsItGoes,
    /// A full work directory is no error, and the file is cut.
    WriteFullCuts,
    /// A full work directory leaves a part of the file, and does not say so.
    WriteFullLeavesPart,
    /// A full work directory is an error that does not name what arrived.
    WriteFullSaysNothing,
    /// Nothing bounds the number of files.
    WriteIgnoresInodes,
    /// Directories of others are written to.
    WriteIgnoresRights,

    // Listings.
    /// Links are left out.
    ListOmitsLinks,
    /// Links are named files.
    ListNamesLinksFiles,
    /// A listing that was cut does not say so.
    ListNeverSaysTruncated,
    /// The bound on entries is ignored.
    ListIgnoresBound,
    /// A link to a directory is listed.
    ListFollowsLink,
    /// A linked directory on the way is followed.
    ListFollowsLinkedParent,
    /// A recursive listing goes on behind links.
    ListDescendsLinks,
    /// A recursive listing is not recursive.
    ListIsFlat,
    /// Names that start with a dot are left out.
    ListOmitsHidden,
    /// Names have the directory before them.
    ListNamesWholePaths,
    /// A missing directory is an empty one.
    ListTakesMissingForEmpty,

    // Removals.
    /// A link's target is removed.
    RemoveFollowsLink,
    /// A linked directory on the way is followed.
    RemoveFollowsLinkedParent,
    /// An empty directory needs no `recursive`.
    RemoveTakesEmptyDirectories,
    /// No directory needs `recursive`.
    RemoveTakesTrees,
    /// What is missing is an error.
    RemoveRefusesMissing,
    /// Links in a tree are followed.
    RemoveFollowsLinksInside,
    /// The work directory is emptied.
    RemoveTakesWorkDir,
    /// Nothing is removed, with success.
    RemoveDoesNothing,
    /// Names that begin alike go as well.
    RemoveTakesNamesakes,
    /// What is not the guest's goes as well.
    RemoveIgnoresRights,
    /// Only an empty directory is reclaimed, with success for the others.
    ReclaimKeepsContent,
    /// What is missing is an error.
    ReclaimRefusesMissing,
    /// Links in a directory are followed.
    ReclaimFollowsLinksInside,
    /// The work directory is emptied.
    ReclaimTakesWorkDir,

    // Lifetimes.
    /// Every handle says that its sandbox is fresh.
    AlwaysFresh,
    /// No handle says that its sandbox is fresh.
    NeverFresh,
    /// A sandbox that replaces another has its name.
    SameIdAfterReplacement,
    /// A sandbox that replaces another has its files.
    ReplacementKeepsFiles,
    /// Every acquire makes another sandbox.
    AcquireMakesAnother,
    /// Agents of one conversation share a sandbox.
    AgentsShare,
    /// What was disposed of is still there.
    DisposeKeeps,
    /// Siblings of the conversation go as well.
    DisposeTakesSiblings,
    /// What is gone already is a failure.
    DisposeFailsTwice,
    /// The instance that was named is not looked at.
    DisposeIgnoresInstance,
    /// One sandbox of the conversation is left.
    DisposeScopeLeavesOne,
    /// Other conversations of the scope go as well.
    DisposeScopeTakesThreads,
}
