//! `stockade rm`: a sandbox, or a file in it, removed.

use std::os::unix::ffi::OsStrExt as _;

use serde_json::json;
use stockade::{Backend as _, Which};

use crate::failure::Failure;
use crate::named::{self, Name, Notes, Target};
use crate::session::Session;
use crate::{args, exit, report, say};

/// Removes it; the answer is our own exit code.
pub(crate) async fn rm(args: &args::Rm) -> u8 {
    let common = &args.common;
    match Session::start(common.deadline, common.json, "ending the removal") {
        Ok(session) => session.code(removed(args, &session).await),
        Err(failure) => failure.tell(common.json, None, None),
    }
}

async fn removed(args: &args::Rm, session: &Session) -> Result<u8, Failure> {
    let target =
        Target::parse(args.target.as_bytes()).map_err(|fault| Failure::Usage(vec![fault]))?;
    match &target.path {
        None => sandbox(args, session, &target.name).await,
        Some(path) => file(args, session, &target.name, path).await,
    }
}

/// The sandbox goes first: a note without a sandbox says that it has ended.
async fn sandbox(args: &args::Rm, session: &Session, name: &Name) -> Result<u8, Failure> {
    let engine = &args.common.engine;
    let backend = session.connect(engine).await?;
    let removed = backend
        .dispose(&session.call, &name.key(), Which::All)
        .await?;
    for failure in &removed.failures {
        say::line(&format!("not removed: {failure}"));
    }
    if removed.count == 0 && removed.is_clean() {
        // No failure, so that a script can remove what may be gone already.
        say::line(&format!("there was no sandbox `{}`", name.as_str()));
    }
    let clean = removed.is_clean();
    if clean {
        Notes::of_user()?.forget(&engine.owner, &backend.endpoint(), name)?;
    }
    let object = json!({
        "name": name.as_str(),
        "sandboxes": removed.count,
        "failures": removed.failures.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let unsaid = args.common.json && say::object(&report::versioned(object)).is_err();
    Ok(if clean && !unsaid { 0 } else { exit::FAILED })
}

async fn file(args: &args::Rm, session: &Session, name: &Name, path: &[u8]) -> Result<u8, Failure> {
    let (_backend, sandbox) = named::find(session, &args.common.engine, name).await?;
    let path = if path.is_empty() { b"." } else { path };
    sandbox.remove(&session.call, path, args.recursive).await?;
    let object = json!({ "name": name.as_str(), "path": report::text(path) });
    let unsaid = args.common.json && say::object(&report::versioned(object)).is_err();
    Ok(if unsaid { exit::FAILED } else { 0 })
}
