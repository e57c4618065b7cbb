//! `stockade prune`: what nobody uses any more, removed.

use std::fmt::Write as _;

use stockade_docker::operate::{PruneFilter, Pruned, PrunedItem, PrunedKind};

use crate::failure::Failure;
use crate::session::Session;
use crate::{args, exit, human, report, say};

/// Removes it; the answer is our own exit code.
pub(crate) async fn prune(args: &args::Prune) -> u8 {
    let work = &args.work;
    match Session::start(work.deadline, work.json, "ending the removal") {
        Ok(session) => session.code(pruned(args, &session).await),
        Err(failure) => failure.tell(work.json, None, None),
    }
}

async fn pruned(args: &args::Prune, session: &Session) -> Result<u8, Failure> {
    let mut filter = PruneFilter::default();
    if args.all {
        filter = filter.all();
    }
    if args.dry_run {
        filter = filter.dry_run();
    }
    let backend = session.connect(&args.work.engine).await?;
    let pruned = backend.prune(&session.call, &filter).await?;
    for failure in &pruned.failures {
        say::line(&format!("not removed: {failure}"));
    }
    let said = if args.work.json {
        say::object(&report::versioned(report::pruned(&pruned)))
    } else {
        say::text(&text(&pruned))
    };
    Ok(if pruned.is_clean() {
        exit::of_writing(&said)
    } else {
        exit::FAILED
    })
}

fn text(pruned: &Pruned) -> String {
    let mut text = String::new();
    let (done, freed) = if pruned.dry_run {
        ("would remove", "would free")
    } else {
        ("removed", "freed")
    };
    for item in &pruned.items {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{done} {}", shown(item));
    }
    let _ = match pruned.items.len() {
        0 => writeln!(text, "nothing to remove"),
        _ => writeln!(text, "{freed} {}", human::size(pruned.bytes())),
    };
    text
}

/// One thing, for people.
pub(crate) fn shown(item: &PrunedItem) -> String {
    let what = match item.what {
        PrunedKind::Leftover => "a leftover container",
        PrunedKind::WorkDir => "a work directory",
        PrunedKind::Image => "a built image",
        PrunedKind::Runtime => "a guest runtime",
        other => other.as_str(),
    };
    let size = match item.bytes {
        Some(bytes) => format!(", {}", human::size(bytes)),
        None => String::new(),
    };
    format!("{what}: {}{size}", say::tame(&item.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_a_dry_run_say_so() {
        let mut pruned = Pruned::default();
        assert_eq!(text(&pruned), "nothing to remove\n");
        pruned.dry_run = true;
        assert_eq!(text(&pruned), "nothing to remove\n");
        assert_eq!(report::pruned(&pruned)["dry_run"], true);
    }
}
