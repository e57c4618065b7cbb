//! Why a container ended, by what the engine remembers of it. Pure.

use std::time::{Duration, SystemTime};

use stockade_wire::ends::End;

use super::Death;
use crate::engine::Remembered;

/// The number of SIGKILL.
const KILL: u8 = 9;

/// How long before the end of a container the kernel must have been out of
/// memory, so that it is the reason.
const SHORTLY: Duration = Duration::from_secs(10);

/// Why a container ended in the event at this place, which is a `die`. The
/// events are of that container alone, oldest first.
pub(super) fn of_event(events: &[&Remembered], at: usize) -> Death {
    let Some((before, [die, after @ ..])) = events.split_at_checked(at) else {
        return Death::Unknown;
    };
    let began = before.iter().rposition(|event| event.action == "start");
    let run = &before[began.map_or(0, |start| start + 1)..];
    let code = die.attributes.get("exitCode");
    let Some(code) = code.and_then(|code| code.parse().ok()) else {
        return Death::Unknown;
    };
    let killed = run.iter().any(|event| event.signal() == Some(KILL));
    let starved = run
        .iter()
        .any(|event| event.action == "oom" && is_shortly(event.at, die.at));
    let removed = after.iter().any(|event| event.action == "destroy");
    match of_code(code) {
        Death::Killed { signal: KILL } if killed && removed => Death::Removed,
        Death::Killed { signal: KILL } if !killed && starved => Death::OutOfMemory,
        death => death,
    }
}

/// Why a container that is there and has ended did.
pub(super) fn of_state(exit_code: i64, oom_killed: bool) -> Death {
    match of_code(exit_code) {
        Death::Killed { signal: KILL } if oom_killed => Death::OutOfMemory,
        death => death,
    }
}

fn of_code(code: i64) -> Death {
    if let Some(end) = End::of_code(code) {
        return match end {
            End::IdleLimit => Death::IdleLimit,
            End::MaximumAge => Death::MaximumAge,
            End::Retired => Death::Retired,
            End::Stopped => Death::Stopped,
            _ => Death::Unknown,
        };
    }
    match code {
        // What runtimes of before there were codes ended with, and what an
        // engine says that has lost the code.
        0 | 255 => Death::Unknown,
        129..=192 => Death::Killed {
            signal: u8::try_from(code - 128).unwrap_or_default(),
        },
        code => Death::RuntimeFailed { code },
    }
}

fn is_shortly(before: SystemTime, after: SystemTime) -> bool {
    after
        .duration_since(before)
        .is_ok_and(|between| between <= SHORTLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, action: &str, attribute: Option<(&str, &str)>) -> Remembered {
        let attributes = attribute.into_iter();
        Remembered {
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(at),
            id: "1".into(),
            action: action.into(),
            attributes: attributes
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    fn died(events: &[Remembered]) -> Death {
        let events: Vec<_> = events.iter().collect();
        let at = events.iter().rposition(|event| event.action == "die");
        of_event(&events, at.unwrap_or(events.len()))
    }

    #[test]
    fn the_runtimes_own_reasons_are_told_by_their_codes() {
        for (code, death) in [
            ("80", Death::IdleLimit),
            ("81", Death::MaximumAge),
            ("82", Death::Retired),
            ("83", Death::Stopped),
            ("64", Death::RuntimeFailed { code: 64 }),
            ("127", Death::RuntimeFailed { code: 127 }),
            ("0", Death::Unknown),
            ("255", Death::Unknown),
            ("-1", Death::RuntimeFailed { code: -1 }),
            ("143", Death::Killed { signal: 15 }),
            ("nonsense", Death::Unknown),
        ] {
            let events = [
                event(1, "start", None),
                event(2, "die", Some(("exitCode", code))),
            ];
            assert_eq!(died(&events), death, "{code}");
        }
    }

    #[test]
    fn a_kill_is_a_removal_when_the_container_is_gone_after_it() {
        let start = event(1, "start", None);
        let kill = event(2, "kill", Some(("signal", "9")));
        let die = event(3, "die", Some(("exitCode", "137")));
        let destroy = event(4, "destroy", None);
        let killed = Death::Killed { signal: 9 };
        let all = [start, kill, die, destroy];
        assert_eq!(died(&all), Death::Removed);
        assert_eq!(died(&all[..3]), killed);
        // Nobody asked the engine for it.
        assert_eq!(died(&[all[0].clone(), all[2].clone()]), killed);
        let silent = [all[0].clone(), all[2].clone(), all[3].clone()];
        assert_eq!(died(&silent), killed);
        // The signal that has everything killed ends nothing.
        let usr1 = event(2, "kill", Some(("signal", "10")));
        let spared = [all[0].clone(), usr1, all[2].clone(), all[3].clone()];
        assert_eq!(died(&spared), killed);
    }

    #[test]
    fn memory_is_the_reason_only_when_nobody_killed_it_and_it_was_just_out() {
        let start = event(1, "start", None);
        let oom = event(50, "oom", None);
        let kill = event(51, "kill", Some(("signal", "9")));
        let die = |at| event(at, "die", Some(("exitCode", "137")));
        let killed = Death::Killed { signal: 9 };
        let events = [start.clone(), oom.clone(), die(52)];
        assert_eq!(died(&events), Death::OutOfMemory);
        let later = [start.clone(), oom.clone(), die(500)];
        assert_eq!(died(&later), killed);
        let both = [start.clone(), oom.clone(), kill, die(52)];
        assert_eq!(died(&both), killed);
        // Of the run before.
        let earlier = [oom, start, die(52)];
        assert_eq!(died(&earlier), killed);
    }

    #[test]
    fn what_is_no_end_has_no_reason() {
        assert_eq!(died(&[]), Death::Unknown);
        assert_eq!(died(&[event(1, "die", None)]), Death::Unknown);
    }

    #[test]
    fn a_container_that_is_there_tells_by_its_own_state() {
        assert_eq!(of_state(137, true), Death::OutOfMemory);
        assert_eq!(of_state(137, false), Death::Killed { signal: 9 });
        // It was out of memory at some time, and ended for another reason.
        assert_eq!(of_state(80, true), Death::IdleLimit);
    }
}
