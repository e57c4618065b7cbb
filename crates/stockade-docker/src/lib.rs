//! The Docker backend of Stockade: sandboxes as containers of one engine,
//! driven through the docker command line client.
//!
//! A [`DockerBackend`] is bound to one engine when it is made, and implements
//! [`stockade::Backend`]. Everything about a container that a spec decides is
//! planned as a value before anything exists, what the engine really did is
//! read back before guest code runs, and every container ends by itself when
//! its host is gone.
//!
//! ```no_run
//! use std::time::Duration;
//! use stockade::{Backend, Call, ExecRequest, Image, SandboxKey, SandboxSpec, Which};
//! use stockade_docker::{DockerBackend, DockerConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let call = Call::with_timeout(Duration::from_secs(60));
//! let backend = DockerBackend::connect(&call, DockerConfig::new("my-service")).await?;
//! let spec = SandboxSpec::builder("python").image(Image::reference("python:3.13-slim")).build()?;
//! let key = SandboxKey::new("user-1", "thread-1", "agent");
//! let sandbox = backend.acquire(&call, &key, &spec).await?;
//! let request = ExecRequest::argv(["python3", "-c", "print(6 * 7)"]).build()?;
//! println!("{}", sandbox.exec(&call, request).await?.stdout_text());
//! let removed = backend.dispose(&call, &key, Which::All).await?;
//! assert!(removed.is_clean());
//! # Ok(()) }
//! ```

#![forbid(unsafe_code)]

mod acquire;
mod backend;
mod channel;
mod config;
mod decide;
mod definition;
mod dispose;
pub mod doctor;
mod engine;
mod files;
mod hold;
mod image;
mod instance;
mod ledger;
mod names;
pub mod operate;
mod permission;
mod plan;
mod reap;
mod retire;
mod runtime;
mod verify;

pub use backend::DockerBackend;
pub use config::{DockerConfig, FilePlane, Progress, RuntimeSource};
