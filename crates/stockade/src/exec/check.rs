//! The rules of a request.

use super::ExecRequest;
use crate::fault::Fault;

/// Adds every fault of a request.
pub(super) fn all(request: &ExecRequest, faults: &mut Vec<Fault>) {
    let _ = (request, faults);
}
