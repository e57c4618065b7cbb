//! Finding and removing images.

use serde::Deserialize;

use super::{Removal, json};
use crate::argv::{Argv, ImageId, Label};
use crate::undo::Undo;
use crate::verb::{Effect, Mutation, Output, ParseError, Query, Subject, Verb};

const EXPECTED: &str = "a list of images";

/// What docker prints in place of a part of a name that an image has not.
const NONE: &str = "<none>";

/// `docker image ls`: the images that meet every filter, in the engine's
/// order. What a build left between its steps is not among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListImages {
    labels: Vec<Label>,
    only: Option<ImageId>,
}

/// One image of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageRow {
    /// Its id.
    pub id: ImageId,
    /// `name:tag` of every name that it has; none, if it has been replaced
    /// under all of them or never had one.
    pub tags: Vec<String>,
}

/// `docker image rm`, without force: removes an image with its one name and
/// with what only it needs.
///
/// One that is not there is an answer. One that something uses is left alone,
/// with [`ImageInUse`](crate::CallErrorKind::ImageInUse): a container, which
/// need not run, another image that was built from it, or a second name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveImage {
    image: ImageId,
}

impl ListImages {
    /// Every image that has all of these labels with these values.
    pub fn labelled(labels: impl IntoIterator<Item = Label>) -> Self {
        Self {
            labels: labels.into_iter().collect(),
            only: None,
        }
    }

    /// Demands this very image. It may also be one that a build left between
    /// its steps.
    #[must_use]
    pub fn only(mut self, image: ImageId) -> Self {
        self.only = Some(image);
        self
    }
}

impl RemoveImage {
    /// Removes this image.
    pub fn new(image: ImageId) -> Self {
        Self { image }
    }
}

impl Verb for ListImages {
    type Answer = Vec<ImageRow>;
    const NAME: &'static str = "image ls";

    fn argv(&self) -> Argv {
        let labels = self.labels.iter().map(|label| format!("label={label}"));
        Argv::new(&["image", "ls"])
            // There is no filter by id; `parse` compares.
            .option("all", self.only.is_some())
            .flag("no-trunc")
            .json()
            .options("filter", labels)
    }

    fn parse(&self, output: &Output) -> Result<Self::Answer, ParseError> {
        let raw: Vec<RawRow> = json::lines(EXPECTED, &output.stdout)?;
        let mut rows: Vec<ImageRow> = Vec::new();
        for raw in raw {
            let id = ImageId::new(raw.id).map_err(|error| ParseError::new(EXPECTED, error))?;
            if self.only.as_ref().is_some_and(|only| *only != id) {
                continue;
            }
            let tag = (raw.repository != NONE && raw.tag != NONE)
                .then(|| format!("{}:{}", raw.repository, raw.tag));
            // There is a row for every name.
            match rows.iter_mut().find(|row| row.id == id) {
                Some(row) => row.tags.extend(tag),
                None => rows.push(ImageRow {
                    id,
                    tags: tag.into_iter().collect(),
                }),
            }
        }
        Ok(rows)
    }
}

impl Query for ListImages {}

impl Verb for RemoveImage {
    type Answer = Removal;
    const NAME: &'static str = "image rm";

    fn argv(&self) -> Argv {
        Argv::new(&["image", "rm"]).positional(&self.image)
    }

    /// Everything that was removed is named, names first.
    fn parse(&self, output: &Output) -> Result<Removal, ParseError> {
        let id = self.image.as_str().as_bytes();
        let mut lines = output.stdout.split(|byte| *byte == b'\n');
        if lines.any(|line| line.ends_with(id)) {
            Ok(Removal::Removed)
        } else {
            let found = format_args!("{} bytes of something else", output.stdout.len());
            Err(ParseError::new("a list with the id of the image", found))
        }
    }

    fn subject(&self) -> Option<Subject> {
        Some(Subject::ImageId(self.image.clone()))
    }

    fn when_absent(&self) -> Option<Removal> {
        Some(Removal::Absent)
    }
}

impl Mutation for RemoveImage {
    fn undo(&self, _: Effect<'_, Removal>) -> Undo {
        Undo::Nothing
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawRow {
    #[serde(rename = "ID")]
    id: String,
    repository: String,
    tag: String,
}
