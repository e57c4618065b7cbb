//! Errors and refusals: what they say, and to whom.

use std::error::Error as _;
use std::time::Duration;

use stockade::disposal::RemovalFailure;
use stockade::error::{LeftBehindKind, Removal};
use stockade::files::{EntryKind, GuestPath};
use stockade::refusal::{IdentityMismatch, Never};
use stockade::spec::Storage;
use stockade::vocabulary::{
    DisposalCode, EgressMode, Identity, IdentityScope, OsFamily, TransferDirection,
};
use stockade::{
    BackendName, Capabilities, Capability, Error, ErrorKind, Feature, FileRefusal, Isolation,
    IsolationScope, LeftBehind, Operation, Phase, Refusal, Removed, Retry, Words,
};

use crate::builder;

fn text(text: &str) -> String {
    text.to_owned()
}

/// One of each reason.
fn refusals() -> Vec<Refusal> {
    let mut all = refusals_of_specs();
    all.extend(refusals_of_engines());
    all.extend(refusals_of_files());
    all
}

/// Reasons that a path, a batch or a file gives.
fn refusals_of_files() -> Vec<Refusal> {
    let at = || text("a/link");
    let reasons = [
        FileRefusal::Empty,
        FileRefusal::Nul,
        FileRefusal::Backslash,
        FileRefusal::TooLong { bytes: 5000 },
        FileRefusal::Absolute,
        FileRefusal::Outside,
        FileRefusal::Parent,
        FileRefusal::NameTooLong { bytes: 300 },
        FileRefusal::TooDeep { most: 64 },
        FileRefusal::WorkDir,
        FileRefusal::WorkDirLinked,
        FileRefusal::LinkedParent { at: at() },
        FileRefusal::ParentNotDirectory { at: at() },
        FileRefusal::Link,
        FileRefusal::IsDirectory,
        FileRefusal::NotDirectory,
        FileRefusal::NotRegular {
            kind: EntryKind::Fifo,
        },
        FileRefusal::Missing,
        FileRefusal::TooLarge { size: 9, most: 8 },
        FileRefusal::BatchTooLarge { size: 9, most: 8 },
        FileRefusal::TooManyFiles { count: 9, most: 8 },
        FileRefusal::Duplicate,
        FileRefusal::AlsoDirectory,
        FileRefusal::SourceShort { said: 9, was: 8 },
        FileRefusal::SourceLong { said: 9 },
        FileRefusal::SourceNotRegular,
        FileRefusal::SourceUnreadable {
            why: text("denied"),
        },
        FileRefusal::MountHidden {
            mount: text("/work/run"),
        },
        FileRefusal::NeedsRecursive,
        FileRefusal::NoSpace,
        FileRefusal::Denied,
        FileRefusal::ReadOnly,
        FileRefusal::NameRefused,
        FileRefusal::Changed,
        FileRefusal::StillThere,
        FileRefusal::MountPoint,
        FileRefusal::System { errno: 5 },
    ];
    let mut all: Vec<Refusal> = reasons
        .into_iter()
        .map(|why| GuestPath::work_dir().refused(why))
        .collect();
    all.push(Refusal::FilePlane {
        why: text("the engine cannot pause"),
    });
    all
}

/// Reasons that a spec alone gives.
fn refusals_of_specs() -> Vec<Refusal> {
    let files_out = Capabilities::from([Capability::FilesOut]);
    vec![
        Refusal::NoBackend { selected: None },
        Refusal::NoBackend {
            selected: BackendName::new("docker").ok(),
        },
        Refusal::IsolationTooWeak {
            asked: Isolation::MicroVm,
            given: Isolation::Container,
        },
        Refusal::CapabilityMissing { missing: files_out },
        Refusal::CapabilityDenied { denied: files_out },
        Refusal::IdentityDenied {
            denied: Words::from([Identity::User]),
        },
        Refusal::OsFamily {
            asked: OsFamily::Windows,
            served: Words::from([OsFamily::Posix]),
        },
        Refusal::TransferLimits {
            direction: TransferDirection::In,
            limit: "max_files",
            asked: 300,
            most: 256,
        },
        Refusal::EgressNotEnforced {
            asked: EgressMode::Allowlist,
            enforced: Words::none(),
        },
        Refusal::EgressMethods {
            missing: vec![text("PURGE")],
        },
        Refusal::ScopeNotEnforced {
            asked: IsolationScope::Call,
            enforced: Words::none(),
        },
        Refusal::KeyScopeMismatch {
            scope: IsolationScope::Call,
        },
        Refusal::KeyScopeMismatch {
            scope: IsolationScope::Conversation,
        },
        Refusal::AttachedIdentity {
            mismatch: IdentityMismatch::NotAsked,
        },
        Refusal::AttachedIdentity {
            mismatch: IdentityMismatch::Scope {
                most: IdentityScope::PerSandbox,
                given: IdentityScope::Shared,
            },
        },
        Refusal::AttachedIdentity {
            mismatch: IdentityMismatch::Retention {
                most: Duration::from_secs(1),
                given: Duration::from_secs(2),
            },
        },
        Refusal::AttachedIdentity {
            mismatch: IdentityMismatch::Channels {
                asked: Words::none(),
                given: Words::none(),
            },
        },
        Refusal::Unclean {
            code: DisposalCode::Timeout,
        },
        Refusal::ExecutionContract {
            wanted: Some(text("v2")),
            found: None,
        },
        Refusal::NotYetServed {
            feature: Feature::Services,
        },
        Refusal::NeverServed {
            what: Never::HostMounts,
        },
    ]
}

/// Reasons that an image or an engine gives.
fn refusals_of_engines() -> Vec<Refusal> {
    let digest = format!("sha256:{}", "0".repeat(64));
    vec![
        Refusal::ImageNotFound {
            reference: text("nope:1"),
            detail: text("manifest unknown"),
        },
        Refusal::ImageDigestMismatch {
            wanted: digest.parse().expect("a digest"),
            found: vec![text("sha256:11")],
        },
        Refusal::ImagePlatformMismatch {
            wanted: "linux/arm64".parse().expect("a platform"),
            found: text("linux/amd64"),
        },
        Refusal::BuildDirectory {
            directory: text("/srv/recipe"),
            why: text("there is no Dockerfile in it"),
        },
        Refusal::ImageBuild {
            directory: text("/srv/recipe"),
            why: text("a step failed"),
        },
        Refusal::ImageUserUnresolved {
            user: text("app"),
            why: text("no /etc/passwd"),
        },
        Refusal::ImageVolume {
            path: text("/data"),
        },
        Refusal::WorkDirHidesContent {
            path: text("/work"),
        },
        Refusal::WorkDirNotDirectory {
            path: text("/work"),
        },
        Refusal::LimitAboveEngine {
            limit: "memory",
            asked: 9,
            most: 8,
        },
        Refusal::LimitBelowFloor {
            limit: "pids",
            asked: 1,
            least: 16,
        },
        Refusal::NotAsPlanned {
            differences: vec!["memory: asked for 1, found 2".to_owned()],
        },
        Refusal::LimitNotEnforceable {
            limit: "pids",
            why: text("no pids control group"),
        },
        Refusal::MemoryRule {
            memory: 1,
            needed: 2,
        },
        Refusal::EngineTooOld {
            found: text("20.10"),
            needed: text("28"),
            for_what: text("an allowlist"),
        },
        Refusal::EngineForeign {
            found: text("podman"),
            needed: text("docker"),
        },
        Refusal::Drifted {
            fields: vec![text("image"), text("env")],
        },
        Refusal::Foreign {
            name: text("stockade-0123456789ab"),
        },
        Refusal::RuntimeNotCarried {
            platform: text("linux/s390x"),
        },
        Refusal::StorageMismatch {
            storage: Storage::Root,
            why: text("the root is read-only"),
        },
    ]
}

#[test]
fn every_refusal_is_one_lower_case_line_with_a_remedy() {
    for refusal in refusals() {
        let line = refusal.to_string();
        assert_ne!(line, refusal.code(), "a sentence of its own");
        assert!(
            line.starts_with(|c: char| c.is_lowercase() || c == '`'),
            "{line}"
        );
        assert!(line.contains("; ") && !line.contains('\n'), "{line}");
        assert!(!line.ends_with('.'), "{line}");
    }
}

#[test]
fn codes_are_unique_and_plain() {
    let mut codes: Vec<&str> = refusals().iter().map(Refusal::code).collect();
    codes.dedup();
    let count = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), count);
    assert_eq!(count, 74, "a new reason belongs into this file");
    for code in codes {
        assert!(
            code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{code}"
        );
    }
}

#[test]
fn foreign_text_in_a_refusal_is_short_and_on_one_line() {
    let long = "x\n\u{1b}[31m".repeat(10_000);
    for refusal in [
        Refusal::ImageNotFound {
            reference: long.clone(),
            detail: long.clone(),
        },
        Refusal::Drifted {
            fields: vec![long.clone(); 1000],
        },
        Refusal::ImageUserUnresolved {
            user: long.clone(),
            why: long,
        },
    ] {
        let line = refusal.to_string();
        assert!(line.len() < 4000, "{} bytes", line.len());
        assert!(!line.chars().any(char::is_control));
    }
}

#[test]
fn what_is_never_served_has_one_sentence_each() {
    for what in Never::ALL {
        let reason = what.reason();
        assert!(
            reason.contains("never") || reason.contains("no "),
            "{reason}"
        );
        assert!(reason.contains("; ") && !reason.contains('\n'), "{reason}");
    }
}

#[test]
fn another_backend_is_tried_only_where_it_can_help() {
    let retry = |refusal: Refusal| Error::refused(Operation::Acquire, refusal).retry();
    let weak = Refusal::IsolationTooWeak {
        asked: Isolation::Vm,
        given: Isolation::None,
    };
    assert_eq!(retry(weak), Retry::OtherBackend);
    let mounts = Refusal::NeverServed {
        what: Never::HostMounts,
    };
    assert_eq!(retry(mounts), Retry::Never);
    assert_eq!(retry(Refusal::Drifted { fields: Vec::new() }), Retry::Later);
    let files = |asked| Refusal::TransferLimits {
        direction: TransferDirection::In,
        limit: "max_files",
        asked,
        most: 10,
    };
    assert_eq!(retry(files(20)), Retry::OtherBackend);
    assert_eq!(retry(files(1000)), Retry::Never, "above every ceiling");
}

#[test]
fn an_error_is_one_word_and_tells_everything_it_was_given() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    let left = LeftBehind::new(LeftBehindKind::Container, "stockade-1", Removal::ByReap);
    let error = Error::new(ErrorKind::Unavailable, Operation::Acquire)
        .message("the engine does not answer; start it")
        .phase(Phase::Create)
        .left_behind(left.clone())
        .source(std::io::Error::other("connection refused"))
        .detail("line one\nline two")
        .build();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.operation(), Operation::Acquire);
    assert_eq!(error.phase(), Some(Phase::Create));
    assert_eq!(error.retry(), Retry::Later);
    assert_eq!(error.left_behind(), [left]);
    assert!(error.refusal().is_none() && error.faults().is_empty());
    assert!(error.source().unwrap().to_string().contains("refused"));
    assert_eq!(
        error.to_string(),
        "acquire (create): the engine does not answer; start it; left behind: container \
         stockade-1 (reaping removes it)"
    );
    let debug = format!("{error:?}");
    assert!(debug.lines().count() >= 4, "{debug}");
    for part in [
        "kind: unavailable",
        "because: connection refused",
        "| line two",
    ] {
        assert!(debug.contains(part), "{debug}");
    }
}

#[test]
fn an_error_without_words_still_says_what_its_kind_means() {
    for kind in ErrorKind::ALL {
        let error = Error::new(*kind, Operation::DisposeScope).build();
        let line = error.to_string();
        assert!(
            line.starts_with("dispose scope: ") && line.len() > 30,
            "{line}"
        );
    }
}

#[test]
fn an_error_stays_on_one_line_and_its_detail_is_bounded() {
    let error = Error::new(ErrorKind::Internal, Operation::Reap)
        .message("a\nb\u{1b}c")
        .detail("é".repeat(10_000))
        .build();
    assert!(!error.to_string().chars().any(char::is_control));
    assert!(error.detail().len() <= 8 * 1024);
}

#[test]
fn an_outer_layer_can_add_what_it_knows() {
    let inner = Error::from((
        Operation::Spawn,
        Refusal::Drifted {
            fields: vec![text("env")],
        },
    ));
    let outer = inner
        .reopen()
        .phase(Phase::Start)
        .retry(Retry::Never)
        .build();
    assert_eq!(
        (outer.phase(), outer.retry()),
        (Some(Phase::Start), Retry::Never)
    );
    assert_eq!(outer.refusal().map(Refusal::code), Some("drifted"));
}

#[test]
fn faults_of_a_spec_become_an_invalid_request() {
    let error = Error::from(builder().work_dir("x").build().unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(error.faults().len(), 1);
    assert_eq!(error.retry(), Retry::Never);
    assert!(
        error.to_string().starts_with("build spec: work_dir `x`:"),
        "{error}"
    );
}

#[test]
fn removal_failures_fold_into_the_first_code_of_the_order() {
    let mut removed = Removed::new(2);
    assert!(removed.is_clean() && removed.folded().is_none());
    let mut other = Removed::new(1);
    other.failures = vec![
        RemovalFailure::new(DisposalCode::Unknown, "a", "why"),
        RemovalFailure::new(DisposalCode::Timeout, "b", "slow"),
    ];
    removed.merge(other);
    let folded = removed.folded().unwrap();
    assert_eq!(removed.count, 3);
    assert_eq!(folded.code, DisposalCode::Timeout);
    assert_eq!(
        (folded.what.as_str(), folded.detail.as_str()),
        ("a, b", "why; slow")
    );
}
