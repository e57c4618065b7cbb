//! One probe, and how it ends early.

use std::fmt;
use std::sync::Arc;

use stockade::{BoxFuture, Capability, Error, Refusal};

use crate::site::{Bench, Site};
use crate::subject::SubjectError;

/// One attack on one claim.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    /// Why it exists: what is wrong with a backend that fails it.
    pub(crate) why: &'static str,
    /// What it needs besides the capability of its suite.
    pub(crate) needs: &'static [Capability],
    pub(crate) run: Run,
}

/// Where a probe works.
pub(crate) enum Run {
    /// In a directory of its own.
    OnSite(fn(Arc<Site>) -> BoxFuture<'static, Verdict>),
    /// With sandboxes of its own.
    OnBench(fn(Arc<Bench>) -> BoxFuture<'static, Verdict>),
}

/// What a probe, or a step of it, found: nothing, or why it stopped.
pub(crate) type Verdict<T = ()> = Result<T, Stop>;

/// Why a probe stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(String),
    Skipped(String),
}

/// Declares the probes of a suite: functions of this module, what each needs,
/// and why it exists.
macro_rules! probes {
    ($run:ident; $($name:ident $([$($need:ident),+])? : $why:literal;)+) => {
        pub(super) const PROBES: &[$crate::probe::Probe] = &[$($crate::probe::Probe {
            name: stringify!($name),
            why: $why,
            needs: &[$($(stockade::Capability::$need),+)?],
            run: $crate::probe::Run::$run(|place| Box::pin(async move { $name(&place).await })),
        }),+];
    };
}

/// Fails the probe with this text unless the condition holds.
macro_rules! demand {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err($crate::probe::Stop::Failed(format!($($text)+)));
        }
    };
}

pub(crate) use {demand, probes};

/// Demands a refusal of this code.
pub(crate) fn refused_as<T: fmt::Debug>(answer: Result<T, Error>, code: &str) -> Verdict {
    let error = match answer {
        Ok(answer) => {
            let answer = format!("{answer:?}");
            let shown: String = answer.chars().take(200).collect();
            return Err(Stop::Failed(format!(
                "it was to be refused as `{code}`, and succeeded with {shown}"
            )));
        }
        Err(error) => error,
    };
    let found = error.refusal().map(Refusal::code);
    demand!(
        found == Some(code),
        "it was to be refused as `{code}`, and ended with: {error}"
    );
    Ok(())
}

impl Stop {
    /// Adds what was being done.
    pub(crate) fn during(self, what: &str) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(format!("{what}: {why}")),
            Self::Skipped(why) => Self::Skipped(why),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(refusal.to_string())
    }
}

impl From<SubjectError> for Stop {
    fn from(error: SubjectError) -> Self {
        match error {
            SubjectError::Unsupported(_) => Self::Skipped(error.to_string()),
            SubjectError::Failed(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("content cannot be read: {error}"))
    }
}
