//! What to do about a container that has the name we want. Pure.

use stockade::Refusal;

use crate::definition::Definition;

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
}

/// The engine's states, as far as they call for different steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Running, or paused while its files are copied, which may be by a host
    /// that died: whoever uses it next waits for its thaw, or thaws it.
    Running,
    /// Created, exited or dead: with a work directory in memory it has lost
    /// everything, and is of no use.
    Stopped,
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
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is what we want.
    Adopt,
    /// It is what our own failed create left; it must go, and the create's
    /// error stands.
    RemoveOurs,
    /// It is ours by key and of no use any more; it must go, and the create
    /// is tried again.
    Replace,
    /// Look again in a moment.
    Wait,
    /// It is in the way, and not ours to touch.
    Refuse(Refusal),
}

/// Decides. Never answers with a step that takes a neighbour's container, or
/// one that may be in use.
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
    let drift = desired
        .definition
        .drift(observed.definition.as_deref().unwrap_or_default());
    match observed.state {
        State::Changing => Decision::Wait,
        State::Stopped => Decision::Replace,
        // Another process may be using it, which the engine cannot tell us.
        State::Running if !drift.is_empty() => Decision::Refuse(Refusal::Drifted { fields: drift }),
        State::Running => Decision::Adopt,
    }
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
        }
    }

    fn decided(observed: &Observed, image: &str) -> Decision {
        let definition = definition(image);
        let desired = Desired {
            name: "n",
            owner: "o",
            key: "k",
            kind: "python",
            nonce: "mine",
            definition: &definition,
        };
        decide(observed, desired)
    }

    #[test]
    fn the_same_definition_decides_by_state() {
        assert_eq!(decided(&observed(State::Running), "a"), Decision::Adopt);
        assert_eq!(decided(&observed(State::Stopped), "a"), Decision::Replace);
        assert_eq!(decided(&observed(State::Changing), "a"), Decision::Wait);
    }

    #[test]
    fn a_running_sandbox_of_another_definition_is_refused_with_its_fields() {
        let Decision::Refuse(Refusal::Drifted { fields }) = decided(&observed(State::Running), "b")
        else {
            panic!("not refused as drifted");
        };
        assert_eq!(fields, ["image"]);
    }

    #[test]
    fn a_stopped_sandbox_is_replaced_whatever_it_was_made_for() {
        assert_eq!(decided(&observed(State::Stopped), "b"), Decision::Replace);
    }

    #[test]
    fn nothing_of_a_stranger_is_ever_adopted_replaced_or_removed() {
        for state in [State::Running, State::Stopped, State::Changing] {
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
        for state in [State::Running, State::Stopped, State::Changing] {
            let mut observed = observed(state);
            observed.nonce = Some("mine".into());
            assert_eq!(decided(&observed, "b"), Decision::RemoveOurs);
        }
    }
}
