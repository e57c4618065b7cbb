//! Why a sandbox ended, in one sentence with what to do about it.

use stockade_docker::operate::{Death, History};

/// Why it ended, as the end of "it has ended: …", and what to do about it.
pub(crate) fn sentence(history: &History) -> String {
    let Some(death) = history.death else {
        return forgotten().to_owned();
    };
    match hint(death) {
        Some(hint) => format!("{}; {hint}", reason(death)),
        None => reason(death),
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
        Death::Retired => {
            "nobody used it, and it was reaped or made room for another definition".to_owned()
        }
        Death::Stopped => "it was stopped (`docker stop`), or its engine was".to_owned(),
        Death::Removed => {
            "it was removed, or killed from outside: the engine does not tell these apart"
                .to_owned()
        }
        Death::Killed { signal, .. } => format!("it was killed with signal {signal}"),
        Death::OutOfMemory => "the kernel ended it for want of memory".to_owned(),
        Death::RuntimeFailed { code, .. } => {
            format!("its guest runtime ended with exit code {code}")
        }
        _ => "the engine does not say why".to_owned(),
    }
}

fn hint(death: Death) -> Option<&'static str> {
    Some(match death {
        Death::IdleLimit => "a longer --idle-limit keeps the next one for longer",
        Death::MaximumAge => "a larger --max-age keeps the next one for longer, 7 days at most",
        Death::Retired => "what is in use is never reaped or replaced so",
        Death::Stopped => "the engine's own log says whether it was restarted",
        Death::Removed => {
            "`stockade rm`, `stockade reap` and `docker rm` do that, of whoever shares owner and engine"
        }
        Death::Killed { .. } => {
            "`docker kill`, a restart of the engine and the kernel do that; the engine's own log may say more"
        }
        Death::OutOfMemory => "give the next one more --memory, or the machine",
        Death::RuntimeFailed { .. } => "run `stockade doctor` with its image",
        _ => return None,
    })
}

/// What is said when neither the sandbox nor the engine knows.
const fn forgotten() -> &'static str {
    "nothing remembers why: the engine keeps its last 256 events, and none from before its own start, so that it may have been restarted"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_death_that_is_known_has_a_reason_and_a_hint() {
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
            let told = sentence.split_once("; ");
            assert_eq!(told.is_none(), death == Death::Unknown, "{sentence}");
            assert_eq!(word(&history), death.as_str());
        }
        assert!(sentence(&History::default()).contains("restarted"));
    }
}
