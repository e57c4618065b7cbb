//! Why a sandbox ended, in one sentence, and what to do about it.

use stockade_docker::operate::{Death, History};

/// Why it ended, as the end of "it has ended: …".
pub(crate) fn sentence(history: &History) -> String {
    match history.death {
        Some(death) => format!("{}; {}", reason(death), remedy(death)),
        None => forgotten().to_owned(),
    }
}

/// The word for scripts.
pub(crate) fn word(history: &History) -> &'static str {
    history.death.unwrap_or(Death::Unknown).as_str()
}

fn reason(death: Death) -> String {
    match death {
        Death::IdleLimit => "nobody used it for its idle limit".to_owned(),
        Death::MaximumAge => "it reached its maximum age".to_owned(),
        Death::Retired => "nobody used it, and it made room for another, or was reaped".to_owned(),
        Death::Stopped => "it was stopped (`docker stop`), or its engine was".to_owned(),
        Death::Removed => "it was removed".to_owned(),
        Death::Killed { signal, .. } => format!("it was killed from outside with signal {signal}"),
        Death::OutOfMemory => "the kernel ended it for want of memory".to_owned(),
        Death::RuntimeFailed { code, .. } => {
            format!("its guest runtime ended with exit code {code}")
        }
        _ => "the engine does not say why".to_owned(),
    }
}

fn remedy(death: Death) -> &'static str {
    match death {
        Death::IdleLimit => "a longer --idle-limit keeps the next one for longer",
        Death::MaximumAge => "a larger --max-age keeps the next one for longer, 7 days at most",
        Death::Retired => "make another; with the same options it is not replaced",
        Death::Stopped => "make another; `docker info` tells whether the engine was restarted",
        Death::Removed => {
            "make another; `stockade rm`, `reap`, `setup --remove` and `docker rm` remove"
        }
        Death::Killed { .. } => "make another; `docker kill` and a restart of the engine do that",
        Death::OutOfMemory => "give the next one more --memory, or the machine",
        Death::RuntimeFailed { .. } => {
            "make another, and run `stockade doctor` when that fails, too"
        }
        _ => "make another",
    }
}

/// What is said when neither the sandbox nor the engine knows.
const fn forgotten() -> &'static str {
    "nothing remembers why: the engine keeps its last 256 events, and none from before its own start, so that it may have been restarted"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_death_has_a_reason_and_says_what_to_do() {
        let deaths = [
            Death::IdleLimit,
            Death::MaximumAge,
            Death::Retired,
            Death::Stopped,
            Death::Removed,
            Death::OutOfMemory,
            Death::Unknown,
        ];
        for death in deaths {
            let mut history = History::default();
            history.death = Some(death);
            let sentence = sentence(&history);
            let (reason, remedy) = sentence.split_once("; ").unwrap();
            assert!(!reason.is_empty() && !remedy.is_empty(), "{sentence}");
            assert_eq!(word(&history), death.as_str());
        }
        assert!(sentence(&History::default()).contains("restarted"));
    }
}
