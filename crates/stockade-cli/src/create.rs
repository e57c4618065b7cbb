//! `stockade create`: a sandbox that stays.

use serde_json::json;
use stockade::{Backend as _, Refusal, Which};
use stockade_docker::DockerBackend;
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
    let image = recipe.image_name();
    let noted = match found_again(session, &backend, &name, &id, recipe).await {
        Ok(recipe) => notes.write(&Note::new(&args.engine, &endpoint, &name, &id, recipe)),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = noted {
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

/// The recipe by which later commands find the sandbox. The image that was
/// built is named by its id: another build can be another image.
async fn found_again(
    session: &Session,
    backend: &DockerBackend,
    name: &Name,
    id: &str,
    recipe: Recipe,
) -> Result<Recipe, Failure> {
    if !recipe.is_built() {
        return Ok(recipe);
    }
    let made = named::listed(&session.call, backend, name).await?;
    let image = made.into_iter().find(|info| info.id.as_str() == id);
    let image = image.ok_or_else(|| {
        Failure::Host("the sandbox has gone before its image could be noted; try again".to_owned())
    })?;
    Ok(recipe.of_image(&image.image_id))
}
