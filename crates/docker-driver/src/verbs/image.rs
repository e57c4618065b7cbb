//! Images.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Deserialize;

use super::json;
use crate::argv::{Argv, ImageRef, Platform};
use crate::phrases;
use crate::time::maybe_time;
use crate::verb::{LineSink, Output, ParseError, Query, Subject, TimeoutClass, Verb};

/// `docker image inspect`. An image that the engine does not have is an
/// answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectImage {
    image: ImageRef,
}

/// What the engine says of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageFacts {
    /// Its id, `sha256:` and 64 hexadecimal digits.
    pub id: String,
    /// `name:tag` of every name that it has.
    pub tags: Vec<String>,
    /// `name@sha256:…` of every registry that it is known in.
    pub digests: Vec<String>,
    /// When it was built, as its builder says, which may be any time.
    pub created: Option<SystemTime>,
    /// Operating system.
    pub os: String,
    /// Processor architecture, by Go's name, such as `amd64`.
    pub architecture: String,
    /// Variant of the architecture; often empty.
    pub variant: String,
    /// Size in bytes.
    pub size: u64,
    /// `NAME=value` of its environment.
    pub env: Vec<String>,
    /// User, as the image names it; empty is root.
    pub user: String,
    /// Paths that it declares to be volumes.
    pub volumes: Vec<String>,
    /// Working directory; may be empty.
    pub work_dir: String,
    /// Entry point.
    pub entrypoint: Vec<String>,
    /// Default command.
    pub command: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// `docker pull`. Safe to end at any time: what is half done is no image yet,
/// and another pull of it goes on by itself.
#[derive(Debug, Clone)]
pub struct Pull {
    image: ImageRef,
    platform: Option<Platform>,
    quiet: bool,
    progress: LineSink,
}

impl InspectImage {
    /// Looks at this image.
    pub fn new(image: ImageRef) -> Self {
        Self { image }
    }
}

impl Pull {
    /// Pulls this image, quietly.
    pub fn new(image: ImageRef) -> Self {
        Self {
            image,
            platform: None,
            quiet: true,
            progress: LineSink::new(|_| {}),
        }
    }

    /// Pulls the variant for this platform.
    #[must_use]
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Tells of each line of progress.
    #[must_use]
    pub fn tell(mut self, progress: LineSink) -> Self {
        self.progress = progress;
        self.quiet = false;
        self
    }
}

impl Verb for InspectImage {
    type Answer = Option<ImageFacts>;
    const NAME: &'static str = "image inspect";

    fn argv(&self) -> Argv {
        Argv::new(&["image", "inspect"]).positional(&self.image)
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        let [found]: [Raw; 1] = json::one("a list of one image", &output.stdout)?;
        let config = found.config.unwrap_or_default();
        Ok(Some(ImageFacts {
            id: found.id,
            tags: found.repo_tags.unwrap_or_default(),
            digests: found.repo_digests.unwrap_or_default(),
            created: maybe_time(&found.created.unwrap_or_default())?,
            os: found.os,
            architecture: found.architecture,
            variant: found.variant,
            size: found.size,
            env: config.env.unwrap_or_default(),
            user: config.user,
            volumes: config.volumes.unwrap_or_default().into_keys().collect(),
            work_dir: config.working_dir,
            entrypoint: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            labels: config.labels.unwrap_or_default(),
        }))
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::Image(self.image.clone()))
    }

    fn when_absent(&self) -> Option<Self::Answer> {
        Some(None)
    }
}

impl Query for InspectImage {}

impl Verb for Pull {
    type Answer = ();
    const NAME: &'static str = "pull";

    fn argv(&self) -> Argv {
        Argv::new(&["pull"])
            .option("quiet", self.quiet)
            .maybe("platform", self.platform.as_ref())
            .positional(&self.image)
    }

    fn parse(&self, _: &Output) -> Result<(), ParseError> {
        Ok(())
    }

    fn timeout_class(&self) -> TimeoutClass {
        TimeoutClass::Long
    }

    fn progress(&self) -> Option<&LineSink> {
        Some(&self.progress)
    }

    /// Version 28 then waits for an answer for ever, even at the end of its
    /// input.
    fn prompt(&self) -> Option<&'static str> {
        Some(phrases::LOGIN_PROMPT)
    }
}

impl Query for Pull {}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    id: String,
    repo_tags: Option<Vec<String>>,
    repo_digests: Option<Vec<String>>,
    created: Option<String>,
    os: String,
    architecture: String,
    #[serde(default)]
    variant: String,
    #[serde(default)]
    size: u64,
    config: Option<RawConfig>,
}

/// The fields that an engine leaves out when they are empty (29 does) are the
/// same as empty ones.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct RawConfig {
    env: Option<Vec<String>>,
    user: String,
    volumes: Option<BTreeMap<String, serde_json::Value>>,
    working_dir: String,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    labels: Option<BTreeMap<String, String>>,
}
