//! Faults of a caller's input, all at once.

use std::fmt;

use crate::text::excerpt;

/// One thing that is wrong with a field of a caller's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    field: &'static str,
    asked: String,
    wrong: String,
    remedy: String,
}

/// Everything that is wrong with a spec; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecErrors {
    faults: Vec<Fault>,
}

impl Fault {
    pub(crate) fn new(
        field: &'static str,
        asked: impl fmt::Display,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            field,
            asked: excerpt(&asked.to_string()),
            wrong: wrong.into(),
            remedy: remedy.into(),
        }
    }

    /// The field, as its setter is called; parts after a dot.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What was asked, shortened; empty when nothing was.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// What is wrong with it.
    #[must_use]
    pub fn wrong(&self) -> &str {
        &self.wrong
    }

    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            asked,
            wrong,
            remedy,
        } = self;
        if asked.is_empty() {
            write!(f, "{field}: {wrong}; {remedy}")
        } else {
            write!(f, "{field} `{asked}`: {wrong}; {remedy}")
        }
    }
}

impl SpecErrors {
    /// The value when there is no fault.
    pub(crate) fn or<T>(faults: Vec<Fault>, value: impl FnOnce() -> T) -> Result<T, Self> {
        if faults.is_empty() {
            Ok(value())
        } else {
            Err(Self { faults })
        }
    }

    /// These faults, of which there is at least one.
    pub(crate) fn of(faults: Vec<Fault>) -> Self {
        debug_assert!(!faults.is_empty(), "an error has a fault");
        Self { faults }
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    /// The faults, in the order of the fields.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(&self.faults))
    }
}

impl std::error::Error for SpecErrors {}

/// The faults on one line.
pub(crate) fn listed(faults: &[Fault]) -> String {
    match faults {
        [only] => only.to_string(),
        several => {
            let texts: Vec<String> = several
                .iter()
                .enumerate()
                .map(|(at, fault)| format!("({}) {fault}", at + 1))
                .collect();
            format!("{} faults: {}", several.len(), texts.join(" "))
        }
    }
}
