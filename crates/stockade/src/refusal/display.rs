//! The sentences of refusals: what was asked, what is wrong, what to do.

use std::fmt;

use super::{IdentityMismatch, Never, Refusal};

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Display for IdentityMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Never {
    /// Why it is never served, and what to do instead.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.as_str()
    }
}
