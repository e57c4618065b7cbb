//! Names and labels of everything that this backend makes. Pure.

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
    /// What it is: `guest`, `probe`, `work` or `runtime`.
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
    /// Before each label of the caller.
    pub(crate) const CALLERS: &str = "dev.stockade.label.";
}

/// What the name of a work directory's holder ends with.
const WORK: &str = "-work";

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
    format!("stockade-{}", &digest(parts)[..12])
}

/// The container that holds the volume of a work directory on disk until the
/// sandbox does; of one create only, so that nothing is ever found in it.
pub(crate) fn work_holder(container: &str, nonce: &str) -> String {
    format!("{container}-{nonce}{WORK}")
}

/// Whether a container of that name is a sandbox, and not a part of one.
pub(crate) fn is_sandbox(name: &str) -> bool {
    !name.ends_with(WORK)
}

/// The volume that holds the guest runtime. `attempt` is 0 until a
/// half-filled volume had to be left behind.
pub(crate) fn runtime_volume(runtime_digest: &str, os: &str, arch: &str, attempt: u32) -> String {
    let short = runtime_digest.get(..12).unwrap_or(runtime_digest);
    let base = format!("stockade-runtime-{short}-{os}-{arch}");
    if attempt == 0 {
        base
    } else {
        format!("{base}-{attempt}")
    }
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

/// The scope that a key label names.
pub(crate) fn scope_of(key_label: &str) -> Option<String> {
    let [scope, _, _, _]: [String; 4] = serde_json::from_str(key_label).ok()?;
    Some(scope)
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
        let key = SandboxKey::new("a\"b", "c,d", "é").with_call("f=g");
        let parts: Vec<String> = serde_json::from_str(&key_label(&key)).unwrap();
        assert_eq!(parts, ["a\"b", "c,d", "é", "f=g"]);
    }
}
