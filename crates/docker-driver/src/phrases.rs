//! Docker's English texts, where text is all there is.

use crate::verb::{Exit, Output};

/// Whether a `docker run` that ended like this failed itself, and not the
/// program that it ran.
pub(crate) fn is_dockers_own(output: &Output) -> bool {
    matches!(output.exit, Exit::Code(125..=127)) && output.stderr.starts_with(b"docker: ")
}
