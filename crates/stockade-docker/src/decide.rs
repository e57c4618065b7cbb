//! What to do about a container that has the name we want. Pure.

use std::time::Duration;

use stockade::Refusal;

use crate::definition::Definition;

/// How long a container may be seen without having been started, until it
/// counts as one whose host died: making and starting it is one command of
/// docker's, which takes some tenths of a second.
pub(crate) const UNSTARTED: Duration = Duration::from_secs(20);

/// What stands under the name, as one `inspect` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The engine's full id.
    pub(crate) id: String,
    pub(crate) state: State,
    pub(crate) owner: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) nonce: Option<String>,
    /// The label that [`Definition::label`] writes.
    pub(crate) definition: Option<String>,
    pub(crate) protocol: Option<String>,
}

/// The engine's states, as far as they call for different steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Running, or paused while its files are copied, which may be by a host
    /// that died: whoever uses it next waits for its thaw, or thaws it.
    Running,
    /// Created and never started: somebody is making it, or died doing so.
    Unstarted,
    /// It has ended, and what is in it is as it was left: it can be started.
    Stopped,
    /// It has ended and is of no use: the engine removes it, or failed to.
    Lost,
    /// Removing or restarting: it will be something else in a moment.
    Changing,
}

/// What the caller wants to find.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Desired<'a> {
    pub(crate) name: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) key: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) definition: &'a Definition,
    pub(crate) protocol: &'a str,
    /// Whether one of another definition that nobody uses may go.
    pub(crate) replaces: bool,
    /// For how long this very container has been in the way.
    pub(crate) watched: Duration,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is what we want.
    Adopt,
    /// It is what we want once it runs.
    Start,
    /// It is what our own failed create left; it must go, and the create's
    /// error stands.
    RemoveOurs,
    /// It is ours by key, has ended and is of no use any more; it must go
    /// unless somebody has started it since, and the create is tried again.
    Replace,
    /// It runs and is another one than wanted: its own PID 1 says whether
    /// somebody uses it, and ends otherwise. Refused as drifted in these
    /// fields when it stays.
    Retire { fields: Vec<String> },
    /// Look again in a moment.
    Wait,
    /// It is in the way, and not ours to touch.
    Refuse(Refusal),
}

/// Decides. Never answers with a step that takes a neighbour's container, or
/// one that is in use.
pub(crate) fn decide(observed: &Observed, desired: Desired<'_>) -> Decision {
    let ours = |label: &Option<String>, wanted: &str| label.as_deref() == Some(wanted);
    let foreign = !ours(&observed.owner, desired.owner)
        || !ours(&observed.key, desired.key)
        || !ours(&observed.kind, desired.kind);
    if foreign {
        return Decision::Refuse(Refusal::Foreign {
            name: desired.name.to_owned(),
        });
    }
    if ours(&observed.nonce, desired.nonce) {
        return Decision::RemoveOurs;
    }
    let drift = drift(observed, desired);
    match observed.state {
        State::Changing => Decision::Wait,
        State::Unstarted if desired.watched < UNSTARTED => Decision::Wait,
        State::Stopped if drift.is_empty() => Decision::Start,
        State::Running | State::Stopped if !drift.is_empty() && !desired.replaces => {
            Decision::Refuse(Refusal::Drifted { fields: drift })
        }
        // Nobody uses it.
        State::Stopped | State::Unstarted | State::Lost => Decision::Replace,
        State::Running if drift.is_empty() => Decision::Adopt,
        State::Running => Decision::Retire { fields: drift },
    }
}

/// In what it differs. A guest runtime of another protocol cannot be spoken
/// to, whatever the rest of it is.
fn drift(observed: &Observed, desired: Desired<'_>) -> Vec<String> {
    let label = observed.definition.as_deref().unwrap_or_default();
    let mut fields = desired.definition.drift(label);
    if observed.protocol.as_deref() != Some(desired.protocol) {
        fields.push("protocol".to_owned());
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(image: &str) -> Definition {
        let mut definition = Definition::default();
        definition.part("image", [image]);
        definition
    }

    fn observed(state: State) -> Observed {
        Observed {
            id: "1".into(),
            state,
            owner: Some("o".into()),
            key: Some("k".into()),
            kind: Some("python".into()),
            nonce: Some("theirs".into()),
            definition: Some(definition("a").label()),
            protocol: Some("1".into()),
        }
    }

    fn decided(observed: &Observed, image: &str) -> Decision {
        after(Duration::ZERO, observed, image)
    }

    fn after(watched: Duration, observed: &Observed, image: &str) -> Decision {
        let definition = definition(image);
        let desired = Desired {
            name: "n",
            owner: "o",
            key: "k",
            kind: "python",
            nonce: "mine",
            definition: &definition,
            protocol: "1",
            replaces: true,
            watched,
        };
        decide(observed, desired)
    }

    #[test]
    fn the_same_definition_decides_by_state() {
        assert_eq!(decided(&observed(State::Running), "a"), Decision::Adopt);
        assert_eq!(decided(&observed(State::Stopped), "a"), Decision::Start);
        assert_eq!(decided(&observed(State::Lost), "a"), Decision::Replace);
        assert_eq!(decided(&observed(State::Changing), "a"), Decision::Wait);
    }

    #[test]
    fn a_running_sandbox_of_another_definition_is_asked_to_retire() {
        let fields = vec!["image".to_owned()];
        assert_eq!(
            decided(&observed(State::Running), "b"),
            Decision::Retire { fields }
        );
    }

    #[test]
    fn a_runtime_of_another_protocol_is_drift_with_that_name() {
        for protocol in [None, Some("2".to_owned()), Some(String::new())] {
            let mut observed = observed(State::Running);
            observed.protocol = protocol;
            let fields = vec!["protocol".to_owned()];
            assert_eq!(decided(&observed, "a"), Decision::Retire { fields });
            observed.state = State::Stopped;
            assert_eq!(decided(&observed, "a"), Decision::Replace);
        }
    }

    #[test]
    fn a_host_that_keeps_what_drifted_is_refused_whatever_has_content() {
        let definition = definition("b");
        let decided = |state| {
            let desired = Desired {
                name: "n",
                owner: "o",
                key: "k",
                kind: "python",
                nonce: "mine",
                definition: &definition,
                protocol: "1",
                replaces: false,
                watched: UNSTARTED,
            };
            decide(&observed(state), desired)
        };
        for state in [State::Running, State::Stopped] {
            let fields = vec!["image".to_owned()];
            let drifted = Refusal::Drifted { fields };
            assert_eq!(decided(state), Decision::Refuse(drifted));
        }
        for state in [State::Lost, State::Unstarted] {
            assert_eq!(decided(state), Decision::Replace);
        }
    }

    #[test]
    fn a_stopped_sandbox_of_another_definition_is_replaced() {
        assert_eq!(decided(&observed(State::Stopped), "b"), Decision::Replace);
        assert_eq!(decided(&observed(State::Lost), "b"), Decision::Replace);
    }

    #[test]
    fn one_that_was_never_started_is_waited_for_and_replaced_only_after_its_time() {
        let observed = observed(State::Unstarted);
        for image in ["a", "b"] {
            assert_eq!(decided(&observed, image), Decision::Wait);
            assert_eq!(after(UNSTARTED, &observed, image), Decision::Replace);
        }
    }

    #[test]
    fn nothing_of_a_stranger_is_ever_adopted_replaced_or_removed() {
        let states = [
            State::Running,
            State::Unstarted,
            State::Stopped,
            State::Lost,
            State::Changing,
        ];
        for state in states {
            for break_label in [0, 1, 2] {
                for lie in [None, Some("other".to_owned())] {
                    let mut observed = observed(state);
                    observed.nonce = Some("mine".into());
                    match break_label {
                        0 => observed.owner = lie,
                        1 => observed.key = lie,
                        _ => observed.kind = lie,
                    }
                    let decision = decided(&observed, "a");
                    assert!(matches!(
                        decision,
                        Decision::Refuse(Refusal::Foreign { .. })
                    ));
                }
            }
        }
    }

    #[test]
    fn what_our_own_failed_create_left_goes_in_every_state() {
        for state in [
            State::Running,
            State::Unstarted,
            State::Stopped,
            State::Lost,
            State::Changing,
        ] {
            let mut observed = observed(state);
            observed.nonce = Some("mine".into());
            assert_eq!(decided(&observed, "b"), Decision::RemoveOurs);
        }
    }
}
