//! Every docker command and every frame of a sandbox's life goes wrong in
//! every way, on a real engine: the error is of a kind that the table names
//! and says where it is from, nothing is left that is not named, what comes
//! next works, and no fault becomes an outcome or content.
//!
//! The cells are made from lists: a scenario is done once with nothing wrong,
//! which shows the verbs that it has; each of them is then one that goes wrong,
//! first and last, in each way that there is.

#![expect(
    clippy::print_stdout,
    reason = "how long a cell took is for people, and a test that does not run must say so"
)]

mod act;
mod channel;
mod coverage;
mod expected;
mod matrix;
mod restarts;
mod scenario;
mod state;
mod talk;
mod world;

use scenario::Scenario;
use talk::Talk;

/// One test for each line, and the list of all that they run.
macro_rules! matrix {
    ($($test:ident: $($scenario:ident),+;)+) => {
        $(
            #[tokio::test]
            async fn $test() {
                matrix::run(&[$(Scenario::$scenario),+]).await;
            }
        )+

        const RUN: &[Scenario] = &[$($(Scenario::$scenario,)+)+];
    };
}

/// The same for talks.
macro_rules! talks {
    ($($test:ident: $($talk:ident),+;)+) => {
        $(
            #[tokio::test]
            async fn $test() {
                channel::run(&[$(Talk::$talk),+]).await;
            }
        )+

        const TALKED: &[Talk] = &[$($(Talk::$talk,)+)+];
    };
}

matrix! {
    whatever_goes_wrong_when_a_backend_is_made_is_its_error: Bind;
    whatever_goes_wrong_when_a_sandbox_is_made_leaves_nothing:
        Acquire, AcquireAnother, AcquireWithoutUndo;
    whatever_goes_wrong_when_an_engine_is_new_leaves_nothing: AcquireOnNewEngine;
    whatever_goes_wrong_in_a_pull_leaves_nothing: AcquireWithPull;
    whatever_goes_wrong_in_a_build_leaves_nothing: AcquireWithBuild;
    whatever_goes_wrong_when_a_disk_is_made_leaves_nothing: AcquireOnDisk;
    whatever_goes_wrong_with_what_is_there_already_it_is_not_lost:
        AcquireWhatIsThere, AcquireWhatHasEnded;
    whatever_goes_wrong_with_a_drifted_sandbox_it_is_there_or_replaced: AcquireWhatHasDrifted;
    whatever_goes_wrong_in_a_first_command_the_next_one_runs: Exec, Stat, FilesOfGuest;
    whatever_goes_wrong_beside_a_dead_relay_the_next_command_runs: ExecBesideDeadRelay;
    whatever_goes_wrong_while_a_sandbox_is_paused_the_next_command_runs: ExecWhilePaused;
    whatever_goes_wrong_in_a_write_is_not_taken_for_written: WriteTar;
    whatever_goes_wrong_in_a_read_is_not_taken_for_content: ReadTar;
    whatever_goes_wrong_in_a_removal_is_named_and_removed_later:
        Dispose, DisposeOfVolume, DisposeKind, DisposeInstance, DisposeWithCalls, DisposeScope;
    whatever_goes_wrong_in_a_reap_is_named_and_removed_later: Reap, ReapOfVolume, ReapUnused;
    whatever_goes_wrong_in_an_undo_is_named_and_removed_later: Close;
    whatever_goes_wrong_for_an_operator_is_told_and_nothing_else:
        List, Activity, History, Usage, Prune;
}

talks! {
    whatever_goes_wrong_with_a_frame_of_a_command_the_next_one_runs: Command;
    whatever_goes_wrong_with_a_rare_frame_the_next_command_runs:
        Long, Unread, Terminal, Cancelled, Background, LeftTree, Stopped;
    whatever_goes_wrong_with_a_frame_of_files_is_not_taken_for_content: Files;
}
