//! Names and labels of everything that this backend makes. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use stockade::{Error, ErrorKind, Kind, Operation, SandboxKey};

/// Label keys; the values are documented where they are written.
pub(crate) mod label {
    /// The installation that made it; only its own are ever touched.
    pub(crate) const OWNER: &str = "dev.stockade.owner";
    /// The backend object that made it.
    pub(crate) const RUN: &str = "dev.stockade.run";
    /// The sandbox key, losslessly.
    pub(crate) const KEY: &str = "dev.stockade.key";
    /// The spec's kind.
    pub(crate) const KIND: &str = "dev.stockade.kind";
    /// What it is: `guest`, `probe`, `work`, `runtime` or `image`.
    pub(crate) const ROLE: &str = "dev.stockade.role";
    /// When it was made, in milliseconds since 1970 by the host's clock.
    pub(crate) const CREATED: &str = "dev.stockade.created";
    /// Digest of everything that defines the sandbox.
    pub(crate) const DIGEST: &str = "dev.stockade.digest";
    /// Short digests of the parts of that, so that drift can be named.
    pub(crate) const DEFINITION: &str = "dev.stockade.definition";
    /// Protocol version of the guest runtime in it.
    pub(crate) const PROTOCOL: &str = "dev.stockade.protocol";
    /// Names one create, so that a half-made container is known as ours.
    pub(crate) const NONCE: &str = "dev.stockade.nonce";
    /// Scope and thread of the key, so that a conversation can be found by a
    /// filter of the engine.
    pub(crate) const CONVERSATION: &str = "dev.stockade.conversation";
    /// Scope, thread and agent of the key, so that the calls of one agent can
    /// be found by a filter of the engine.
    pub(crate) const AGENT: &str = "dev.stockade.agent";
    /// Digest of the directory that an image was built from, and of the
    /// platform: names it without telling where it is.
    pub(crate) const DIRECTORY: &str = "dev.stockade.directory";
    /// Digest of what was in that directory.
    pub(crate) const CONTEXT: &str = "dev.stockade.context";
    /// Before each label of the caller.
    pub(crate) const CALLERS: &str = "dev.stockade.label.";
}

/// What the name of a work directory's holder ends with.
const WORK: &str = "-work";
/// The same of probes.
const FACTS: &str = "-facts";
const FILL: &str = "-fill";

/// What the names of runtime volumes begin with.
const RUNTIME: &str = "stockade-runtime-";

/// Hexadecimal digits of a digest or of a nonce in a name.
const DIGITS: usize = 12;

/// The name of a sandbox's container: `stockade-` and 12 hex digits of a
/// digest over length-prefixed parts, so that no choice of delimiter in a key
/// makes two keys meet. The owner is one of the parts: two installations with
/// the same key on one engine do not fight over a name.
pub(crate) fn container(owner: &str, key: &SandboxKey, kind: &Kind) -> String {
    let parts = [
        owner,
        &key.scope,
        &key.thread_id,
        &key.agent_id,
        kind.as_str(),
        &key.call_id,
    ];
    format!("stockade-{}", &digest(parts)[..DIGITS])
}

/// The container that holds the volume of a work directory on disk until the
/// sandbox does; of one create only, so that nothing is ever found in it.
pub(crate) fn work_holder(container: &str, nonce: &str) -> String {
    format!("{container}-{nonce}{WORK}")
}

/// A container that looks into an image.
pub(crate) fn facts_probe(nonce: &str) -> String {
    format!("stockade-{nonce}{FACTS}")
}

/// The container through which a runtime volume is filled. Its name is the
/// lock: two hosts cannot both make it.
pub(crate) fn filling_probe(volume: &str) -> String {
    format!("{volume}{FILL}")
}

/// What a container is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A sandbox.
    Guest,
    /// The holder of a sandbox's work directory.
    Work,
    /// A look into an image, or the filling of a runtime volume.
    Probe,
}

/// What a container with this name and these labels is to an owner; `None`
/// when it is not the owner's.
///
/// Labels alone prove nothing: an image that was made of a sandbox (`docker
/// commit`) hands them to every container of that image. A name is had once.
pub(crate) fn role(owner: &str, name: &str, labels: &BTreeMap<String, String>) -> Option<Role> {
    let label = |key: &str| labels.get(key).map(String::as_str);
    if label(label::OWNER) != Some(owner) {
        return None;
    }
    if label(label::ROLE) == Some("probe") {
        let facts = hex_between(name, "stockade-", FACTS);
        let fill = name.starts_with(RUNTIME) && name.ends_with(FILL);
        return (facts || fill).then_some(Role::Probe);
    }
    let key = key_of(label(label::KEY)?)?;
    let sandbox = container(owner, &key, &label(label::KIND)?.parse().ok()?);
    role_beside(&sandbox, name)
}

/// What a container of this name is to the sandbox that has that name.
pub(crate) fn role_beside(sandbox: &str, name: &str) -> Option<Role> {
    if name == sandbox {
        return Some(Role::Guest);
    }
    let prefix = format!("{sandbox}-");
    hex_between(name, &prefix, WORK).then_some(Role::Work)
}

/// Whether a name has the form of a sandbox's.
pub(crate) fn may_be_a_sandbox(name: &str) -> bool {
    hex_between(name, "stockade-", "")
}

/// The name of the sandbox that a container is a part of.
pub(crate) fn group(name: &str) -> &str {
    let end = "stockade-".len() + DIGITS;
    if name.ends_with(WORK) {
        name.get(..end).unwrap_or(name)
    } else {
        name
    }
}

/// Whether a volume is the work directory of an owner's sandbox: anonymous, so
/// that its name is 64 digits of the engine's, and labelled as one.
pub(crate) fn is_work_volume(owner: &str, name: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    label(label::OWNER) == Some(owner)
        && label(label::ROLE) == Some("work")
        && label(label::KEY).and_then(key_of).is_some()
        && name.len() == 64
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex_between(name: &str, prefix: &str, suffix: &str) -> bool {
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(suffix))
        .is_some_and(|hex| hex.len() == DIGITS && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The volume that holds the guest runtime. `attempt` is 0 until a
/// half-filled volume had to be left behind.
pub(crate) fn runtime_volume(runtime_digest: &str, os: &str, arch: &str, attempt: u32) -> String {
    let short = runtime_digest.get(..12).unwrap_or(runtime_digest);
    let base = format!("{RUNTIME}{short}-{os}-{arch}");
    if attempt == 0 {
        base
    } else {
        format!("{base}-{attempt}")
    }
}

/// Whether a volume of that name holds a guest runtime, of whatever build.
pub(crate) fn is_runtime_volume(name: &str) -> bool {
    name.starts_with(RUNTIME)
}

/// What the label of a built image's role says.
pub(crate) const IMAGE_ROLE: &str = "image";

/// The name of an image that was built from a directory, by what its labels
/// say of that.
pub(crate) fn built_image(owner: &str, directory: &str, context: &str) -> String {
    let digest = digest([owner, directory, context]);
    format!("stockade-build:{}", &digest[..DIGITS])
}

/// Whether an image with these names and labels is one that an owner had
/// built. What is made of its containers (`docker commit`) has its labels, and
/// not its name.
pub(crate) fn is_built(owner: &str, tags: &[String], labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    let (Some(directory), Some(context)) = (label(label::DIRECTORY), label(label::CONTEXT)) else {
        return false;
    };
    label(label::OWNER) == Some(owner)
        && label(label::ROLE) == Some(IMAGE_ROLE)
        && tags.contains(&built_image(owner, directory, context))
}

/// The key as a label value: JSON, so that it can be read back losslessly.
pub(crate) fn key_label(key: &SandboxKey) -> String {
    serde_json::json!([key.scope, key.thread_id, key.agent_id, key.call_id]).to_string()
}

/// The conversation as a label value.
pub(crate) fn conversation_label(scope: &str, thread: &str) -> String {
    serde_json::json!([scope, thread]).to_string()
}

/// SHA-256 over length-prefixed parts, as hex.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

/// The agent as a label value.
pub(crate) fn agent_label(key: &SandboxKey) -> String {
    serde_json::json!([key.scope, key.thread_id, key.agent_id]).to_string()
}

/// The key that a label holds.
pub(crate) fn key_of(key_label: &str) -> Option<SandboxKey> {
    let [scope, thread, agent, call]: [String; 4] = serde_json::from_str(key_label).ok()?;
    Some(SandboxKey::new(scope, thread, agent).with_call(call))
}

/// 12 hex digits that nobody else has drawn.
///
/// # Errors
///
/// When the system has no source of randomness.
pub(crate) fn nonce() -> Result<String, Error> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Internal, Operation::Acquire)
            .message(format!("the system has no source of randomness: {error}"))
            .build()
    })?;
    Ok(hex(&bytes))
}

/// Milliseconds since 1970 by the host's clock.
pub(crate) fn now_millis() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis())
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        text.parse().unwrap()
    }

    #[test]
    fn keys_that_differ_only_in_where_a_part_ends_get_different_names() {
        let one = SandboxKey::new("a", "bc", "d");
        let two = SandboxKey::new("ab", "c", "d");
        assert_ne!(
            container("o", &one, &kind("k")),
            container("o", &two, &kind("k"))
        );
    }

    #[test]
    fn owner_kind_and_call_are_part_of_the_name() {
        let key = SandboxKey::new("s", "t", "a");
        let name = container("o", &key, &kind("k"));
        assert_ne!(name, container("p", &key, &kind("k")));
        assert_ne!(name, container("o", &key, &kind("l")));
        assert_ne!(
            name,
            container("o", &key.clone().with_call("1"), &kind("k"))
        );
        assert_eq!(name, container("o", &key, &kind("k")));
    }

    #[test]
    fn a_name_is_a_prefix_and_twelve_hex_digits_whatever_the_key_holds() {
        let key = SandboxKey::new("ü\n-- ", "\"", "");
        let name = container("o", &key, &kind("k"));
        let digits = name.strip_prefix("stockade-").unwrap();
        assert_eq!(digits.len(), 12);
        assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn a_key_label_holds_every_part_as_it_was() {
        for call in ["f=g", ""] {
            let key = SandboxKey::new("a\"b", "c,d", "é").with_call(call);
            assert_eq!(key_of(&key_label(&key)), Some(key));
        }
        for other in ["", "[]", "{}", "[1,2,3,4]", r#"["a","b","c"]"#] {
            assert_eq!(key_of(other), None, "{other}");
        }
    }

    fn labels(role: &str) -> BTreeMap<String, String> {
        let key = key_label(&SandboxKey::new("s", "t", "a"));
        [
            (label::OWNER, "o"),
            (label::ROLE, role),
            (label::KEY, &key),
            (label::KIND, "k"),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }

    #[test]
    fn a_container_is_ours_by_its_labels_and_the_name_that_they_lead_to() {
        let name = container("o", &SandboxKey::new("s", "t", "a"), &kind("k"));
        let holder = work_holder(&name, "0123456789ab");
        assert_eq!(role("o", &name, &labels("guest")), Some(Role::Guest));
        assert_eq!(role("o", &holder, &labels("work")), Some(Role::Work));
        assert_eq!(group(&holder), name);
        let probes = [
            facts_probe("0123456789ab"),
            filling_probe(&runtime_volume("d", "linux", "amd64", 1)),
        ];
        for probe in &probes {
            assert_eq!(role("o", probe, &labels("probe")), Some(Role::Probe));
            assert_eq!(group(probe), probe);
        }
    }

    #[test]
    fn a_volume_that_somebody_has_named_is_theirs_whatever_its_labels_say() {
        let anonymous = "0123456789abcdef".repeat(4);
        assert!(is_work_volume("o", &anonymous, &labels("work")));
        assert!(!is_work_volume("p", &anonymous, &labels("work")));
        assert!(!is_work_volume("o", &anonymous, &labels("runtime")));
        for name in ["precious", "stockade-0123456789ab-work", &anonymous[1..]] {
            assert!(!is_work_volume("o", name, &labels("work")), "{name}");
        }
        let mut bare = labels("work");
        bare.remove(label::KEY);
        assert!(!is_work_volume("o", &anonymous, &bare));
    }

    #[test]
    fn labels_that_came_with_an_image_make_nothing_ours() {
        let ours = container("o", &SandboxKey::new("s", "t", "a"), &kind("k"));
        let other = container("o", &SandboxKey::new("s", "t", "b"), &kind("k"));
        for part in ["guest", "work", "probe"] {
            for name in [
                "mine",
                "",
                &other,
                &format!("{ours}-1-work"),
                &format!("{ours}x"),
            ] {
                assert_eq!(role("o", name, &labels(part)), None, "{part} {name}");
            }
        }
        assert_eq!(role("p", &ours, &labels("guest")), None, "another owner's");
        for missing in [label::KEY, label::KIND, label::OWNER] {
            let mut labels = labels("guest");
            labels.remove(missing);
            assert_eq!(role("o", &ours, &labels), None, "without {missing}");
        }
    }

    #[test]
    fn an_image_is_one_that_was_built_by_the_name_that_its_labels_lead_to() {
        let labels: BTreeMap<String, String> = [
            (label::OWNER, "o"),
            (label::ROLE, IMAGE_ROLE),
            (label::DIRECTORY, "d"),
            (label::CONTEXT, "c"),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
        let name = built_image("o", "d", "c");
        let tags = [name.clone()];
        assert!(is_built("o", &tags, &labels));
        assert!(is_built("o", &["mine:1".to_owned(), name], &labels));
        // What was made of a container of it has its labels, and no such name.
        assert!(!is_built("o", &[], &labels));
        assert!(!is_built("o", &["mine:1".to_owned()], &labels));
        assert!(!is_built("p", &tags, &labels), "another owner's");
        for missing in [label::ROLE, label::DIRECTORY, label::CONTEXT] {
            let mut labels = labels.clone();
            labels.remove(missing);
            assert!(!is_built("o", &tags, &labels), "without {missing}");
        }
    }

    #[test]
    fn the_form_of_a_name_tells_what_can_be_no_sandbox() {
        let sandbox = container("o", &SandboxKey::new("s", "t", "a"), &kind("k"));
        assert!(may_be_a_sandbox(&sandbox));
        for other in [
            "",
            "stockade-",
            "mine",
            &facts_probe("0123456789ab"),
            &work_holder(&sandbox, "1"),
        ] {
            assert!(!may_be_a_sandbox(other), "{other}");
        }
    }
}
