//! Why a command could not do what it was asked.

use serde_json::{Value, json};
use stockade::Call;

use crate::interrupt::Interrupted;
use crate::{advice, exit, report, say};

/// One failure; the program's own is none.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments make no sense, each for a reason of its own.
    Usage(Vec<String>),
    /// What was asked for cannot be done; nothing was.
    Refused(Vec<String>),
    /// The host failed.
    Host(String),
    /// The sandbox could not do its job.
    Sandbox(stockade::Error),
    /// A failure, and what else is to be known of it.
    Noted(Box<Self>, String),
}

impl Failure {
    /// Adds what else is to be known.
    pub(crate) fn note(self, text: impl Into<String>) -> Self {
        Self::Noted(Box::new(self), text.into())
    }

    /// One refusal.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused(vec![text.into()])
    }

    /// Says it, as JSON on standard output or as lines on standard error; the
    /// answer is our own exit code.
    pub(crate) fn tell(
        &self,
        json: bool,
        call: Option<&Call>,
        interrupted: Option<&Interrupted>,
    ) -> u8 {
        if json {
            // The exit code says that something is wrong in either case.
            let _ = say::object(&self.object(call));
        } else {
            self.say();
        }
        if interrupted.is_some_and(Interrupted::is_set) {
            exit::INTERRUPTED
        } else {
            self.code()
        }
    }

    /// Our own exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => exit::USAGE,
            Self::Refused(_) => exit::REFUSED,
            Self::Host(_) => exit::FAILED,
            Self::Sandbox(error) => exit::of_error(error),
            Self::Noted(failure, _) => failure.code(),
        }
    }

    /// Says it on standard error.
    pub(crate) fn say(&self) {
        match self {
            Self::Usage(faults) | Self::Refused(faults) => {
                say::lines(faults);
                if matches!(self, Self::Usage(_)) {
                    say::line("--help lists the options");
                }
            }
            Self::Host(text) => say::line(text),
            Self::Sandbox(error) => say::error(error),
            Self::Noted(failure, note) => {
                failure.say();
                say::line(&format!("  {note}"));
            }
        }
    }

    /// The object that says it.
    pub(crate) fn object(&self, call: Option<&Call>) -> Value {
        match self {
            Self::Usage(faults) => report::faults("invalid_request", faults),
            Self::Refused(faults) => report::faults("refused", faults),
            Self::Host(text) => report::faults("unavailable", std::slice::from_ref(text)),
            Self::Sandbox(error) => report::error(error, call, advice::of(error)),
            Self::Noted(failure, note) => {
                let mut object = failure.object(call);
                if let Some(notes) = object["error"]["notes"].as_array_mut() {
                    notes.push(json!(note));
                } else {
                    object["error"]["notes"] = json!([note]);
                }
                object
            }
        }
    }
}

impl From<stockade::Error> for Failure {
    fn from(error: stockade::Error) -> Self {
        Self::Sandbox(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_change_neither_code_nor_kind() {
        let failure = Failure::refused("no").note("one").note("two");
        assert_eq!(failure.code(), exit::REFUSED);
        let object = failure.object(None);
        assert_eq!(object["error"]["kind"], "refused");
        assert_eq!(object["error"]["notes"], json!(["one", "two"]));
    }
}
