//! The suites: tables of probes, and the probes.

mod exec;

use crate::probe::Probe;
use crate::suite::Suite;

/// The probes of a suite.
pub(crate) const fn probes(suite: Suite) -> &'static [Probe] {
    match suite {
        Suite::Exec => exec::PROBES,
        _ => &[],
    }
}
