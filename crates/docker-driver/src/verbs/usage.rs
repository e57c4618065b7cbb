//! What lies on the engine's disk.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::{json, size};
use crate::argv::{Argv, ContainerId, ImageId};
use crate::verb::{Output, ParseError, Query, Verb};

/// `docker system df --verbose`: what each image, container and volume takes
/// of the engine's disk. The engine walks its files for it, which may take
/// seconds.
///
/// All sizes are in bytes, but docker prints three or four digits of each: they
/// are right within 0.5 %, which is for people to read and nothing to count
/// with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to ask for")]
pub struct DiskUsage;

/// What the engine keeps on its disk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct EngineUsage {
    /// Images.
    #[serde(deserialize_with = "or_none")]
    pub images: Vec<ImageUsage>,
    /// Containers, whether they run or not.
    #[serde(deserialize_with = "or_none")]
    pub containers: Vec<ContainerUsage>,
    /// Volumes.
    #[serde(deserialize_with = "or_none")]
    pub volumes: Vec<VolumeUsage>,
}

/// What an image takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct ImageUsage {
    /// Its id.
    #[serde(rename = "ID", deserialize_with = "image_id")]
    pub id: ImageId,
    /// All of it, in bytes.
    #[serde(deserialize_with = "bytes")]
    pub size: Option<u64>,
    /// What other images need too, in bytes.
    #[serde(rename = "SharedSize", deserialize_with = "bytes")]
    pub shared: Option<u64>,
    /// What would become free without it, in bytes.
    #[serde(rename = "UniqueSize", deserialize_with = "bytes")]
    pub unique: Option<u64>,
    /// How many containers were made of it, running or not.
    #[serde(deserialize_with = "count")]
    pub containers: Option<u64>,
}

/// What a container takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct ContainerUsage {
    /// Its id.
    #[serde(rename = "ID", deserialize_with = "container_id")]
    pub id: ContainerId,
    /// What it has written to its own layer, in bytes; without its image and
    /// its volumes.
    #[serde(rename = "Size", deserialize_with = "bytes")]
    pub written: Option<u64>,
}

/// What a volume takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct VolumeUsage {
    /// Its name.
    pub name: String,
    /// All of it, in bytes. None where the engine cannot tell, as of drivers of
    /// others; 0 for one in memory that no container has mounted.
    #[serde(deserialize_with = "bytes")]
    pub size: Option<u64>,
    /// How many containers have it, running or not. None where the engine
    /// cannot tell its size either.
    #[serde(deserialize_with = "count")]
    pub links: Option<u64>,
}

impl Verb for DiskUsage {
    type Answer = EngineUsage;
    const NAME: &'static str = "system df";

    fn argv(&self) -> Argv {
        Argv::new(&["system", "df"]).flag("verbose").json()
    }

    fn parse(&self, output: &Output) -> Result<EngineUsage, ParseError> {
        json::one("a list of what takes space", &output.stdout)
    }
}

impl Query for DiskUsage {}

/// Go writes `null` for an empty list.
fn or_none<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from).map(Option::unwrap_or_default)
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    // A container's may be followed by what it has in all.
    let own = text.split_once(" (").map_or(&*text, |(own, _)| own);
    size::parse(own).map_err(D::Error::custom)
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match &*String::deserialize(from)? {
        "N/A" => Ok(None),
        number => number.parse().map(Some).map_err(D::Error::custom),
    }
}

fn image_id<'de, D: Deserializer<'de>>(from: D) -> Result<ImageId, D::Error> {
    ImageId::new(String::deserialize(from)?).map_err(D::Error::custom)
}

fn container_id<'de, D: Deserializer<'de>>(from: D) -> Result<ContainerId, D::Error> {
    ContainerId::new(String::deserialize(from)?).map_err(D::Error::custom)
}
