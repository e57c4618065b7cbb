//! `stockade create`: a sandbox that stays.

use serde_json::json;
use stockade::spec::PullPolicy;
use stockade::{Backend as _, Refusal, Which};
use stockade_docker::operate::SandboxState;

use crate::failure::Failure;
use crate::named::{self, Name};
use crate::notes::{Note, Notes};
use crate::session::{Session, remove};
use crate::spec::{self, Recipe};
use crate::{args, exit, report, say};

/// Makes it; the answer is our own exit code.
pub(crate) async fn create(args: &args::Create) -> u8 {
    match Session::start(args.deadline, args.json, "removing what was made") {
        Ok(session) => session.code(made(args, &session).await),
        Err(failure) => failure.tell(args.json, None, None),
    }
}

async fn made(args: &args::Create, session: &Session) -> Result<u8, Failure> {
    let name = Name::parse(&args.name).map_err(|fault| Failure::Usage(vec![fault]))?;
    let recipe = Recipe::of(&args.sandbox, args.idle_limit, args.max_age)
        .map_err(|fault| Failure::Usage(vec![fault]))?;
    let spec = named::spec(&recipe, spec::pull(args.sandbox.pull)).map_err(Failure::Usage)?;
    // Without a place for its note, nothing is made.
    let notes = Notes::of_user()?;
    let backend = session.connect(&args.engine).await?;
    let key = name.key();
    let exists = || {
        let name = name.as_str();
        Failure::refused(format!(
            "there is a sandbox `{name}`; use it, choose another name, or remove it with `stockade rm {name}`"
        ))
    };
    // Looked for first: an acquire replaces one of other options that nobody
    // uses just now.
    let there = named::listed(&session.call, &backend, &name).await?;
    if there.iter().any(|info| info.state != SandboxState::Lost) {
        return Err(exists());
    }
    // What is noted is the image that this is now, and the guest runtime: a
    // name may come to mean another one, and another build brings another.
    let ready = backend
        .set_up(&session.call, &[spec.image().clone()])
        .await?;
    let made_of = ready.images.first().map(|image| image.id.as_str());
    let made_of = made_of.ok_or_else(|| Failure::Host("the image has no id".to_owned()))?;
    let image = recipe.image_name();
    let recipe = recipe.of_image(made_of);
    let spec = named::spec(&recipe, PullPolicy::Never).map_err(Failure::Usage)?;
    let sandbox = match backend.acquire(&session.call, &key, &spec).await {
        Ok(sandbox) if sandbox.freshly_created() => sandbox,
        Ok(_) => return Err(exists()),
        Err(error) if matches!(error.refusal(), Some(Refusal::Drifted { .. })) => {
            return Err(exists());
        }
        Err(error) => return Err(error.into()),
    };
    let id = sandbox.id().as_str().to_owned();
    let endpoint = backend.endpoint();
    let note = Note::new(&args.engine, &endpoint, &name, &id, recipe);
    if let Err(failure) = notes.write(&note.with_runtime(&ready.runtime_volume)) {
        let which = Which::Instance(sandbox.id().clone());
        drop(sandbox);
        remove(&backend, &key, which).await;
        return Err(failure);
    }
    let said = if args.json {
        say::object(&report::versioned(json!({
            "name": name.as_str(),
            "id": id,
            "image": image,
            "owner": args.engine.owner,
            "endpoint": endpoint,
        })))
    } else {
        say::text(&format!("{}\t{id}\n", name.as_str()))
    };
    Ok(if said.is_ok() { 0 } else { exit::FAILED })
}
