//! What the harness promises.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use stockade::exec::ExecBuilder;
use stockade::files::EntryKind;
use stockade::memory::MemoryBackend;
use stockade::{Call, Capabilities, Capability};
use stockade_conformance::{
    At, Conformance, Doing, GuestAction, MemorySubject, Outcome, Seen, Subject, SubjectError, Suite,
};

use crate::{backend, call, report_of, run_of, spec};

#[tokio::test(start_paused = true)]
async fn a_backend_without_a_flaw_passes_every_probe() {
    let backend = backend();
    let report = report_of(&backend).await;
    report.assert_green();
    assert!(report.is_complete(), "{report}");
    let suites: Vec<Suite> = report.suites.iter().map(|suite| suite.suite).collect();
    assert_eq!(suites, Suite::ALL);
    assert_eq!(backend.sandboxes(), 0, "everything is disposed of");
}

#[tokio::test]
async fn a_backend_without_a_flaw_passes_on_a_clock_that_runs() {
    let suites = Suite::ALL.iter().copied();
    let conformance = run_of(&backend()).suites(suites.filter(|suite| *suite != Suite::Exec));
    conformance.run(&call()).await.assert_green();
}

#[test]
fn probes_have_names_of_their_own_and_reasons() {
    // Counted on a report of a call that is over, which runs nothing.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let over = Call::with_timeout(Duration::ZERO);
    let report = runtime.block_on(run_of(&backend()).run(&over));
    let names: BTreeSet<_> = report.probes().map(|(suite, p)| (suite, p.name)).collect();
    assert_eq!(names.len(), report.probes().count());
    assert!(names.len() >= 120, "there are {} probes", names.len());
    assert!(report.probes().all(|(_, probe)| probe.why.len() > 15));
}

#[tokio::test]
async fn a_call_that_is_over_fails_every_probe_and_passes_none() {
    let backend = backend();
    let over = call();
    over.cancel();
    let report = run_of(&backend).run(&over).await;
    assert!(!report.is_green());
    assert_eq!(report.failed().count(), report.probes().count());
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test]
async fn a_suite_whose_capability_is_undeclared_is_an_error() {
    let claims = |backend: MemoryBackend, capability: Option<Capability>| {
        let declarations = stockade::Backend::declarations(&backend).clone();
        backend.with_declarations(declarations.with_capabilities(capability))
    };
    for &suite in Suite::ALL {
        let Some(capability) = suite.capability() else {
            continue;
        };
        let without = claims(backend(), None);
        let report = run_of(&without).suites([suite]).run(&call()).await;
        assert!(!report.is_green(), "{report}");
        assert!(report.suites[0].probes.is_empty());
        let why = report.suites[0].refused.as_deref().unwrap();
        assert!(why.contains(capability.as_str()), "{why}");
        assert!(report.to_string().contains("REFUSED"), "{report}");
    }
}

#[tokio::test]
async fn a_run_of_no_suite_is_not_green() {
    let report = run_of(&backend()).suites([]).run(&call()).await;
    assert!(!report.is_green() && !report.is_complete());
}

#[tokio::test]
async fn a_probe_that_needs_what_is_undeclared_is_skipped_and_not_passed() {
    let backend = backend();
    let declarations = stockade::Backend::declarations(&backend).clone();
    let declarations = declarations.with_capabilities([Capability::Exec, Capability::FilesIn]);
    let backend = backend.with_declarations(declarations);
    let report = run_of(&backend)
        .suites([Suite::Reach, Suite::StorageBase])
        .run(&call())
        .await;
    let outcome = |name: &str| {
        let mut probes = report.probes();
        let probe = probes.find(|(_, probe)| probe.name == name).unwrap().1;
        probe.outcome.clone()
    };
    let skipped = outcome("a_removal_takes_nothing_beyond_the_guest");
    assert!(
        matches!(&skipped, Outcome::Skipped(why) if why.contains("files_delete")),
        "{skipped:?}"
    );
    assert_eq!(
        outcome("a_write_leaves_nothing_beyond_the_guest"),
        Outcome::Passed
    );
    assert!(report.is_green() && !report.is_complete(), "{report}");
    assert!(
        report.to_json().contains("\"outcome\": \"skipped\""),
        "{}",
        report.to_json()
    );
}

#[tokio::test]
async fn a_suite_in_which_nothing_passed_is_not_green() {
    let backend = backend();
    let declarations = stockade::Backend::declarations(&backend).clone();
    let backend = backend.with_declarations(declarations.with_capabilities([Capability::Exec]));
    let report = run_of(&backend)
        .suites([Suite::StorageBase])
        .run(&call())
        .await;
    assert_eq!(report.failed().count(), 0, "{report}");
    assert!(!report.is_green(), "{report}");
}

#[tokio::test]
async fn a_probe_that_panics_stops_no_other() {
    let backend = backend();
    let subject = Unruly::new(&backend, |_| panic!("as a subject may"));
    let report = Conformance::new(Arc::new(backend.clone()), spec())
        .subject(Arc::new(subject))
        .suites([Suite::FilesOut])
        .run(&call())
        .await;
    let panicked: Vec<_> = report.failed().map(|(_, probe)| probe).collect();
    assert!(panicked.len() == 1, "{report}");
    let detail = panicked[0].outcome.detail().unwrap();
    assert!(detail.contains("as a subject may"), "{detail}");
    let text = report.to_string();
    assert!(
        text.contains(panicked[0].name) && text.contains(panicked[0].why),
        "{text}"
    );
    let passed = report
        .probes()
        .filter(|(_, probe)| probe.outcome == Outcome::Passed);
    assert_eq!(passed.count(), report.probes().count() - 1);
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test]
async fn a_probe_that_raises_stops_no_other() {
    let backend = backend();
    let subject = Unruly::new(&backend, |_| {
        Err(SubjectError::failed("the tool is broken"))
    });
    let report = Conformance::new(Arc::new(backend), spec())
        .subject(Arc::new(subject))
        .suites([Suite::FilesOut])
        .run(&call())
        .await;
    assert_eq!(report.failed().count(), 1, "{report}");
    assert!(report.to_string().contains("the tool is broken"));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_ends_is_a_failure_and_stops_no_other() {
    let backend = backend();
    let subject = Unruly::hanging(&backend);
    let report = Conformance::new(Arc::new(backend.clone()), spec())
        .subject(Arc::new(subject))
        .suites([Suite::FilesOut])
        .run(&call())
        .await;
    assert_eq!(report.failed().count(), 1, "{report}");
    assert!(report.to_string().contains("did not end"), "{report}");
    assert_eq!(backend.sandboxes(), 0);
}

#[tokio::test]
async fn what_the_guest_cannot_do_is_skipped() {
    let backend = backend();
    let subject = Unruly::new(&backend, |_| Err(SubjectError::unsupported("no tool")));
    let report = Conformance::new(Arc::new(backend), spec())
        .subject(Arc::new(subject))
        .suites([Suite::FilesOut])
        .run(&call())
        .await;
    assert_eq!(report.skipped().count(), 1, "{report}");
    assert!(report.is_green() && !report.is_complete());
}

#[tokio::test]
async fn a_run_that_is_dropped_disposes_of_everything() {
    let backend = backend();
    let conformance = run_of(&backend);
    let call = call();
    let mut run = Box::pin(conformance.run(&call));
    // Until it has made something.
    while backend.sandboxes() == 0 {
        let ended = tokio::time::timeout(Duration::from_millis(1), &mut run).await;
        assert!(ended.is_err(), "the run ended without a sandbox");
    }
    drop(run);
    let disposed = async {
        while backend.sandboxes() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let disposed = tokio::time::timeout(Duration::from_secs(30), disposed).await;
    assert!(disposed.is_ok(), "{} are left", backend.sandboxes());
}

#[tokio::test]
async fn no_two_runs_share_a_sandbox() {
    let backend = backend();
    let call = call();
    let one = run_of(&backend).suites([Suite::Delete, Suite::FreshAcquire]);
    let other = run_of(&backend).suites([Suite::FreshAcquire, Suite::Delete]);
    let (one, other) = tokio::join!(one.run(&call), other.run(&call));
    one.assert_green();
    other.assert_green();
}

#[test]
fn suites_survive_their_spelling() {
    for &suite in Suite::ALL {
        assert_eq!(suite.as_str().parse(), Ok(suite));
    }
    let unknown = "nothing".parse::<Suite>().unwrap_err();
    assert!(unknown.contains("nothing") && unknown.contains("files_in"));
}

type Misbehaviour = Box<dyn Fn(usize) -> Result<(), SubjectError> + Send + Sync>;

/// A guest that misbehaves when the first device is to be planted, as a
/// backend's own subject may.
struct Unruly {
    guest: MemorySubject,
    devices: AtomicUsize,
    misbehave: Option<Misbehaviour>,
}

impl Unruly {
    fn new(
        backend: &MemoryBackend,
        misbehave: impl Fn(usize) -> Result<(), SubjectError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            misbehave: Some(Box::new(misbehave)),
            ..Self::hanging(backend)
        }
    }

    fn hanging(backend: &MemoryBackend) -> Self {
        Self {
            guest: MemorySubject::new(backend.clone()),
            devices: AtomicUsize::new(0),
            misbehave: None,
        }
    }
}

impl Subject for Unruly {
    fn needs(&self) -> Capabilities {
        self.guest.needs()
    }

    fn outside(&self) -> Vec<u8> {
        self.guest.outside()
    }

    fn command(&self, action: &GuestAction) -> Result<ExecBuilder, SubjectError> {
        self.guest.command(action)
    }

    fn plant_directory<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        self.guest.plant_directory(at, path)
    }

    fn plant_file<'a>(&'a self, at: &'a At, path: &'a [u8], content: &'a [u8]) -> Doing<'a, ()> {
        self.guest.plant_file(at, path, content)
    }

    fn plant_zeros<'a>(&'a self, at: &'a At, path: &'a [u8], size: u64) -> Doing<'a, ()> {
        self.guest.plant_zeros(at, path, size)
    }

    fn plant_symlink<'a>(&'a self, at: &'a At, target: &'a [u8], path: &'a [u8]) -> Doing<'a, ()> {
        self.guest.plant_symlink(at, target, path)
    }

    fn plant_special<'a>(&'a self, at: &'a At, kind: EntryKind, path: &'a [u8]) -> Doing<'a, ()> {
        if kind != EntryKind::CharDevice {
            return self.guest.plant_special(at, kind, path);
        }
        let count = self.devices.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match &self.misbehave {
                Some(misbehave) => misbehave(count),
                None => std::future::pending().await,
            }
        })
    }

    fn plant_protected<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        self.guest.plant_protected(at, path)
    }

    fn set_mode<'a>(&'a self, at: &'a At, path: &'a [u8], mode: u32) -> Doing<'a, ()> {
        self.guest.set_mode(at, path, mode)
    }

    fn set_modified<'a>(&'a self, at: &'a At, path: &'a [u8], seconds: u64) -> Doing<'a, ()> {
        self.guest.set_modified(at, path, seconds)
    }

    fn fill_bytes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        self.guest.fill_bytes(at, path, leave)
    }

    fn fill_inodes<'a>(&'a self, at: &'a At, path: &'a [u8], leave: u64) -> Doing<'a, ()> {
        self.guest.fill_inodes(at, path, leave)
    }

    fn look<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Option<Seen>> {
        self.guest.look(at, path)
    }

    fn read<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, Bytes> {
        self.guest.read(at, path)
    }

    fn the_guest_can_write<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        self.guest.the_guest_can_write(at, path)
    }

    fn the_guest_can_delete<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, bool> {
        self.guest.the_guest_can_delete(at, path)
    }

    fn clear<'a>(&'a self, at: &'a At, path: &'a [u8]) -> Doing<'a, ()> {
        self.guest.clear(at, path)
    }
}
