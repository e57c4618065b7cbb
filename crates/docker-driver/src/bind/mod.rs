//! Finding an engine, and holding on to it.

mod config;
mod error;
mod facts;

pub use self::config::{BindConfig, Environment, Timeouts};
pub use self::error::BindError;
pub use self::facts::{ApiVersion, Endpoint, EngineFacts, EngineVersion};
