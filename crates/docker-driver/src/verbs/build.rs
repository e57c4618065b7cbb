//! Building images.

use std::io;
use std::path::{self, PathBuf};

use crate::argv::{Argv, ImageId, ImageRef, Label, Platform};
use crate::error::CallErrorKind;
use crate::phrases;
use crate::verb::{LineSink, Output, ParseError, Query, TimeoutClass, Verb};

/// `docker build` of a folder of this machine, by the `Dockerfile` in it. It
/// may take as long as a pull ([`TimeoutClass::Long`]).
///
/// Which builder runs is the client's own choice: BuildKit where its plugin is
/// installed for the whole machine, and otherwise the classic builder, which
/// says first of all that it is deprecated. What is given here means the same
/// to both. A base image that the engine does not have is pulled.
///
/// A failure is [`BuildFailed`](CallErrorKind::BuildFailed) (a step failed, or
/// the Dockerfile is wrong),
/// [`NoDockerfile`](CallErrorKind::NoDockerfile),
/// [`NotInRegistry`](CallErrorKind::NotInRegistry),
/// [`RegistryDenied`](CallErrorKind::RegistryDenied) or
/// [`RegistryUnreachable`](CallErrorKind::RegistryUnreachable) (of a base
/// image), [`DiskFull`](CallErrorKind::DiskFull), or one that any call can
/// have. The detail has the end of the build's output.
///
/// # What a build leaves that does not end well
///
/// When it is given up, the end of the client's connection cancels it in the
/// engine: its container was gone within half a second of a client that was
/// killed, with the classic builder of engine 28.5.2. What remains, then and
/// after a step that failed, are the images of the steps before, without a name
/// and without the labels, which come last. The next build of the same folder
/// begins with them; `docker image prune` removes them. BuildKit keeps the like
/// in its cache. A build that is given up in its last moment may be done
/// nevertheless, and its image is left, with its labels.
#[derive(Debug, Clone)]
pub struct Build {
    folder: PathBuf,
    labels: Vec<Label>,
    platform: Option<Platform>,
    offline: bool,
    tag: Option<ImageRef>,
    progress: LineSink,
}

impl Build {
    /// Builds this folder. A relative path is taken from the working directory
    /// of now.
    ///
    /// # Errors
    ///
    /// The path is empty, or there is no working directory.
    pub fn new(folder: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            folder: path::absolute(folder.into())?,
            labels: Vec::new(),
            platform: None,
            offline: false,
            tag: None,
            progress: LineSink::new(|_| {}),
        })
    }

    /// Labels the image.
    #[must_use]
    pub fn labels(mut self, labels: impl IntoIterator<Item = Label>) -> Self {
        self.labels.extend(labels);
        self
    }

    /// Builds for this platform.
    #[must_use]
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Runs the steps without a network. Base images are pulled nevertheless.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.offline = true;
        self
    }

    /// Gives the image this name, and takes it from an image that has it.
    #[must_use]
    pub fn tag(mut self, name: ImageRef) -> Self {
        self.tag = Some(name);
        self
    }

    /// Tells of each line of progress, whichever stream it comes on.
    #[must_use]
    pub fn tell(mut self, progress: LineSink) -> Self {
        self.progress = progress;
        self
    }
}

impl Verb for Build {
    type Answer = ImageId;
    const NAME: &'static str = "build";

    fn argv(&self) -> Argv {
        Argv::new(&["build"])
            // BuildKit takes this as well, and has no use for it.
            .flag("force-rm")
            .image_file()
            .maybe("platform", self.platform.as_ref())
            .maybe("network", self.offline.then_some("none"))
            .maybe("tag", self.tag.as_ref())
            .options("label", &self.labels)
            .path(&self.folder)
    }

    fn parse(&self, output: &Output) -> Result<ImageId, ParseError> {
        let built = output.built.clone();
        built.ok_or_else(|| ParseError::new("the id of an image", "docker wrote none down"))
    }

    fn timeout_class(&self) -> TimeoutClass {
        TimeoutClass::Long
    }

    fn said(&self, output: &Output) -> CallErrorKind {
        phrases::classify_build(output)
    }

    fn progress(&self) -> Option<&LineSink> {
        Some(&self.progress)
    }

    fn progress_is_on_both(&self) -> bool {
        true
    }
}

impl Query for Build {}
