//! Every lie of the backend in memory is caught, by a probe that is there for it.

use std::collections::BTreeSet;

use stockade::memory::Flaw;
use stockade_conformance::Suite;

use crate::{backend, call, run_of};

/// Runs the suites that must catch a flaw, and says what is wrong otherwise.
async fn caught(flaw: Flaw) -> Result<(), String> {
    let expected = expected(flaw);
    let suites: BTreeSet<Suite> = expected.iter().map(|(suite, _)| *suite).collect();
    let lying = backend().with_flaw(flaw);
    let report = run_of(&lying).suites(suites).run(&call()).await;
    let failed: BTreeSet<_> = report.failed().map(|(suite, p)| (suite, p.name)).collect();
    let missed: Vec<_> = expected
        .iter()
        .filter(|(suite, name)| !failed.contains(&(*suite, name)))
        .collect();
    if missed.is_empty() && !report.is_green() {
        return Ok(());
    }
    Err(format!(
        "{flaw:?} was missed by {missed:?}; what failed: {failed:?}"
    ))
}

#[tokio::test(start_paused = true)]
async fn every_flaw_is_caught_by_the_probes_that_are_there_for_it() {
    assert!(Flaw::ALL.len() >= 45);
    let mut wrong = Vec::new();
    for &flaw in Flaw::ALL {
        wrong.extend(caught(flaw).await.err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The probes that must fail a backend with this flaw; others may as well.
#[rustfmt::skip]
fn expected(flaw: Flaw) -> Vec<(Suite, &'static str)> {
    use Flaw as F;
    use Suite::{Delete, Exec, FilesIn, FilesOut, FreshAcquire, InstanceDisposal, List, Reach, Reclaim, StorageBase};
    let probes: &[(Suite, &str)] = match flaw {
        F::ExecMergesStreams => &[(Exec, "streams_stay_apart"), (Exec, "every_byte_survives_on_both_streams")],
        F::ExecLosesExitCode => &[(Exec, "exit_codes_are_kept"), (Exec, "shell_lines_run")],
        F::ExecIgnoresTimeout => &[(Exec, "the_sandbox_ends_it_without_the_host")],
        F::ExecIgnoresCancel => &[(Exec, "a_cancel_ends_the_command")],
        F::ExecSplitsArguments => &[(Exec, "arguments_arrive_as_they_are")],
        F::ExecDropsEmptyArguments => &[(Exec, "empty_arguments_arrive")],
        F::ExecIgnoresDirectory => &[(Exec, "the_directory_is_honoured")],
        F::ExecCutsInput => &[(Exec, "standard_input_arrives_whole")],
        F::ExecDropsVariables => &[(Exec, "variables_arrive")],
        F::ExecIgnoresOutputLimit => &[(Exec, "the_sandbox_bounds_output_without_the_host")],
        F::ExecMakesText => &[(Exec, "every_byte_survives_on_both_streams")],
        F::ExecFakesMissingProgram => &[(Exec, "a_missing_program_is_an_outcome")],
        F::ReadFollowsLink => &[(FilesOut, "a_link_is_never_read")],
        F::ReadFollowsLinkedParent => &[(FilesOut, "a_read_through_a_linked_parent_is_refused"), (FilesOut, "a_link_further_up_is_refused"), (Reach, "a_race_is_never_won_by_reads")],
        F::ReadTakesDirectoryForEmpty => &[(FilesOut, "a_directory_is_not_read")],
        F::ReadTakesSpecialForEmpty => &[(FilesOut, "a_fifo_is_not_read"), (FilesOut, "a_socket_is_not_read"), (FilesOut, "a_device_is_not_read")],
        F::ReadTakesMissingForEmpty => &[(FilesOut, "what_is_missing_is_refused"), (FilesOut, "a_batch_with_one_missing_gives_nothing")],
        F::ReadCutsAtLimit => &[(FilesOut, "a_file_over_its_limit_is_refused_not_cut"), (FilesOut, "a_file_over_the_limit_of_the_spec_is_refused")],
        F::ReadIgnoresBatchLimit => &[(FilesOut, "a_batch_over_its_limit_is_refused")],
        F::ReadLosesByteAt64KiB => &[(FilesOut, "every_size_survives")],
        F::ReadSortsAnswers => &[(FilesOut, "a_batch_keeps_its_order")],
        F::ReadMakesText => &[(FilesOut, "every_byte_survives")],
        F::ReadIgnoresRights => &[(Reach, "a_read_shows_nothing_beyond_the_guest")],
        F::StatFollowsLink => &[(FilesOut, "a_link_is_named_a_link")],
        F::StatFollowsLinkedParent => &[(FilesOut, "a_look_through_a_linked_parent_is_refused"), (FilesOut, "a_link_further_up_is_refused")],
        F::StatSizesLinks => &[(FilesOut, "a_link_is_named_a_link"), (List, "a_listing_names_its_links")],
        F::StatIsOffByOne => &[(FilesOut, "a_legitimate_read_still_works"), (FilesOut, "a_look_tells_size_mode_and_time")],
        F::StatFakesMode => &[(FilesOut, "a_look_tells_size_mode_and_time")],
        F::StatTakesFileParentForMissing => &[(FilesOut, "a_plain_parent_is_not_an_escape")],
        F::StatRefusesMissing => &[(FilesOut, "a_look_at_nothing_is_no_error")],
        F::WriteFollowsLink => &[(FilesIn, "a_linked_destination_is_refused_not_followed"), (FilesIn, "a_dangling_link_is_refused_not_followed")],
        F::WriteReplacesLink => &[(FilesIn, "a_linked_destination_is_refused_not_followed")],
        F::WriteFollowsLinkedParent => &[(FilesIn, "a_linked_parent_is_refused"), (FilesIn, "a_linked_parent_further_up_is_refused"), (FilesIn, "a_linked_parent_inside_is_refused"), (Reach, "a_race_is_never_won_by_writes")],
        F::WriteAppends => &[(FilesIn, "a_second_write_replaces")],
        F::WriteKeepsOldTail => &[(FilesIn, "a_second_write_replaces")],
        F::WriteLosesByteAt64KiB => &[(FilesIn, "every_size_survives")],
        F::WriteTranslatesLineEnds => &[(FilesIn, "every_byte_survives")],
        F::WriteMakesTextOfNames => &[(FilesIn, "every_legal_name_arrives")],
        F::WriteIgnoresMode => &[(FilesIn, "the_mode_is_kept")],
        F::WriteIgnoresTime => &[(FilesIn, "the_time_is_kept")],
        F::WriteRestampsDirectories => &[(FilesIn, "directories_on_the_way_are_not_restamped"), (FilesIn, "a_directory_that_exists_stays_as_it_is")],
        F::WriteBelongsToHost => &[(Reach, "a_write_leaves_nothing_beyond_the_guest"), (Reach, "a_replaced_file_is_the_guests"), (Reach, "the_guest_can_change_the_mode")],
        F::DirectoriesBelongToHost => &[(Reach, "directories_that_are_made_are_the_guests")],
        F::WriteReplacesDirectory => &[(FilesIn, "a_directory_in_its_place_is_refused")],
        F::WriteNeedsParents => &[(FilesIn, "directories_are_made")],
        F::WriteStopsAt64Files => &[(FilesIn, "a_batch_of_a_hundred_arrives")],
        F::WriteSkipsEmptyFiles => &[(FilesIn, "every_size_survives")],
        F::WriteChecksAsItGoes => &[(FilesIn, "a_refused_batch_moves_nothing")],
        F::WriteFullCuts => &[(FilesIn, "a_full_work_directory_names_what_arrived"), (FilesIn, "a_file_that_does_not_fit_is_not_left_in_part")],
        F::WriteFullLeavesPart => &[(FilesIn, "a_file_that_does_not_fit_is_not_left_in_part"), (FilesIn, "a_full_work_directory_names_what_arrived")],
        F::WriteFullSaysNothing => &[(FilesIn, "a_full_work_directory_names_what_arrived"), (FilesIn, "a_work_directory_full_of_files_is_full")],
        F::WriteIgnoresInodes => &[(FilesIn, "a_work_directory_full_of_files_is_full")],
        F::WriteIgnoresRights => &[(Reach, "a_write_changes_nothing_beyond_the_guest")],
        F::ListOmitsLinks => &[(List, "a_listing_names_its_links")],
        F::ListNamesLinksFiles => &[(List, "a_listing_names_its_links")],
        F::ListNeverSaysTruncated => &[(List, "a_listing_says_when_it_is_cut"), (List, "a_recursive_listing_says_when_it_is_cut")],
        F::ListIgnoresBound => &[(List, "a_listing_says_when_it_is_cut"), (List, "a_recursive_listing_says_when_it_is_cut")],
        F::ListFollowsLink => &[(List, "a_linked_directory_is_not_listed")],
        F::ListFollowsLinkedParent => &[(List, "a_listing_through_a_linked_parent_is_refused"), (List, "a_listing_under_a_linked_ancestor_is_refused")],
        F::ListDescendsLinks => &[(List, "a_recursive_listing_follows_no_link")],
        F::ListIsFlat => &[(List, "a_recursive_listing_goes_everywhere")],
        F::ListOmitsHidden => &[(List, "a_listing_has_bare_names_of_any_bytes")],
        F::ListNamesWholePaths => &[(List, "a_listing_names_what_is_there"), (StorageBase, "the_work_directory_is_listed_by_bare_names")],
        F::ListTakesMissingForEmpty => &[(List, "a_missing_directory_is_refused")],
        F::RemoveFollowsLink => &[(Delete, "a_link_is_removed_never_followed")],
        F::RemoveFollowsLinkedParent => &[(Delete, "a_linked_parent_is_refused"), (Delete, "a_linked_parent_further_up_is_refused"), (Reach, "a_race_is_never_won_by_removals"), (Reclaim, "a_linked_parent_is_refused")],
        F::RemoveTakesEmptyDirectories => &[(Delete, "an_empty_directory_needs_recursive")],
        F::RemoveTakesTrees => &[(Delete, "a_directory_needs_recursive")],
        F::RemoveRefusesMissing => &[(Delete, "a_missing_path_is_success")],
        F::RemoveFollowsLinksInside => &[(Delete, "a_link_inside_a_tree_is_unlinked_not_followed")],
        F::RemoveTakesWorkDir => &[(Delete, "the_work_directory_is_refused")],
        F::RemoveDoesNothing => &[(Delete, "a_removal_removes"), (Delete, "recursive_removes_the_tree"), (Reclaim, "a_created_directory_is_gone")],
        F::RemoveTakesNamesakes => &[(Delete, "what_begins_alike_stays"), (Reclaim, "nested_content_goes_with_it")],
        F::RemoveIgnoresRights => &[(Reach, "a_removal_takes_nothing_beyond_the_guest"), (Reach, "a_reclaim_takes_nothing_beyond_the_guest")],
        F::ReclaimKeepsContent => &[(Reclaim, "nested_content_goes_with_it"), (Reclaim, "its_name_can_be_used_again")],
        F::ReclaimRefusesMissing => &[(Reclaim, "a_missing_directory_is_success"), (Reclaim, "a_missing_place_is_success")],
        F::ReclaimFollowsLinksInside => &[(Reclaim, "a_link_inside_is_unlinked_not_followed")],
        F::ReclaimTakesWorkDir => &[(Reclaim, "the_work_directory_is_refused")],
        F::AlwaysFresh => &[(FreshAcquire, "a_sandbox_that_is_found_is_not_fresh")],
        F::NeverFresh => &[(FreshAcquire, "a_new_sandbox_is_fresh")],
        F::SameIdAfterReplacement => &[(FreshAcquire, "a_replacement_is_another_sandbox"), (InstanceDisposal, "another_instance_is_not_disposed_of")],
        F::ReplacementKeepsFiles => &[(FreshAcquire, "a_replacement_has_no_old_files")],
        F::AcquireMakesAnother => &[(FreshAcquire, "a_sandbox_that_is_found_is_not_fresh")],
        F::AgentsShare => &[(FreshAcquire, "keys_do_not_share"), (InstanceDisposal, "siblings_survive")],
        F::DisposeKeeps => &[(InstanceDisposal, "what_is_disposed_of_is_gone")],
        F::DisposeTakesSiblings => &[(InstanceDisposal, "siblings_survive")],
        F::DisposeFailsTwice => &[(InstanceDisposal, "disposing_twice_is_no_failure")],
        F::DisposeIgnoresInstance => &[(InstanceDisposal, "another_instance_is_not_disposed_of")],
        F::DisposeScopeLeavesOne => &[(InstanceDisposal, "a_conversation_is_disposed_of_whole")],
        F::DisposeScopeTakesThreads => &[(InstanceDisposal, "other_conversations_survive")],
        _ => panic!("{flaw:?} has no probe that is there for it"),
    };
    probes.to_vec()
}
