//! That nothing is left out of the matrix: no verb, no kind of frame, no
//! scenario, no talk.

use std::collections::BTreeSet;

use docker_driver::VERBS;
use futures_util::StreamExt as _;
use futures_util::stream;
use stockade_wire::Kind;

use crate::expected::{Class, class_of};
use crate::matrix::{trace, warm_up};
use crate::scenario::Scenario;
use crate::talk::Talk;
use crate::{RUN, TALKED};

/// Traces that are made beside each other.
const LANES: usize = 3;

/// Verbs that no operation of a sandbox's life uses, and why they are there.
/// One that a scenario reaches has to go from here.
const OUTSIDE_A_LIFE: &[(&str, &str)] = &[(
    "volume create",
    "volumes come with the containers that mount them",
)];

const WITHIN: &str = "it passes within the sandbox; the verb that asks is in the matrix";

/// Kinds of frames that never pass a channel, and why. One that does has to go
/// from here.
pub(crate) const BESIDE_THE_CHANNEL: &[(Kind, &str)] = &[
    (Kind::Inquiry, WITHIN),
    (Kind::AnswerMore, WITHIN),
    (Kind::Answer, WITHIN),
    (Kind::ToolCall, "reserved"),
    (Kind::ToolAnswer, "reserved"),
];

#[tokio::test]
async fn every_verb_is_reached_by_a_scenario_or_left_out_by_name() {
    warm_up().await;
    let traces = stream::iter(Scenario::ALL).map(async |scenario| {
        let trace = trace(scenario).await;
        trace.unwrap_or_else(|finding| panic!("{scenario:?}: {finding}"))
    });
    let traces: Vec<_> = traces.buffer_unordered(LANES).collect().await;
    let reached: BTreeSet<String> = traces.into_iter().flatten().collect();
    let left_out: BTreeSet<&str> = OUTSIDE_A_LIFE.iter().map(|(verb, _)| *verb).collect();
    for verb in VERBS {
        assert_ne!(
            reached.contains(*verb),
            left_out.contains(verb),
            "{verb:?} must be reached by a scenario, or be left out, and not both"
        );
    }
    for verb in left_out {
        assert!(VERBS.contains(&verb), "there is no verb {verb:?} any more");
    }
}

#[test]
fn every_verb_has_a_class() {
    let relays = VERBS.iter().filter(|verb| class_of(verb) == Class::Relays);
    assert_eq!(relays.collect::<Vec<_>>(), [&"exec"]);
}

#[test]
fn every_kind_of_frame_is_of_one_talk_or_left_out_by_name() {
    for kind in Kind::ALL {
        let talks = Talk::ALL.iter().filter(|talk| talk.kinds().contains(&kind));
        let beside = BESIDE_THE_CHANNEL
            .iter()
            .filter(|(other, _)| *other == kind);
        assert_eq!(talks.count() + beside.count(), 1, "{kind:?}");
    }
}

#[test]
fn every_scenario_and_every_talk_is_run_by_one_test() {
    let sorted = |scenarios: &[Scenario]| {
        let mut sorted = scenarios.to_vec();
        sorted.sort_unstable();
        sorted
    };
    assert_eq!(sorted(RUN), sorted(&Scenario::ALL));
    for talk in Talk::ALL {
        assert_eq!(
            TALKED.iter().filter(|other| **other == talk).count(),
            1,
            "{talk:?}"
        );
    }
}
