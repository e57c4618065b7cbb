//! `stockade reap`: sandboxes removed by age, idleness or scope.

use std::time::Duration;

use stockade::{Backend as _, ReapFilter, Reaped};

use crate::failure::Failure;
use crate::session::Session;
use crate::{args, exit, human, report, say};

/// Removes them; the answer is our own exit code.
pub(crate) async fn reap(args: &args::Reap) -> u8 {
    let work = &args.work;
    match Session::start(work.deadline, work.json, "ending the removal") {
        Ok(session) => session.code(reaped(args, &session).await),
        Err(failure) => failure.tell(work.json, None, None),
    }
}

async fn reaped(args: &args::Reap, session: &Session) -> Result<u8, Failure> {
    let filter = filter(args).map_err(|fault| Failure::Usage(vec![fault]))?;
    let backend = session.connect(&args.work.engine).await?;
    let reaped = backend.reap(&session.call, &filter).await?;
    for failure in &reaped.failures {
        say::line(&format!("not removed: {failure}"));
    }
    let said = if args.work.json {
        say::object(&report::versioned(report::reaped(&reaped)))
    } else {
        say::text(&text(&reaped, args.idle_for))
    };
    Ok(if reaped.is_clean() {
        exit::of_writing(&said)
    } else {
        exit::FAILED
    })
}

fn filter(args: &args::Reap) -> Result<ReapFilter, String> {
    let none = args.older_than.is_none() && args.idle_for.is_none() && args.scope.is_none();
    if none && !args.all {
        return Err(
            "a reap takes at least one of --older-than TIME, --idle-for TIME and --scope SCOPE, or --all for everything of this owner that is not in use"
                .to_owned(),
        );
    }
    let mut filter = ReapFilter::default();
    if let Some(age) = args.older_than {
        filter = filter.older_than(age);
    }
    if let Some(idle) = args.idle_for {
        filter = filter.idle_for(idle);
    }
    if let Some(scope) = &args.scope {
        filter = filter.scope(scope);
    }
    if args.in_use {
        filter = filter.including_in_use();
    }
    Ok(filter)
}

fn text(reaped: &Reaped, idle_for: Option<Duration>) -> String {
    let mut text = format!(
        "removed {} and {}",
        human::count(reaped.sandboxes, "sandbox", "sandboxes"),
        human::count(reaped.others, "other thing", "other things"),
    );
    if reaped.kept > 0 {
        let kept = human::count(reaped.kept, "sandbox", "sandboxes");
        text.push_str(&match idle_for {
            None => format!("; kept {kept} in use"),
            Some(time) => format!(
                "; kept {kept} in use, or used within {}",
                humantime::format_duration(time)
            ),
        });
    }
    if !reaped.failures.is_empty() {
        text.push_str(&format!("; {} could not be removed", reaped.failures.len()));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn filter_of(words: &[&str]) -> Result<ReapFilter, String> {
        let words = ["stockade", "reap"].iter().chain(words);
        match args::Cli::try_parse_from(words).unwrap().command {
            args::Command::Reap(reap) => filter(&reap),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_bare_reap_takes_nothing_and_says_what_it_would_take() {
        for bare in [&[][..], &["--in-use"]] {
            let fault = filter_of(bare).unwrap_err();
            for option in ["--older-than", "--idle-for", "--scope", "--all"] {
                assert!(fault.contains(option), "{fault}");
            }
        }
    }

    #[test]
    fn conditions_are_joined_and_what_is_in_use_stays_unless_it_is_asked_for() {
        let hour = Duration::from_secs(3600);
        let wanted = ReapFilter::default()
            .older_than(hour)
            .idle_for(hour * 2)
            .scope("s");
        let words = ["--older-than", "1h", "--idle-for", "2h", "--scope", "s"];
        assert_eq!(filter_of(&words), Ok(wanted));
        assert_eq!(filter_of(&["--all"]), Ok(ReapFilter::default()));
        assert_eq!(
            filter_of(&["--all", "--in-use"]),
            Ok(ReapFilter::everything())
        );
    }

    #[test]
    fn the_sentence_names_what_was_kept_and_what_failed() {
        let mut reaped = Reaped::default();
        reaped.sandboxes = 1;
        assert_eq!(
            text(&reaped, None),
            "removed 1 sandbox and 0 other things\n"
        );
        reaped.kept = 2;
        assert!(text(&reaped, None).ends_with("; kept 2 sandboxes in use\n"));
        let hour = Some(Duration::from_secs(3600));
        assert!(text(&reaped, hour).ends_with("in use, or used within 1h\n"));
    }
}
