//! What is known of an image: what the engine says of it, and what our own
//! runtime found in it. Asked once per image id and binding.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stockade::spec::{Digest, Image, Platform, PullPolicy};
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal};
use stockade_wire::message::{Facts, PathFacts, UserFacts};

use crate::config::Progress;
use crate::engine::{Engine, Probe};
use crate::runtime::Runtime;

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
}

/// What was asked for; a reference may come to mean another image, so what is
/// known of it is forgotten when it is pulled again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    reference: String,
    digest: Option<String>,
    platform: Option<String>,
    paths: Vec<String>,
}

type Known = Arc<ImageFacts>;

impl Images {
    /// The facts, from memory or from the engine: one `image inspect` and one
    /// bounded run, and a pull where the policy asks for it.
    ///
    /// # Errors
    ///
    /// A refusal when the image is not there, is another one than required,
    /// or is of another platform.
    pub(crate) async fn facts(
        &self,
        call: &Call,
        engine: &Engine,
        runtime: &Runtime,
        image: &Image,
        paths: Vec<String>,
    ) -> Result<Known, Error> {
        let reference = image.name().ok_or_else(unnamed)?;
        let asked = Asked {
            reference: reference.to_owned(),
            digest: image.digest().map(|digest| digest.as_str().to_owned()),
            platform: image.platform().map(ToString::to_string),
            paths,
        };
        if image.pull() != PullPolicy::Always
            && let Some(known) = self.lock().get(&asked)
        {
            return Ok(Arc::clone(known));
        }
        let info = {
            let _phase = call.enter(Phase::Image);
            present(call, engine, image, reference).await?
        };
        check_digest(image.digest(), &info)?;
        check_platform(image.platform(), engine, &info)?;
        let facts = Arc::new(probe(call, engine, runtime, info, &asked.paths).await?);
        self.lock().insert(asked, Arc::clone(&facts));
        Ok(facts)
    }

    /// Forgets an image that turned out to be gone.
    pub(crate) fn forget(&self, id: &str) {
        self.lock().retain(|_, facts| facts.id != id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Asked, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
) -> Result<docker_driver::ImageFacts, Error> {
    if image.pull() == PullPolicy::Always {
        pull(call, engine, image, reference).await?;
    }
    if let Some(info) = engine.image(call, reference).await? {
        return Ok(info);
    }
    if image.pull() == PullPolicy::Missing {
        pull(call, engine, image, reference).await?;
        if let Some(info) = engine.image(call, reference).await? {
            return Ok(info);
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
}

fn unnamed() -> Error {
    // `admit` refuses build directories, since they are not declared.
    Error::new(ErrorKind::Internal, Operation::Acquire)
        .message("an image without a reference was admitted")
        .build()
}
