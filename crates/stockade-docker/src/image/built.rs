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
use std::sync::{Mutex, PoisonError};

use stockade::spec::{Image, PullPolicy};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal, Result};

use super::context::{Context, Stamp, StopOnDrop, Unfit};
use super::{Origin, check_platform_of_engine};
use crate::config::Progress;
use crate::engine::{Engine, Recipe};
use crate::hold::Running;
use crate::names::{self, label};

/// What this process knows of build directories.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// The digest that a directory had when it last looked like this.
    seen: Mutex<HashMap<PathBuf, (Stamp, String)>>,
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
        // A path that is no text may be taken for another, whose images then
        // count as one directory's; which image is meant, its content says.
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

    /// Waits until nobody else on this host builds it, as far as its file
    /// system can tell.
    pub(super) async fn turn(&self, call: &Call, engine: &Engine) -> Result<Running> {
        let _phase = call.enter(Phase::Build);
        Running::claim(engine, call, Operation::Acquire, self.name()).await
    }

    /// The image that was built of it, found or built now by what the policy
    /// says.
    pub(super) async fn present(
        &self,
        call: &Call,
        engine: &Engine,
        image: &Image,
    ) -> Result<(docker_driver::ImageFacts, Origin)> {
        let before = self.found(call, engine).await?;
        match (before, image.pull()) {
            (before, PullPolicy::Always) => self.build(call, engine, before).await,
            (Some(facts), _) => Ok((facts, Origin::Present)),
            (None, PullPolicy::Never) => Err(self.refused(
                "no image of what is in it now was built before, and none may be built; allow it, or build it ahead",
            )),
            (None, _) => self.build(call, engine, None).await,
        }
    }

    /// What has its name.
    async fn found(
        &self,
        call: &Call,
        engine: &Engine,
    ) -> Result<Option<docker_driver::ImageFacts>> {
        let _phase = call.enter(Phase::Image);
        let found = engine.image(call, self.name()).await?;
        Ok(found.filter(|facts| self.made(facts)))
    }

    /// Builds it without the name first, which another host may have given to
    /// an image of its own meanwhile: then that one counts, so that all have
    /// the same. To give the name is a second build, which takes every step
    /// from the engine's cache.
    async fn build(
        &self,
        call: &Call,
        engine: &Engine,
        before: Option<docker_driver::ImageFacts>,
    ) -> Result<(docker_driver::ImageFacts, Origin)> {
        let _phase = call.enter(Phase::Build);
        let before = before.map(|facts| facts.id);
        let (config, directory) = (engine.config().clone(), self.recipe.directory.clone());
        let tell = move |line: &str| {
            config.report(Progress::Build {
                directory: directory.clone(),
                line: line.to_owned(),
            });
        };
        let mut made = vec![engine.build(call, &self.recipe, None, tell).await?];
        let mut now = self.found(call, engine).await?;
        if now.as_ref().map(|facts| &facts.id) == before.as_ref() && before != made.first().cloned()
        {
            made.push(
                engine
                    .build(call, &self.recipe, Some(self.name()), |_| {})
                    .await?,
            );
            now = self.found(call, engine).await?;
        }
        let Some(facts) = now else {
            return Err(self.refused("the engine does not have the image that it built"));
        };
        let origin = match made.contains(&facts.id) {
            true => Origin::Built,
            false => Origin::Present,
        };
        for id in before.into_iter().chain(made) {
            if id != facts.id {
                // One that is in use stays, and so does one that cannot be
                // removed now: nobody is to wait for that.
                let _ = engine.remove_image(call, Operation::Acquire, &id).await;
            }
        }
        Ok((facts, origin))
    }

    /// Whether an image is what its name says.
    fn made(&self, facts: &docker_driver::ImageFacts) -> bool {
        let mut labels = self.recipe.labels.iter();
        labels.all(|(key, value)| facts.labels.get(*key) == Some(value))
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
