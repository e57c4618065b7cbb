//! Whether a backend's declarations cover a spec.

use crate::declarations::Declarations;
use crate::key::SandboxKey;
use crate::refusal::{IdentityMismatch, Refusal};
use crate::spec::SandboxSpec;
use crate::vocabulary::{Capability, IsolationScope, TransferDirection};

/// Whether a backend that declares this can serve the spec.
///
/// Pure: a dry run and an acquire cannot disagree. What only the engine can
/// tell (the image, its limits) comes later, and is refused as well.
///
/// # Errors
///
/// The first [`Refusal`] in this order: attached identity, isolation,
/// capabilities, request methods, operating system family, transfer limits
/// (in, then out), egress mode, isolation scope, parts that are not served.
pub fn admit(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    attached_identity(declarations, spec)?;
    isolation(declarations, spec)?;
    capabilities(declarations, spec)?;
    methods(declarations, spec)?;
    os_family(declarations, spec)?;
    transfer_limits(declarations, spec)?;
    egress_mode(declarations, spec)?;
    isolation_scope(declarations, spec)?;
    features(declarations, spec)
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

/// A credential that is attached unasked is as wrong as one that is missing;
/// the missing one is a missing capability.
fn attached_identity(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let refuse = |mismatch| Err(Refusal::AttachedIdentity { mismatch });
    let Some(given) = &declarations.attached_identity else {
        return Ok(());
    };
    let Some(bounds) = spec.identity_bounds() else {
        return refuse(IdentityMismatch::NotAsked);
    };
    if given.scope > bounds.max_scope {
        return refuse(IdentityMismatch::Scope {
            most: bounds.max_scope,
            given: given.scope,
        });
    }
    if given.retention > bounds.max_retention {
        return refuse(IdentityMismatch::Retention {
            most: bounds.max_retention,
            given: given.retention,
        });
    }
    let asked = spec.authority_channels();
    if asked != given.channels {
        return refuse(IdentityMismatch::Channels {
            asked,
            given: given.channels,
        });
    }
    Ok(())
}

fn isolation(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    match spec.min_isolation() {
        Some(asked) if declarations.isolation < asked => Err(Refusal::IsolationTooWeak {
            asked,
            given: declarations.isolation,
        }),
        _ => Ok(()),
    }
}

fn capabilities(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let mut missing = spec
        .required_capabilities()
        .without(declarations.capabilities);
    // Declaring the capability without a credential to attach is silence.
    if spec.requires().contains(Capability::AttachedIdentity)
        && declarations.attached_identity.is_none()
    {
        missing = missing.with(Capability::AttachedIdentity);
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::CapabilityMissing { missing })
}

fn methods(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let rules = spec.egress().rules().iter();
    let methods = rules.flat_map(|rule| rule.methods().unwrap_or_default());
    let mut missing: Vec<String> = methods
        .map(|method| method.as_str())
        .filter(|method| !declarations.egress_method_tokens.contains(method))
        .map(str::to_owned)
        .collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::EgressMethods { missing })
}

fn os_family(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    match spec.os_family() {
        Some(asked) if !declarations.os_families.contains(asked) => Err(Refusal::OsFamily {
            asked,
            served: declarations.os_families,
        }),
        _ => Ok(()),
    }
}

fn transfer_limits(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    for (direction, limits) in [
        (TransferDirection::In, spec.files_in()),
        (TransferDirection::Out, spec.files_out()),
    ] {
        if let Some((limit, asked, most)) = limits.first_above(declarations.limits.of(direction)) {
            return Err(Refusal::TransferLimits {
                direction,
                limit,
                asked,
                most,
            });
        }
    }
    Ok(())
}

fn egress_mode(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let asked = spec.egress().mode();
    if declarations.egress_modes.contains(asked) {
        return Ok(());
    }
    Err(Refusal::EgressNotEnforced {
        asked,
        enforced: declarations.egress_modes,
    })
}

fn isolation_scope(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let asked = spec.isolation_scope();
    if declarations.isolation_scopes.contains(asked) {
        return Ok(());
    }
    Err(Refusal::ScopeNotEnforced {
        asked,
        enforced: declarations.isolation_scopes,
    })
}

fn features(declarations: &Declarations, spec: &SandboxSpec) -> Result<(), Refusal> {
    let missing = spec.features().without(declarations.features);
    match missing.iter().next() {
        Some(feature) => Err(Refusal::NotYetServed { feature }),
        None => Ok(()),
    }
}
