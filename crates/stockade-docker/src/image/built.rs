//! Images that are built from directories.
//!
//! Which image a directory stands for is decided by its content: the image's
//! name is a digest of owner, directory, platform and content. So an image
//! that any host of this owner has built before is found by that name and
//! taken as it is, a change of the directory leads to another name, and two
//! hosts that build the same at once do no harm. Nothing of it depends on the
//! time of a build: a host that starts again finds its sandboxes undrifted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stockade::spec::{Image, PullPolicy};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal, Result};
use tokio::sync::OwnedMutexGuard;

use super::context::{Context, Stamp, StopOnDrop, Unfit};
use super::{Origin, check_platform_of_engine};
use crate::config::Progress;
use crate::engine::{Engine, Recipe};
use crate::names::{self, label};

/// What this process knows of build directories.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// The digest that a directory had when it last looked like this.
    seen: Mutex<HashMap<PathBuf, (Stamp, String)>>,
    /// One build of a directory at a time.
    turns: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// A directory, as it is now.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    stamp: Stamp,
    recipe: Recipe,
}

impl Directories {
    /// Looks at the directory of an image, and reads it if it has changed.
    pub(super) async fn look(
        &self,
        call: &Call,
        engine: &Engine,
        image: &Image,
        at: &Path,
    ) -> Result<Directory> {
        let _phase = call.enter(Phase::Build);
        check_platform_of_engine(image.platform(), engine)?;
        let stop = StopOnDrop::default();
        let (stopped, directory) = (stop.stopped(), at.to_owned());
        let looked = blocking(call, move || Context::look(&directory, &stopped)).await?;
        let context = looked.map_err(|unfit| no_use(at, unfit))?;
        let known = self.known(context.directory(), context.stamp());
        let (path, stamp) = (context.directory().to_owned(), context.stamp().clone());
        let digest = match known {
            Some(digest) => digest,
            None => {
                let stopped = stop.stopped();
                let read = blocking(call, move || context.digest(&stopped)).await?;
                let digest = read.map_err(|unfit| no_use(at, unfit))?;
                self.learn(path.clone(), stamp.clone(), digest.clone());
                digest
            }
        };
        Ok(Directory::new(engine, image, path, stamp, digest))
    }

    /// Waits until nobody else of this process builds this directory.
    pub(super) async fn turn(
        &self,
        call: &Call,
        directory: &Directory,
    ) -> Result<OwnedMutexGuard<()>> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(directory.recipe.directory.clone()).or_default())
        };
        call.bound(turn.lock_owned()).await.map_err(|why| {
            Error::interrupted(Operation::Acquire, why)
                .phase(Phase::Build)
                .build()
        })
    }

    /// Whether a directory still is what it was before it was built: otherwise
    /// the image has the name of something else.
    pub(super) async fn is_unchanged(&self, call: &Call, before: &Directory) -> Result<bool> {
        let stop = StopOnDrop::default();
        let (stopped, directory) = (stop.stopped(), before.recipe.directory.clone());
        let looked = blocking(call, move || Context::look(&directory, &stopped)).await?;
        Ok(looked.is_ok_and(|now| *now.stamp() == before.stamp))
    }

    fn known(&self, directory: &Path, stamp: &Stamp) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, digest) = seen.get(directory)?;
        (known == stamp).then(|| digest.clone())
    }

    fn learn(&self, directory: PathBuf, stamp: Stamp, digest: String) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(directory, (stamp, digest));
    }
}

impl Directory {
    fn new(engine: &Engine, image: &Image, path: PathBuf, stamp: Stamp, context: String) -> Self {
        let platform = image
            .platform()
            .map(ToString::to_string)
            .unwrap_or_default();
        // Paths need not be text; digests of their bytes would do no more.
        let mut directory = names::digest([&*path.to_string_lossy(), &*platform]);
        directory.truncate(32);
        let recipe = Recipe {
            name: names::built_image(engine.owner(), &directory, &context),
            labels: vec![
                (label::OWNER, engine.owner().to_owned()),
                (label::ROLE, names::IMAGE_ROLE.to_owned()),
                (label::DIRECTORY, directory),
                (label::CONTEXT, context),
            ],
            directory: path,
            platform: image.platform().cloned(),
        };
        Self { stamp, recipe }
    }

    /// The image's name: another one for everything else.
    pub(super) fn name(&self) -> &str {
        &self.recipe.name
    }

    /// The image that was built of it, found or built now by what the policy
    /// says.
    pub(super) async fn present(
        &self,
        call: &Call,
        engine: &Engine,
        image: &Image,
    ) -> Result<(docker_driver::ImageFacts, Origin)> {
        if image.pull() != PullPolicy::Always {
            let _phase = call.enter(Phase::Image);
            let found = engine.image(call, self.name()).await?;
            if let Some(facts) = found.filter(|facts| self.made(facts)) {
                return Ok((facts, Origin::Present));
            }
        }
        if image.pull() == PullPolicy::Never {
            let why = "no image of what is in it now was built before, and none may be built; allow it, or build it ahead";
            return Err(self.refused(why));
        }
        let id = self.build(call, engine).await?;
        match engine.image(call, &id).await? {
            Some(facts) => Ok((facts, Origin::Built)),
            None => Err(self.refused("the engine does not have the image that it built")),
        }
    }

    /// Whether an image is what its name says.
    fn made(&self, facts: &docker_driver::ImageFacts) -> bool {
        let mut labels = self.recipe.labels.iter();
        labels.all(|(key, value)| facts.labels.get(*key) == Some(value))
    }

    async fn build(&self, call: &Call, engine: &Engine) -> Result<String> {
        let _phase = call.enter(Phase::Build);
        let (config, directory) = (engine.config().clone(), self.recipe.directory.clone());
        let tell = move |line: &str| {
            config.report(Progress::Build {
                directory: directory.clone(),
                line: line.to_owned(),
            });
        };
        engine.build(call, &self.recipe, tell).await
    }

    fn refused(&self, why: &str) -> Error {
        let directory = self.recipe.directory.display().to_string();
        let why = why.to_owned();
        Error::refused(Operation::Acquire, Refusal::ImageBuild { directory, why })
    }
}

/// Work that waits for the file system, on a thread for that.
async fn blocking<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let done = call.bound(tokio::task::spawn_blocking(work)).await;
    done.map_err(|why| {
        Error::interrupted(Operation::Acquire, why)
            .phase(Phase::Build)
            .build()
    })?
    .map_err(|error| {
        Error::new(ErrorKind::Internal, Operation::Acquire)
            .message("the task that looked at the build directory ended")
            .phase(Phase::Build)
            .source(error)
            .build()
    })
}

fn no_use(directory: &Path, unfit: Unfit) -> Error {
    let directory = directory.display().to_string();
    match unfit {
        Unfit::Refused(why) => Error::refused(
            Operation::Acquire,
            Refusal::BuildDirectory { directory, why },
        ),
        Unfit::Changed(what) => changing(&directory, &what),
        Unfit::Abandoned => Error::new(ErrorKind::Cancelled, Operation::Acquire)
            .phase(Phase::Build)
            .build(),
    }
}

/// A directory in which somebody works.
pub(super) fn changing(directory: &str, what: &str) -> Error {
    Error::new(ErrorKind::Conflict, Operation::Acquire)
        .message(format!(
            "the build directory {directory} changes while it is read ({what}); try again when nobody works in it"
        ))
        .phase(Phase::Build)
        .build()
}
