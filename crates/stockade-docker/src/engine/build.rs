//! Building images from directories of this machine.

use std::path::PathBuf;
use std::time::Duration;

use docker_driver::{Build, CallError, CallErrorKind, ImageRef, Label, LineSink, Query};
use stockade::spec::Platform;
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal, Result, Retry};

use super::images::said;
use super::{Asked, Engine, unfit};

/// What is to be built, and how it is known afterwards.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Absolute.
    pub(crate) directory: PathBuf,
    /// The name that the image is to have.
    pub(crate) name: String,
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) platform: Option<Platform>,
}

impl Engine {
    /// Builds an image, gives it this name if any, and tells each line of the
    /// client's report; the image's id. Given up, it leaves layers in the
    /// engine's cache, which the next build begins with.
    pub(crate) async fn build(
        &self,
        call: &Call,
        recipe: &Recipe,
        name: Option<&str>,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<String> {
        let mut verb = self.verb(recipe)?.tell(LineSink::new(tell));
        if let Some(name) = name {
            verb = verb.tag(ImageRef::new(name).map_err(unfit)?);
        }
        let limit = self.config().build_timeout;
        match self.query_within(call, limit, verb).await {
            Asked::Answered(id) => Ok(id.to_string()),
            Asked::Failed(error) => Err(failed(recipe, error)),
            Asked::Interrupted(_) if call.interruption().is_none() => {
                Err(Error::new(ErrorKind::Unavailable, Operation::Acquire)
                    .message(format!(
                        "the build of {} took longer than {} s; give it more with `DockerConfig::build_timeout`, or build it ahead",
                        recipe.directory.display(),
                        limit.as_secs()
                    ))
                    .phase(Phase::Build)
                    .build())
            }
            Asked::Interrupted(why) => Err(Error::interrupted(Operation::Acquire, why)
                .phase(Phase::Build)
                .build()),
        }
    }

    /// A query with a bound of its own, shorter than the driver's: one that
    /// was interrupted in a call that was not took longer.
    pub(super) async fn query_within<V: Query>(
        &self,
        call: &Call,
        limit: Duration,
        verb: V,
    ) -> Asked<V::Answer> {
        let limited = call.child(limit);
        let asked = limited.bound(self.query(call, verb)).await;
        asked.unwrap_or_else(Asked::Interrupted)
    }

    fn verb(&self, recipe: &Recipe) -> Result<Build> {
        let labels = recipe.labels.iter();
        let labels: Result<Vec<_>, _> =
            labels.map(|(key, value)| Label::new(*key, value)).collect();
        let build = Build::new(&recipe.directory).map_err(|error| {
            Error::new(ErrorKind::InvalidRequest, Operation::Acquire)
                .message("the build directory has no absolute path")
                .phase(Phase::Build)
                .source(error)
                .build()
        })?;
        let mut build = build.labels(labels.map_err(unfit)?);
        if !self.config().build_network {
            build = build.offline();
        }
        if let Some(platform) = &recipe.platform {
            let platform = docker_driver::Platform::new(platform.to_string()).map_err(unfit)?;
            build = build.platform(platform);
        }
        Ok(build)
    }
}

/// What the recipe is to blame for is a refusal.
fn failed(recipe: &Recipe, error: CallError) -> Error {
    let directory = recipe.directory.display().to_string();
    let (refusal, retry) = match error.kind() {
        CallErrorKind::NoDockerfile => {
            let why = "there is no Dockerfile in it".to_owned();
            (Refusal::BuildDirectory { directory, why }, Retry::Never)
        }
        // A step may fail for what it fetches, too.
        CallErrorKind::BuildFailed => {
            let why = "a step failed, or the recipe is not valid".to_owned();
            (Refusal::ImageBuild { directory, why }, Retry::Later)
        }
        CallErrorKind::NotInRegistry
        | CallErrorKind::NoSuchImage
        | CallErrorKind::RegistryDenied
        | CallErrorKind::PlatformMismatch => {
            let why = format!("of its base image, {}", said(&error));
            (Refusal::ImageBuild { directory, why }, Retry::Later)
        }
        CallErrorKind::RegistryUnreachable => {
            return Error::new(ErrorKind::Unavailable, Operation::Acquire)
                .message(format!(
                    "the base image of {directory} is not on the engine, and its registry cannot be reached from there; check the name after FROM, or bring the image there with `docker load`"
                ))
                .phase(Phase::Build)
                .detail(error.detail())
                .source(error)
                .build();
        }
        _ => return super::lift::call(Operation::Acquire, Phase::Build, error),
    };
    Error::refused(Operation::Acquire, refusal)
        .reopen()
        .phase(Phase::Build)
        .retry(retry)
        .detail(error.detail())
        .source(error)
        .build()
}
