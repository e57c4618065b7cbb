//! The contract's own rules, each as a test that names it.

mod admission;
mod commands;
mod errors;
mod files;
mod images;
mod lifetimes;
mod processes;
mod requests;
mod specs;
mod words;

use std::sync::Arc;
use std::time::Duration;

use stockade::memory::MemoryBackend;
use stockade::{Backend, Call, Image, Sandbox, SandboxKey, SandboxSpec, SpecBuilder};

/// A call that no test outlives.
fn call() -> Call {
    Call::with_timeout(Duration::from_secs(3600))
}

/// A spec builder with everything that is required.
fn builder() -> SpecBuilder {
    SandboxSpec::builder("test").image(Image::reference("test"))
}

fn spec() -> Arc<SandboxSpec> {
    builder().build().expect("a spec of defaults is valid")
}

fn key() -> SandboxKey {
    SandboxKey::new("scope", "thread", "agent")
}

async fn acquire(backend: &MemoryBackend) -> Sandbox {
    let acquired = backend.acquire(&call(), &key(), &spec()).await;
    acquired.expect("a backend in memory serves a spec of defaults")
}
