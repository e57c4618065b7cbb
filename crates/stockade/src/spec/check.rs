//! The rules of single fields and between fields.

use super::WorkDir;
use super::builder::SpecBuilder;
use crate::fault::Fault;

/// Adds every fault of a spec to be built, apart from its kind and work directory.
pub(super) fn all(spec: &SpecBuilder, _work_dir: &WorkDir, faults: &mut Vec<Fault>) {
    if let Some(image) = &spec.image {
        image.check("image", faults);
    }
}
