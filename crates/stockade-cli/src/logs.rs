//! `stockade logs`: what happened to a sandbox, and why it ended.

use std::fmt::Write as _;

use serde_json::{Value, json};
use stockade::Kind;
use stockade_docker::operate::{
    CommandEnd, Event, Happening, History, HistoryOf, SandboxFilter, SandboxInfo,
};

use crate::choose::{Absent, Chosen, There, choose};
use crate::failure::Failure;
use crate::named::{self, Name};
use crate::notes::Notes;
use crate::session::Session;
use crate::{args, death, exit, human, report, say};

/// Prints it; the answer is our own exit code.
pub(crate) async fn logs(args: &args::Logs) -> u8 {
    let look = &args.look;
    match Session::start(look.deadline, look.json, "ending the look") {
        Ok(session) => session.code(told(args, &session).await),
        Err(failure) => failure.tell(look.json, None, None),
    }
}

async fn told(args: &args::Logs, session: &Session) -> Result<u8, Failure> {
    let engine = &args.look.engine;
    let backend = session.connect(engine).await?;
    let filter = SandboxFilter::default();
    let found = backend.sandboxes(&session.call, &filter).await?;
    let there: Vec<There> = found.iter().map(There::of).collect();
    let chosen = choose(&args.sandbox, &there).map_err(Failure::refused)?;
    let (of, name) = whose(&chosen, &args.sandbox)?;
    let history = backend.history(&session.call, &of).await?;
    let known = match &name {
        // A note outlives what the engine remembers.
        Some(name) => match Notes::if_any() {
            Some(notes) => notes
                .read(&engine.owner, &backend.endpoint(), name)?
                .is_some(),
            None => false,
        },
        None => false,
    };
    if !history.exists && history.events.is_empty() && !known {
        return Err(Failure::refused(format!(
            "nothing is known of a sandbox `{}` of the owner {} on {}; `stockade ps` lists those that exist, and one that has gone is found by its name of `stockade create` or by its full id, for as long as the engine remembers",
            args.sandbox,
            engine.owner,
            backend.endpoint()
        )));
    }
    let said = if args.look.json {
        say::object(&report::versioned(object(&args.sandbox, &history)))
    } else {
        say::text(&text(&history, running(&found, &chosen)))
    };
    Ok(exit::of_writing(&said))
}

fn whose(chosen: &Chosen, word: &str) -> Result<(HistoryOf, Option<Name>), Failure> {
    Ok(match chosen {
        Chosen::Named(name) => {
            let kind = Kind::new(named::KIND)
                .map_err(|error| Failure::Host(format!("the kind of named sandboxes: {error}")))?;
            let of = HistoryOf::sandbox(name.key(), kind);
            (of, Some(name.clone()))
        }
        Chosen::There(there) => (HistoryOf::instance(there.id.clone()), None),
        Chosen::Absent(Absent::Id(id)) => {
            let id = stockade::InstanceId::new(id.as_str())
                .map_err(|error| Failure::Usage(vec![error.to_string()]))?;
            (HistoryOf::instance(id), None)
        }
        Chosen::Absent(Absent::Other(_)) => {
            return Err(Failure::refused(format!(
                "there is no sandbox `{word}`; one that has gone is found by its name of `stockade create` or by its full id"
            )));
        }
    })
}

/// Whether what was chosen runs.
fn running(found: &[SandboxInfo], chosen: &Chosen) -> Option<&'static str> {
    let state = |info: &SandboxInfo| info.state.as_str();
    match chosen {
        Chosen::Named(name) => found
            .iter()
            .find(|info| There::of(info).name().as_ref() == Some(name))
            .map(state),
        Chosen::There(there) => found.iter().find(|info| info.id == there.id).map(state),
        Chosen::Absent(_) => None,
    }
}

fn text(history: &History, state: Option<&str>) -> String {
    let mut text = String::new();
    let several = history
        .events
        .windows(2)
        .any(|pair| pair[0].instance != pair[1].instance);
    // Writing to a string does not fail.
    if history.engine_forgot {
        let _ = writeln!(
            text,
            "(the engine has forgotten what was before: it keeps its last 256 events)"
        );
    }
    if history.guest_forgot > 0 {
        let _ = writeln!(
            text,
            "(the sandbox has forgotten {} before the last 256 of its own)",
            human::count(history.guest_forgot, "event", "events")
        );
    }
    for event in &history.events {
        let at = human::moment(event.at);
        let what = happening(&event.what);
        let what = say::tame(&what);
        if several {
            let id: String = event.instance.as_str().chars().take(12).collect();
            let _ = writeln!(text, "{at}  {}  {what}", say::tame(&id));
        } else {
            let _ = writeln!(text, "{at}  {what}");
        }
    }
    let _ = match state {
        Some(state) => writeln!(text, "It is {state}."),
        None if history.exists => writeln!(text, "It exists."),
        None => writeln!(text, "It has ended: {}.", death::sentence(history)),
    };
    text
}

fn happening(what: &Happening) -> String {
    match what {
        Happening::Created => "made".to_owned(),
        Happening::Started => "started".to_owned(),
        Happening::Paused => "paused".to_owned(),
        Happening::Thawed => "thawed".to_owned(),
        Happening::Signalled { signal, .. } => format!("sent signal {signal} from outside"),
        Happening::OutOfMemory => "the kernel ended a process of it at its memory limit".to_owned(),
        Happening::Ended { death, .. } => format!("ended: {death}"),
        Happening::Removed => "removed".to_owned(),
        Happening::Attached { channel, .. } => format!("host {channel} attached"),
        Happening::Detached { channel, why, .. } => format!("host {channel} left ({why})"),
        Happening::CommandStarted {
            number,
            program,
            background,
            ..
        } => {
            let how = if *background {
                ", in the background"
            } else {
                ""
            };
            format!("command {number} started: {program}{how}")
        }
        Happening::CommandEnded(end) => command_end(end),
        Happening::EverythingKilled { left: 0, .. } => {
            "everything in it was killed on a host's demand".to_owned()
        }
        Happening::EverythingKilled { left, .. } => format!(
            "everything in it was killed on a host's demand, and {} did not go in time",
            human::count((*left).into(), "process", "processes")
        ),
        Happening::Other { what, .. } => what.clone(),
        _ => "something that this version has no word for".to_owned(),
    }
}

fn command_end(end: &CommandEnd) -> String {
    let status = match &end.status {
        Some(status) => status.to_string(),
        None => "in a way that this version does not know".to_owned(),
    };
    let mut text = format!(
        "command {} ended: {}, {status}, after {:.3} s, {:.3} s of CPU, at most {}",
        end.number,
        end.program,
        end.wall.as_secs_f64(),
        end.cpu.as_secs_f64(),
        human::size(end.peak_memory),
    );
    if end.out_of_memory {
        text.push_str(", out of memory");
    }
    if end.left_running > 0 {
        let _ = write!(
            text,
            ", left {} running",
            human::count(end.left_running.into(), "process", "processes")
        );
    }
    text
}

fn object(asked: &str, history: &History) -> Value {
    let death = (!history.exists).then(|| {
        json!({
            "reason": death::word(history),
            "message": death::sentence(history),
        })
    });
    json!({
        "asked": asked,
        "exists": history.exists,
        "death": death,
        "engine_forgot": history.engine_forgot,
        "sandbox_forgot": history.guest_forgot,
        "events": history.events.iter().map(event_object).collect::<Value>(),
    })
}

fn event_object(event: &Event) -> Value {
    let mut object = json!({
        "at": humantime::format_rfc3339_millis(event.at).to_string(),
        "id": event.instance.as_str(),
        "event": word(&event.what),
        "message": happening(&event.what),
    });
    match &event.what {
        Happening::Signalled { signal, .. } => object["signal"] = json!(signal),
        Happening::Ended { death, .. } => object["reason"] = json!(death.as_str()),
        Happening::Attached { channel, .. } => object["channel"] = json!(channel),
        Happening::Detached { channel, why, .. } => {
            object["channel"] = json!(channel);
            object["why"] = json!(why);
        }
        Happening::CommandStarted {
            number,
            program,
            background,
            ..
        } => {
            object["command"] = json!(number);
            object["program"] = json!(program);
            object["background"] = json!(background);
        }
        Happening::CommandEnded(end) => {
            object["command"] = json!(end.number);
            object["program"] = json!(end.program);
            object["status"] = json!(end.status.as_ref().map(report::status));
            object["wall_seconds"] = json!(end.wall.as_secs_f64());
            object["cpu_seconds"] = json!(end.cpu.as_secs_f64());
            object["peak_memory"] = json!(end.peak_memory);
            object["out_of_memory"] = json!(end.out_of_memory);
            object["left_running"] = json!(end.left_running);
        }
        Happening::EverythingKilled { times, left, .. } => {
            object["times"] = json!(times);
            object["left"] = json!(left);
        }
        _ => {}
    }
    object
}

fn word(what: &Happening) -> &'static str {
    match what {
        Happening::Created => "created",
        Happening::Started => "started",
        Happening::Paused => "paused",
        Happening::Thawed => "thawed",
        Happening::Signalled { .. } => "signalled",
        Happening::OutOfMemory => "out_of_memory",
        Happening::Ended { .. } => "ended",
        Happening::Removed => "removed",
        Happening::Attached { .. } => "attached",
        Happening::Detached { .. } => "detached",
        Happening::CommandStarted { .. } => "command_started",
        Happening::CommandEnded(_) => "command_ended",
        Happening::EverythingKilled { .. } => "everything_killed",
        _ => "other",
    }
}
