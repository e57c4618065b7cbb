//! What is known of an image: what the engine says of it, and what our own
//! runtime found in it. Asked once per image id and binding.

mod built;
mod context;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use stockade::spec::{Digest, Image, ImageSource, Platform, PullPolicy};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal};
use stockade_wire::message::{Facts, PathFacts, UserFacts};

use crate::config::Progress;
use crate::engine::{Engine, Probe};
use crate::runtime::Runtime;
use built::Directories;

/// How often a directory that changes while it is built is built again.
const BUILDS: u32 = 3;

/// What a plan needs to know of an image.
#[derive(Debug, Clone)]
pub(crate) struct ImageFacts {
    /// The engine's id, `sha256:…`: what is run, whatever a tag means later.
    pub(crate) id: String,
    /// The user as the image names it; empty for root.
    pub(crate) user_name: String,
    /// That user, or why it cannot be resolved.
    pub(crate) user: Result<UserFacts, String>,
    /// `NAME=value` of the image's configuration.
    pub(crate) env: Vec<String>,
    /// Paths at which the image declares a volume.
    pub(crate) volumes: Vec<String>,
    /// What it has at each path that a plan may mount over.
    pub(crate) paths: Vec<PathFacts>,
}

/// Facts by image reference and paths.
#[derive(Debug, Default)]
pub(crate) struct Images {
    known: Mutex<HashMap<Asked, Known>>,
    directories: Directories,
}

/// Where an image was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On the engine, or in this process's memory.
    Present,
    Pulled,
    Built,
}

/// An image of which everything is known that a plan needs.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) facts: Known,
    pub(crate) origin: Origin,
}

/// What was asked for; a reference may come to mean another image, so what is
/// known of it is forgotten when it is pulled again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    /// Of what is built, the name that its content leads to.
    reference: String,
    digest: Option<String>,
    platform: Option<String>,
    paths: Vec<String>,
}

type Known = Arc<ImageFacts>;

impl Images {
    /// The facts, from memory or from the engine: one `image inspect` and one
    /// bounded run, and a pull or a build where the policy asks for it.
    ///
    /// # Errors
    ///
    /// A refusal when the image is not there, is another one than required,
    /// or is of another platform, or when it cannot be built.
    pub(crate) async fn facts(
        &self,
        call: &Call,
        engine: &Engine,
        runtime: &Runtime,
        image: &Image,
        paths: Vec<String>,
    ) -> Result<Known, Error> {
        let ready = self.ready(call, engine, runtime, image, paths).await?;
        Ok(ready.facts)
    }

    /// The same, with where it was found.
    pub(crate) async fn ready(
        &self,
        call: &Call,
        engine: &Engine,
        runtime: &Runtime,
        image: &Image,
        paths: Vec<String>,
    ) -> Result<Ready, Error> {
        let reference = match image.source() {
            ImageSource::Build(directory) => {
                return self
                    .built(call, engine, runtime, image, directory, paths)
                    .await;
            }
            _ => image.name().ok_or_else(unnamed)?,
        };
        let asked = Asked::new(reference, image, paths);
        if let Some(ready) = self.remembered(image, &asked) {
            return Ok(ready);
        }
        let (info, origin) = {
            let _phase = call.enter(Phase::Image);
            present(call, engine, image, reference).await?
        };
        check_digest(image.digest(), &info)?;
        self.learn(call, engine, runtime, image, asked, (info, origin))
            .await
    }

    /// An image that is built: which one it is, its directory's content says,
    /// so that it is looked at each time.
    async fn built(
        &self,
        call: &Call,
        engine: &Engine,
        runtime: &Runtime,
        image: &Image,
        at: &Path,
        paths: Vec<String>,
    ) -> Result<Ready, Error> {
        for _ in 0..BUILDS {
            let directory = self.directories.look(call, engine, image, at).await?;
            let asked = Asked::new(directory.name(), image, paths.clone());
            if let Some(ready) = self.remembered(image, &asked) {
                return Ok(ready);
            }
            let _turn = directory.turn(call, engine).await?;
            // Who had the turn before may have built just this.
            if let Some(ready) = self.remembered(image, &asked) {
                return Ok(ready);
            }
            let (info, origin) = directory.present(call, engine, image).await?;
            if origin == Origin::Built && !self.directories.is_unchanged(call, &directory).await? {
                // It is not known what is in it: nobody must find it.
                let removed = engine.remove_image(call, Operation::Acquire, &info.id);
                removed.await?;
                continue;
            }
            return self
                .learn(call, engine, runtime, image, asked, (info, origin))
                .await;
        }
        let at = at.display().to_string();
        let what = format!("{BUILDS} builds found it changed when they were done");
        Err(built::changing(&at, &what))
    }

    /// What is known already, unless the policy asks for a new look.
    fn remembered(&self, image: &Image, asked: &Asked) -> Option<Ready> {
        if image.pull() == PullPolicy::Always {
            return None;
        }
        let facts = Arc::clone(self.lock().get(asked)?);
        let origin = Origin::Present;
        Some(Ready { facts, origin })
    }

    async fn learn(
        &self,
        call: &Call,
        engine: &Engine,
        runtime: &Runtime,
        image: &Image,
        asked: Asked,
        (info, origin): (docker_driver::ImageFacts, Origin),
    ) -> Result<Ready, Error> {
        check_platform(image.platform(), engine, &info)?;
        let known = self.lock().get(&asked).cloned();
        if let Some(facts) = known.filter(|facts| facts.id == info.id) {
            return Ok(Ready { facts, origin });
        }
        let facts = Arc::new(probe(call, engine, runtime, info, &asked.paths).await?);
        self.lock().insert(asked, Arc::clone(&facts));
        Ok(Ready { facts, origin })
    }

    /// Forgets an image that turned out to be gone.
    pub(crate) fn forget(&self, id: &str) {
        self.lock().retain(|_, facts| facts.id != id);
    }

    /// Forgets every image.
    pub(crate) fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Asked, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    fn new(reference: &str, image: &Image, paths: Vec<String>) -> Self {
        Self {
            reference: reference.to_owned(),
            digest: image.digest().map(|digest| digest.as_str().to_owned()),
            platform: image.platform().map(ToString::to_string),
            paths,
        }
    }
}

impl ImageFacts {
    /// What the image has at a path that was asked about.
    pub(crate) fn at(&self, path: &str) -> Option<&PathFacts> {
        self.paths
            .iter()
            .find(|facts| facts.path.as_bytes() == path.as_bytes())
    }
}

async fn present(
    call: &Call,
    engine: &Engine,
    image: &Image,
    reference: &str,
) -> Result<(docker_driver::ImageFacts, Origin), Error> {
    let mut origin = Origin::Present;
    if image.pull() == PullPolicy::Always {
        pull(call, engine, image, reference).await?;
        origin = Origin::Pulled;
    }
    if let Some(info) = engine.image(call, reference).await? {
        return Ok((info, origin));
    }
    if image.pull() == PullPolicy::Missing {
        pull(call, engine, image, reference).await?;
        if let Some(info) = engine.image(call, reference).await? {
            return Ok((info, Origin::Pulled));
        }
    }
    let detail = match image.pull() {
        PullPolicy::Never => "the engine does not have it, and it may not be pulled",
        _ => "the engine does not have it, even after a pull",
    };
    Err(not_found(reference, detail))
}

async fn pull(call: &Call, engine: &Engine, image: &Image, reference: &str) -> Result<(), Error> {
    let _phase = call.enter(Phase::Pull);
    let report = engine.config().clone();
    let name = reference.to_owned();
    let on_line = move |line: &str| {
        report.report(Progress::Pull {
            image: name.clone(),
            line: line.to_owned(),
        });
    };
    engine
        .pull(call, reference, image.platform(), on_line)
        .await
}

fn check_digest(wanted: Option<&Digest>, info: &docker_driver::ImageFacts) -> Result<(), Error> {
    let Some(wanted) = wanted else { return Ok(()) };
    let mut found = vec![info.id.clone()];
    found.extend(info.digests.iter().cloned());
    let has = |text: &String| text.rsplit('@').next() == Some(wanted.as_str());
    if found.iter().any(has) {
        return Ok(());
    }
    refuse(Refusal::ImageDigestMismatch {
        wanted: wanted.clone(),
        found,
    })
}

/// A container of another platform than the engine's would need emulation,
/// which the guest runtime cannot promise anything about.
fn check_platform(
    wanted: Option<&Platform>,
    engine: &Engine,
    info: &docker_driver::ImageFacts,
) -> Result<(), Error> {
    let found = format!("{}/{}", info.os, info.architecture);
    if let Some(wanted) = wanted
        && (wanted.os() != info.os || wanted.architecture() != info.architecture)
    {
        return refuse(Refusal::ImagePlatformMismatch {
            wanted: wanted.clone(),
            found,
        });
    }
    let engines = engine.platform();
    if engines.os() == info.os && engines.architecture() == info.architecture {
        return Ok(());
    }
    refuse(Refusal::ImagePlatformMismatch {
        wanted: engines.clone(),
        found,
    })
}

/// The same before anything is built, for another platform than the engine's.
fn check_platform_of_engine(wanted: Option<&Platform>, engine: &Engine) -> Result<(), Error> {
    let engines = engine.platform();
    match wanted {
        Some(wanted)
            if wanted.os() != engines.os() || wanted.architecture() != engines.architecture() =>
        {
            refuse(Refusal::ImagePlatformMismatch {
                wanted: engines.clone(),
                found: wanted.to_string(),
            })
        }
        _ => Ok(()),
    }
}

async fn probe(
    call: &Call,
    engine: &Engine,
    runtime: &Runtime,
    info: docker_driver::ImageFacts,
    paths: &[String],
) -> Result<ImageFacts, Error> {
    let mut paths = paths.to_vec();
    paths.extend(info.volumes.iter().cloned());
    let probe = Probe {
        image_id: &info.id,
        user: &info.user,
        paths: &paths,
    };
    let facts: Facts = runtime.facts(call, engine, probe).await?;
    Ok(ImageFacts {
        id: info.id,
        user_name: info.user,
        user: facts.user,
        env: info.env,
        volumes: info.volumes,
        paths: facts.paths,
    })
}

fn refuse<T>(refusal: Refusal) -> Result<T, Error> {
    Err(Error::refused(Operation::Acquire, refusal))
}

pub(crate) fn not_found(reference: &str, detail: &str) -> Error {
    let refusal = Refusal::ImageNotFound {
        reference: reference.to_owned(),
        detail: detail.to_owned(),
    };
    Error::refused(Operation::Acquire, refusal)
        .reopen()
        .phase(Phase::Image)
        .build()
}

fn unnamed() -> Error {
    // There is no third source.
    Error::new(ErrorKind::Internal, Operation::Acquire)
        .message("an image without a reference was admitted")
        .build()
}
