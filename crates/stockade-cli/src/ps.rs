//! `stockade ps`: which sandboxes there are, for whom, and what they do.

mod seen;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stockade::{Call, InstanceId};
use stockade_docker::DockerBackend;
use stockade_docker::operate::{Activity, SandboxFilter, SandboxInfo};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::seen::{Answer, Seen, table};
use crate::failure::Failure;
use crate::session::Session;
use crate::{args, exit, report, say};

/// How long one sandbox may take to say what it does. They answer within a
/// tenth of it on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long all of them may take together; who has not been asked by then is
/// shown like who does not answer.
const ROUND: Duration = Duration::from_secs(30);

/// How many are asked at the same time: fewer than the docker processes that a
/// backend starts at once, so that a sandbox's time begins when it is asked.
const AT_ONCE: usize = 6;

/// Lists them; the answer is our own exit code.
pub(crate) async fn ps(args: &args::Ps) -> u8 {
    let look = &args.look;
    match Session::start(look.deadline, look.json, "ending the listing") {
        Ok(session) => session.code(listed(args, &session).await),
        Err(failure) => failure.tell(look.json, None, None),
    }
}

async fn listed(args: &args::Ps, session: &Session) -> Result<u8, Failure> {
    let engine = &args.look.engine;
    let backend = session.connect(engine).await?;
    let mut filter = SandboxFilter::default();
    if args.all_owners {
        filter = filter.any_owner();
    }
    if let Some(scope) = &args.scope {
        filter = filter.scope(scope);
    }
    let found = backend.sandboxes(&session.call, &filter).await?;
    let answers = if args.no_activity || args.quiet {
        found.iter().map(|_| Answer::NotAsked).collect()
    } else {
        ask_all(&session.call, &backend, &found).await
    };
    let seen: Vec<Seen> = found
        .into_iter()
        .zip(answers)
        .map(|(info, answer)| Seen::new(info, answer))
        .collect();
    let said = if args.look.json {
        say::object(&report::versioned(json!({
            "endpoint": backend.endpoint(),
            "owner": (!args.all_owners).then_some(&engine.owner),
            "sandboxes": seen.iter().map(Seen::object).collect::<Value>(),
        })))
    } else if args.quiet {
        let ids = seen.iter().map(|seen| format!("{}\n", seen.id()));
        say::text(&ids.collect::<String>())
    } else if seen.is_empty() {
        say::line(&nothing(args, &backend));
        Ok(())
    } else {
        let owners = args.all_owners;
        say::text(&table(&seen, owners, !args.no_activity).to_string())
    };
    Ok(exit::of_writing(&said))
}

fn nothing(args: &args::Ps, backend: &DockerBackend) -> String {
    let owner = if args.all_owners {
        "of any owner".to_owned()
    } else {
        format!("of the owner {}", args.look.engine.owner)
    };
    let scope = match &args.scope {
        Some(scope) => format!(" and the scope {scope}"),
        None => String::new(),
    };
    format!("no sandbox {owner}{scope} on {}", backend.endpoint())
}

/// Asks those that run, at the same time; one that does not answer holds up
/// nobody but itself.
async fn ask_all(call: &Call, backend: &DockerBackend, found: &[SandboxInfo]) -> Vec<Answer> {
    let round = call.child(ROUND);
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut asking = JoinSet::new();
    let mut answers: Vec<Answer> = found.iter().map(|_| Answer::NotRunning).collect();
    for (at, info) in found.iter().enumerate() {
        if info.state.is_alive() {
            let (round, turns) = (round.clone(), Arc::clone(&turns));
            let (backend, id) = (backend.clone(), info.id.clone());
            asking.spawn(async move { (at, ask(&round, &turns, &backend, &id).await) });
            answers[at] = Answer::None("it was not asked".to_owned());
        }
    }
    while let Some(asked) = asking.join_next().await {
        if let Ok((at, answer)) = asked {
            answers[at] = answer;
        }
    }
    answers
}

async fn ask(round: &Call, turns: &Semaphore, backend: &DockerBackend, id: &InstanceId) -> Answer {
    let Ok(Ok(_turn)) = round.bound(turns.acquire()).await else {
        return Answer::None("there was no time to ask it".to_owned());
    };
    let asked = round.child(PATIENCE);
    match backend.activity(&asked, id).await {
        Ok(Some(Activity::Answered(doing))) => Answer::Doing(doing),
        Ok(Some(Activity::Paused)) => Answer::Paused,
        Ok(Some(Activity::Silent { why })) => Answer::None(why),
        Ok(Some(_)) => Answer::None("its answer is not understood".to_owned()),
        Ok(None) => Answer::NotRunning,
        Err(error) => Answer::None(error.to_string()),
    }
}
