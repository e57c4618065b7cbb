//! The suites: tables of probes, and the probes.

mod content;
mod delete;
mod exec;
mod files_in;
mod files_out;
mod fresh_acquire;
mod full;
mod instance_disposal;
mod list;
mod reach;
mod reclaim;
mod refused_reads;
mod refused_writes;
mod storage_base;

use crate::probe::Probe;
use crate::suite::Suite;

/// The probes of a suite, in one or more tables.
pub(crate) const fn probes(suite: Suite) -> &'static [&'static [Probe]] {
    match suite {
        Suite::StorageBase => &[storage_base::PROBES],
        Suite::Exec => &[exec::PROBES],
        Suite::FilesIn => &[files_in::PROBES, refused_writes::PROBES, full::PROBES],
        Suite::FilesOut => &[files_out::PROBES, refused_reads::PROBES],
        Suite::List => &[list::PROBES],
        Suite::Delete => &[delete::PROBES],
        Suite::Reclaim => &[reclaim::PROBES],
        Suite::Reach => &[reach::PROBES],
        Suite::FreshAcquire => &[fresh_acquire::PROBES],
        Suite::InstanceDisposal => &[instance_disposal::PROBES],
    }
}
