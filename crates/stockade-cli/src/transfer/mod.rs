//! Files between the host and a sandbox: what is meant, in which batches it
//! goes, and what became of it.

mod batches;
mod download;
mod outputs;
#[cfg(test)]
mod tests;
mod upload;

pub(crate) use download::{Brought, Manner, bring};
pub(crate) use outputs::{Destination, Output, Wanted};
pub(crate) use upload::{Sent, send};
