//! `guest facts`: what a hostile image has, said by the only code that runs.
//!
//! Runs in a container of that image whose every file may be a trap: nothing
//! is opened that is not known to be an ordinary file, nothing is read beyond
//! a bound, and nothing is followed to where it does not belong.

mod file;
mod paths;
mod user;

use stockade_wire::limits;
use stockade_wire::message::Facts;

use crate::args;

pub(crate) use file::marker;

/// The answer as JSON.
///
/// # Errors
///
/// A sentence on why there is none.
pub(crate) fn answer(asked: &args::Facts) -> Result<Vec<u8>, String> {
    let root = file::Root::open().map_err(|error| format!("the root cannot be opened: {error}"))?;
    let facts = Facts {
        protocol: stockade_wire::PROTOCOL,
        digest: marker(&asked.runtime_dir),
        user: user::resolve(&root, &asked.user),
        shell: root.is_executable("/bin/sh"),
        paths: asked
            .paths
            .iter()
            .map(|path| paths::classify(&root, path))
            .collect(),
    };
    let mut answer = serde_json::to_vec(&facts).map_err(|error| error.to_string())?;
    answer.push(b'\n');
    if answer.len() > limits::FACTS {
        return Err(format!("an answer of {} bytes is too long", answer.len()));
    }
    Ok(answer)
}
