//! Files of the host: what is sent, and where what came back lands.

mod landing;
mod place;
mod source;
mod walk;

use stockade::SandboxSpec;
use stockade::spec::Storage;

pub(crate) use self::landing::{AtConflict, Landing, land};
pub(crate) use self::place::Place;
pub(crate) use self::source::Source;
use self::walk::Bounds;
pub(crate) use self::walk::{Entry, Tree};

/// What these sources hold, if a sandbox of this spec can take it, or
/// everything that is wrong with it.
pub(crate) async fn tree(
    sources: Vec<Source>,
    follow: bool,
    spec: &SandboxSpec,
) -> Result<Tree, Vec<String>> {
    let bounds = Bounds::new(follow, spec.files_in(), spec.limits().work_inodes);
    let walking = tokio::task::spawn_blocking(move || walk::walk(&sources, bounds));
    let tree = walking
        .await
        .unwrap_or_else(|error| Err(vec![format!("the files cannot be looked at: {error}")]))?;
    let (bytes, most) = (tree.bytes(), spec.limits().work_bytes);
    if spec.storage() == Storage::Tmpfs && bytes > most {
        return Err(vec![format!(
            "the files have {bytes} bytes, and the work directory of the sandbox {most}; give it a larger --work-size (and --memory)"
        )]);
    }
    Ok(tree)
}
