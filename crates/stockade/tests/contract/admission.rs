//! Declarations against specs: what is refused, and in which order.

use std::time::Duration;

use stockade::declarations::{AttachedIdentity, Declarations, MethodTokens};
use stockade::refusal::IdentityMismatch;
use stockade::spec::{HostTools, IdentityBounds};
use stockade::vocabulary::{
    AuthorityChannel, EgressMode, IdentityScope, OsFamily, TransferDirection,
};
use stockade::{
    BothTransferLimits, Capabilities, Capability, Egress, EgressPolicy, EgressRule, Feature,
    Isolation, IsolationScope, Refusal, SpecBuilder, TransferLimits, Words, admit, admit_key,
};

use crate::{builder, key, spec};

/// Everything that a spec of defaults needs.
fn enough() -> Declarations {
    Declarations::new().with_egress_modes([EgressMode::Closed])
}

fn refusal(declarations: &Declarations, builder: SpecBuilder) -> Refusal {
    let spec = builder.build().expect("the spec is valid");
    admit(declarations, &spec).expect_err("the spec is refused")
}

fn allow(rules: &[&str]) -> Egress {
    Egress::Allowlist(EgressPolicy::parse(rules.iter().copied()).expect("rules are valid"))
}

fn minute() -> Duration {
    Duration::from_secs(60)
}

fn identity() -> AttachedIdentity {
    AttachedIdentity::new(
        IdentityScope::PerScope,
        minute(),
        [AuthorityChannel::EgressHeader],
    )
}

/// A spec with a credential on a rule.
fn with_credential(scope: IdentityScope, retention: Duration) -> SpecBuilder {
    let rule = EgressRule::new("a.test").and_then(|rule| rule.with_authority("x"));
    let rules = [rule.expect("the rule is valid")];
    builder()
        .requires([Capability::AttachedIdentity])
        .identity_bounds(IdentityBounds::new(scope, retention))
        .egress(Egress::from_rules(rules).expect("the rules are valid"))
}

#[test]
fn a_spec_of_defaults_is_served_by_the_least_that_encloses() {
    assert_eq!(admit(&enough(), &spec()), Ok(()));
}

#[test]
fn silence_refuses_every_spec() {
    assert_eq!(
        refusal(&Declarations::default(), builder()),
        Refusal::EgressNotEnforced {
            asked: EgressMode::Closed,
            enforced: Words::none(),
        }
    );
}

#[test]
fn no_egress_mode_stands_in_for_another() {
    let allowlist = || builder().egress(allow(&["a.test"]));
    let open = || builder().egress(Egress::Unrestricted);
    for (declared, asked) in [
        ([EgressMode::Closed], allowlist()),
        ([EgressMode::Unrestricted], allowlist()),
        ([EgressMode::Closed], open()),
        ([EgressMode::Allowlist], open()),
        ([EgressMode::Allowlist], builder()),
        ([EgressMode::Unrestricted], builder()),
    ] {
        let declarations = Declarations::new().with_egress_modes(declared);
        assert_eq!(refusal(&declarations, asked).code(), "egress_not_enforced");
    }
}

#[test]
fn isolation_is_a_floor() {
    let container = enough().with_isolation(Isolation::Container);
    let at_least = |isolation| builder().min_isolation(isolation).build().unwrap();
    assert_eq!(admit(&container, &at_least(Isolation::Container)), Ok(()));
    assert_eq!(admit(&container, &at_least(Isolation::OsProcess)), Ok(()));
    assert_eq!(
        admit(&container, &at_least(Isolation::MicroVm)),
        Err(Refusal::IsolationTooWeak {
            asked: Isolation::MicroVm,
            given: Isolation::Container,
        })
    );
}

#[test]
fn every_missing_capability_is_named() {
    let asked = builder().requires([Capability::Exec, Capability::RunCode, Capability::Snapshot]);
    assert_eq!(
        refusal(&enough(), asked),
        Refusal::CapabilityMissing {
            missing: Capabilities::from([Capability::RunCode, Capability::Snapshot]),
        }
    );
}

#[test]
fn methods_are_matched_one_by_one_unless_any_is_served() {
    let with = |tokens| {
        Declarations::new()
            .with_capabilities([Capability::Exec, Capability::EgressMethods])
            .with_egress_modes([EgressMode::Allowlist])
            .with_egress_method_tokens(tokens)
    };
    let asked = || builder().egress(allow(&["GET,PURGE a.test", "POST,PURGE b.test"]));
    let some = with(MethodTokens::Only(vec!["GET".to_owned()]));
    assert_eq!(
        refusal(&some, asked()),
        Refusal::EgressMethods {
            missing: vec!["POST".to_owned(), "PURGE".to_owned()],
        }
    );
    assert_eq!(
        admit(&with(MethodTokens::Any), &asked().build().unwrap()),
        Ok(())
    );
}

#[test]
fn an_unknown_family_serves_no_named_one() {
    let asked = || builder().os_family(OsFamily::Posix);
    assert_eq!(refusal(&enough(), asked()).code(), "os_family");
    let known = enough().with_os_families([OsFamily::Posix]);
    assert_eq!(admit(&known, &asked().build().unwrap()), Ok(()));
}

#[test]
fn transfer_limits_are_refused_and_never_cut() {
    let small = TransferLimits::new(1024, 2048, 2);
    let declarations = enough().with_limits(BothTransferLimits::new(small, small));
    assert_eq!(
        refusal(&declarations, builder().files_in(small)),
        Refusal::TransferLimits {
            direction: TransferDirection::Out,
            limit: "max_bytes_per_file",
            asked: 8 * 1024 * 1024,
            most: 1024,
        }
    );
    let within = builder().files_in(small).files_out(small).build().unwrap();
    assert_eq!(admit(&declarations, &within), Ok(()));
}

#[test]
fn isolation_scopes_are_matched_exactly() {
    let per_call = || builder().isolation_scope(IsolationScope::Call);
    assert_eq!(refusal(&enough(), per_call()).code(), "scope_not_enforced");
    let only_call = enough().with_isolation_scopes([IsolationScope::Call]);
    assert_eq!(refusal(&only_call, builder()).code(), "scope_not_enforced");
    assert_eq!(admit(&only_call, &per_call().build().unwrap()), Ok(()));
}

#[test]
fn a_part_is_refused_until_a_backend_declares_it() {
    let asked = || {
        builder()
            .requires([Capability::HostTools])
            .host_tools(HostTools::new(["search"]))
    };
    let without = enough().with_capabilities([Capability::HostTools]);
    assert_eq!(
        refusal(&without, asked()),
        Refusal::NotYetServed {
            feature: Feature::HostToolCalls,
        }
    );
    let with = without.with_features([Feature::HostToolCalls]);
    assert_eq!(admit(&with, &asked().build().unwrap()), Ok(()));
}

#[test]
fn a_credential_is_attached_exactly_as_asked() {
    let attaching = |identity| {
        Declarations::new()
            .with_capabilities([Capability::AttachedIdentity])
            .with_egress_modes([EgressMode::Closed, EgressMode::Allowlist])
            .with_attached_identity(identity)
    };
    let mismatch = |declarations: &Declarations, builder| match refusal(declarations, builder) {
        Refusal::AttachedIdentity { mismatch } => mismatch,
        other => panic!("{other}"),
    };
    let fits = || with_credential(IdentityScope::PerScope, minute());
    assert_eq!(
        admit(&attaching(identity()), &fits().build().unwrap()),
        Ok(())
    );
    assert_eq!(
        mismatch(&attaching(identity()), builder()),
        IdentityMismatch::NotAsked
    );
    let narrow = with_credential(IdentityScope::PerSandbox, minute());
    assert!(matches!(
        mismatch(&attaching(identity()), narrow),
        IdentityMismatch::Scope { .. }
    ));
    let short = with_credential(IdentityScope::PerScope, Duration::from_secs(59));
    assert!(matches!(
        mismatch(&attaching(identity()), short),
        IdentityMismatch::Retention { .. }
    ));
    let no_rule = fits().egress(Egress::Closed);
    assert!(matches!(
        mismatch(&attaching(identity()), no_rule),
        IdentityMismatch::Channels { .. }
    ));
}

#[test]
fn a_credential_that_is_only_claimed_is_missing() {
    let claims = Declarations::new()
        .with_capabilities([Capability::AttachedIdentity])
        .with_egress_modes([EgressMode::Allowlist]);
    let asked = with_credential(IdentityScope::Shared, minute());
    assert_eq!(
        refusal(&claims, asked),
        Refusal::CapabilityMissing {
            missing: Capabilities::from([Capability::AttachedIdentity]),
        }
    );
}

#[test]
fn the_first_reason_in_the_documented_order_is_given() {
    let small = TransferLimits::new(1, 1, 1);
    let everything_wrong = || {
        with_credential(IdentityScope::PerSandbox, minute())
            .min_isolation(Isolation::Vm)
            .egress(allow(&["GET a.test"]))
            .os_family(OsFamily::Windows)
            .isolation_scope(IsolationScope::Call)
            .exclusive_admission(true)
    };
    let mut declarations = Declarations::new()
        .with_limits(BothTransferLimits::new(small, small))
        .with_attached_identity(identity());
    type Repair = fn(&mut Declarations);
    let repairs: [(&str, Repair); 9] = [
        ("attached_identity", |it| it.attached_identity = None),
        ("isolation_too_weak", |it| it.isolation = Isolation::Vm),
        ("capability_missing", |it| {
            it.capabilities = Capability::ALL.iter().copied().collect();
            let narrow = AttachedIdentity::new(IdentityScope::PerSandbox, Duration::ZERO, []);
            it.attached_identity = Some(narrow);
        }),
        ("egress_methods", |it| {
            it.egress_method_tokens = MethodTokens::Any
        }),
        ("os_family", |it| {
            it.os_families = Words::from([OsFamily::Windows])
        }),
        ("transfer_limits", |it| {
            it.limits = BothTransferLimits::default()
        }),
        ("egress_not_enforced", |it| {
            it.egress_modes = Words::from([EgressMode::Allowlist])
        }),
        ("scope_not_enforced", |it| {
            it.isolation_scopes = Words::from([IsolationScope::Call])
        }),
        ("not_yet_served", |it| {
            it.features = Words::from([Feature::ExclusiveAdmission])
        }),
    ];
    for (code, repair) in repairs {
        assert_eq!(refusal(&declarations, everything_wrong()).code(), code);
        repair(&mut declarations);
    }
    assert_eq!(
        admit(&declarations, &everything_wrong().build().unwrap()),
        Ok(())
    );
}

#[test]
fn a_key_fits_the_scope_both_ways() {
    let per_call = builder()
        .isolation_scope(IsolationScope::Call)
        .build()
        .unwrap();
    let with_call = key().with_call("call");
    assert_eq!(admit_key(&spec(), &key()), Ok(()));
    assert_eq!(admit_key(&per_call, &with_call), Ok(()));
    for (spec, key) in [(spec(), with_call), (per_call, key())] {
        let scope = spec.isolation_scope();
        assert_eq!(
            admit_key(&spec, &key),
            Err(Refusal::KeyScopeMismatch { scope })
        );
    }
}
