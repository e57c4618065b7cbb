//! Fixed words, sets of them, and names.

use stockade::vocabulary::{Cleanup, DisposalCode, EgressMode, IdentityScope};
use stockade::{
    BackendName, Capabilities, Capability, InstanceId, Isolation, IsolationScope, Kind, SandboxKey,
};

#[test]
fn a_word_survives_its_spelling_and_an_unknown_one_is_an_error() {
    for isolation in Isolation::ALL {
        assert_eq!(isolation.as_str().parse(), Ok(*isolation));
    }
    for unknown in ["process", "Container", "", " container"] {
        let error = unknown.parse::<Isolation>().unwrap_err();
        assert!(error.to_string().contains("os_process"), "{error}");
    }
}

#[test]
fn spellings_are_those_of_the_reference() {
    assert_eq!("os_process".parse(), Ok(Isolation::OsProcess));
    assert_eq!("microvm".parse(), Ok(Isolation::MicroVm));
    assert_eq!("per_sandbox".parse(), Ok(IdentityScope::PerSandbox));
    assert_eq!("egress_methods".parse(), Ok(Capability::EgressMethods));
    assert_eq!("allowlist".parse(), Ok(EgressMode::Allowlist));
    assert_eq!("unlisted".parse(), Ok(DisposalCode::Unlisted));
}

#[test]
fn ranks_are_those_of_the_reference() {
    assert!(Isolation::ALL.is_sorted() && Isolation::Container < Isolation::MicroVm);
    assert!(IsolationScope::Conversation < IsolationScope::Call);
    assert!(Cleanup::Reclaim < Cleanup::Reset && Cleanup::Reset < Cleanup::Dispose);
    assert!(IdentityScope::PerSandbox < IdentityScope::Shared);
}

#[test]
fn sets_behave_as_sets() {
    let all: Capabilities = Capability::ALL.iter().copied().collect();
    let two = Capabilities::from([Capability::Exec, Capability::FilesOut]);
    assert_eq!((two.len(), all.len()), (2, Capability::ALL.len()));
    assert!(two.is_subset(all) && !all.is_subset(two));
    assert_eq!(
        all.without(two)
            .with(Capability::Exec)
            .common(two)
            .to_string(),
        "exec"
    );
    assert_eq!(two.to_string(), "exec, files_out");
    assert_eq!(Capabilities::none().to_string(), "none");
    assert!(Capabilities::none().is_empty());
}

#[test]
fn names_keep_their_rules() {
    assert!(Kind::new("data analysis").is_ok());
    for bad in ["", " a", "a ", "a\nb", &"a".repeat(129)] {
        assert!(Kind::new(bad).is_err(), "{bad:?}");
    }
    assert!(BackendName::new("docker-2").is_ok());
    for bad in ["", "Docker", "-a", "a-", "a_b", &"a".repeat(65)] {
        assert!(BackendName::new(bad).is_err(), "{bad:?}");
    }
    assert!(InstanceId::new("0f".repeat(32)).is_ok());
    let error = InstanceId::new("").unwrap_err().to_string();
    assert!(error.starts_with("instance id"), "{error}");
}

#[test]
fn keys_differ_in_every_part_and_any_text_is_a_part() {
    let key = SandboxKey::new("a", "b/c", "\0");
    assert!(!key.is_per_call());
    assert!(key.clone().with_call("1").is_per_call());
    assert_ne!(key, key.clone().with_call("1"));
    assert_ne!(key, SandboxKey::new("a/b", "c", "\0"));
    assert_eq!(key.clone().with_call(""), key);
    assert!(!key.to_string().contains('\0'));
}
