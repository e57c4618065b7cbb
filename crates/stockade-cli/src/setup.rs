//! `stockade setup`: an engine made ready ahead, and everything of an owner
//! taken away from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use stockade::Image;
use stockade_docker::operate::{SetUp, TornDown};

use crate::failure::Failure;
use crate::notes::Notes;
use crate::session::Session;
use crate::{args, exit, human, prune, report, say, spec};

/// Does it; the answer is our own exit code.
pub(crate) async fn setup(args: &args::Setup) -> u8 {
    let work = &args.work;
    let consequence = if args.remove {
        "ending the removal"
    } else {
        "ending the pull or the build"
    };
    match Session::start(work.deadline, work.json, consequence) {
        Ok(session) if args.remove => session.code(removed(args, &session).await),
        Ok(session) => session.code(ready(args, &session).await),
        Err(failure) => failure.tell(work.json, None, None),
    }
}

async fn ready(args: &args::Setup, session: &Session) -> Result<u8, Failure> {
    let images = images(args).map_err(|fault| Failure::Usage(vec![fault]))?;
    let backend = session.connect(&args.work.engine).await?;
    let ready = backend.set_up(&session.call, &images).await?;
    let said = if args.work.json {
        let mut object = ready_object(&ready);
        object["endpoint"] = json!(backend.endpoint());
        say::object(&report::versioned(object))
    } else {
        say::text(&ready_text(&ready))
    };
    Ok(exit::of_writing(&said))
}

fn images(args: &args::Setup) -> Result<Vec<Image>, String> {
    let named = args.image.iter().map(Image::reference);
    let built = args.build.iter().map(Image::build);
    let images: Vec<Image> = named.chain(built).collect();
    if images.is_empty() {
        return Ok(vec![Image::reference(spec::environment_image()?)]);
    }
    Ok(images)
}

fn ready_text(ready: &SetUp) -> String {
    let mut text = String::new();
    for image in &ready.images {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}  {} ({})",
            image.origin.as_str(),
            say::tame(&image.asked),
            say::tame(&image.id)
        );
    }
    let filled = if ready.runtime_filled {
        "filled"
    } else {
        "present"
    };
    let _ = writeln!(text, "{filled}  guest runtime {}", ready.runtime_volume);
    text
}

fn ready_object(ready: &SetUp) -> Value {
    let images = ready.images.iter().map(|image| {
        json!({
            "asked": image.asked,
            "id": image.id,
            "origin": image.origin.as_str(),
        })
    });
    json!({
        "images": images.collect::<Value>(),
        "runtime": { "volume": ready.runtime_volume, "filled": ready.runtime_filled },
    })
}

async fn removed(args: &args::Setup, session: &Session) -> Result<u8, Failure> {
    let backend = session.connect(&args.work.engine).await?;
    let torn = backend.tear_down(&session.call).await?;
    for failure in &torn.failures {
        say::line(&format!("not removed: {failure}"));
    }
    let mut notes = 0;
    if torn.is_clean()
        && let Some(of_user) = Notes::if_any()
    {
        let owner = &args.work.engine.owner;
        notes = of_user.forget_gone(owner, &backend.endpoint(), &BTreeSet::new())?;
    }
    let said = if args.work.json {
        let object = json!({
            "sandboxes": torn.sandboxes,
            "items": torn.items.iter().map(report::pruned_item).collect::<Value>(),
            "notes": notes,
            "failures": report::failures(&torn.failures),
        });
        say::object(&report::versioned(object))
    } else {
        say::text(&removed_text(&torn, notes))
    };
    Ok(if torn.is_clean() {
        exit::of_writing(&said)
    } else {
        exit::FAILED
    })
}

fn removed_text(torn: &TornDown, notes: u64) -> String {
    let mut text = format!(
        "removed {} and {}\n",
        human::count(torn.sandboxes, "sandbox", "sandboxes"),
        human::count(notes, "note", "notes"),
    );
    for item in &torn.items {
        // Writing to a string does not fail.
        let _ = writeln!(text, "removed {}", prune::shown(item));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_is_told_with_the_runtime_that_was_brought() {
        let mut ready = SetUp::default();
        ready.runtime_volume = "stockade-runtime-x".to_owned();
        assert_eq!(
            ready_text(&ready),
            "present  guest runtime stockade-runtime-x\n"
        );
        assert_eq!(ready_object(&ready)["runtime"]["filled"], false);
    }
}
