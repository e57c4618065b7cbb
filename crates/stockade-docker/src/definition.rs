//! Everything that defines a sandbox, so that one that was made for another
//! spec, image or build is never taken for it. Pure.

use std::collections::BTreeMap;

use crate::names::digest;

/// Named parts; a sandbox is the same when all of them are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Definition {
    parts: BTreeMap<&'static str, String>,
}

impl Definition {
    /// Adds a part. Its value is kept as a digest only, since labels can be
    /// read by everybody who can reach the engine.
    pub(crate) fn part<'a>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = &'a str>,
    ) {
        let mut short = digest(values);
        short.truncate(16);
        self.parts.insert(name, short);
    }

    /// One digest over all parts.
    pub(crate) fn digest(&self) -> String {
        let mut whole = digest(
            self.parts
                .iter()
                .flat_map(|(name, value)| [*name, value.as_str()]),
        );
        whole.truncate(32);
        whole
    }

    /// The parts as a label value.
    pub(crate) fn label(&self) -> String {
        serde_json::to_string(&self.parts).unwrap_or_default()
    }

    /// Names of the parts in which a container with that label differs;
    /// `definition` when the label cannot be read.
    pub(crate) fn drift(&self, label: &str) -> Vec<String> {
        let Ok(theirs) = serde_json::from_str::<BTreeMap<String, String>>(label) else {
            return vec!["definition".to_owned()];
        };
        let ours = self
            .parts
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let mut fields: Vec<String> = ours
            .filter(|(name, value)| theirs.get(*name).map(String::as_str) != Some(value))
            .map(|(name, _)| name.to_owned())
            .collect();
        let unknown = theirs
            .keys()
            .filter(|name| !self.parts.contains_key(name.as_str()));
        fields.extend(unknown.cloned());
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(image: &str, memory: &str) -> Definition {
        let mut definition = Definition::default();
        definition.part("image", [image]);
        definition.part("memory", [memory]);
        definition
    }

    #[test]
    fn drift_names_exactly_the_parts_that_differ() {
        let label = definition("a", "1").label();
        assert_eq!(definition("a", "1").drift(&label), Vec::<String>::new());
        assert_eq!(definition("b", "1").drift(&label), ["image"]);
        assert_eq!(definition("b", "2").drift(&label), ["image", "memory"]);
    }

    #[test]
    fn parts_that_only_one_side_knows_are_drift() {
        let mut more = definition("a", "1");
        more.part("services", []);
        assert_eq!(definition("a", "1").drift(&more.label()), ["services"]);
        assert_eq!(more.drift(&definition("a", "1").label()), ["services"]);
    }

    #[test]
    fn a_label_that_lies_is_drift_and_never_a_panic() {
        for label in ["", "[]", "{\"image\":1}", "\u{0}"] {
            assert_eq!(definition("a", "1").drift(label), ["definition"]);
        }
    }

    #[test]
    fn values_do_not_show_in_the_label() {
        let label = definition("secret", "1").label();
        assert!(!label.contains("secret"));
    }
}
