//! The suites themselves: they pass what is right, and catch every lie.

mod flaws;
mod harness;

use std::sync::Arc;
use std::time::Duration;

use stockade::memory::MemoryBackend;
use stockade::{Backend, Call, Image, ResourceLimits, SandboxSpec, TransferLimits};
use stockade_conformance::{Conformance, MemorySubject, Report};

/// A call that no test outlives.
fn call() -> Call {
    Call::with_timeout(Duration::from_secs(24 * 3600))
}

/// A spec with room for every probe, and small enough to be filled quickly.
fn spec() -> Arc<SandboxSpec> {
    let mut limits = ResourceLimits::default();
    limits.work_bytes = 24 * 1024 * 1024;
    limits.work_inodes = 2000;
    let transfer = TransferLimits::new(2 * 1024 * 1024, 8 * 1024 * 1024, 128);
    SandboxSpec::builder("conformance")
        .image(Image::reference("any"))
        .limits(limits)
        .files_in(transfer)
        .files_out(transfer)
        .build()
        .expect("the spec is valid")
}

/// A run of every suite against a backend in memory.
fn run_of(backend: &MemoryBackend) -> Conformance {
    let subject = MemorySubject::new(backend.clone());
    let backend: Arc<dyn Backend> = Arc::new(backend.clone());
    Conformance::new(backend, spec()).subject(Arc::new(subject))
}

fn backend() -> MemoryBackend {
    MemorySubject::programs(MemoryBackend::new())
}

async fn report_of(backend: &MemoryBackend) -> Report {
    run_of(backend).run(&call()).await
}
