//! What is mounted into a container. There is no bind mount.

use std::fmt;

use crate::argv::{ContainerPath, Label, VolumeName, quote};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Volume {
        /// Without one the engine names it, and it ends with the last
        /// container that has it.
        name: Option<VolumeName>,
        path: ContainerPath,
        read_only: bool,
        labels: Vec<Label>,
    },
    TmpfsVolume(TmpfsVolume),
    Tmpfs {
        path: ContainerPath,
        bytes: u64,
        mode: u32,
    },
}

/// An anonymous local volume that is backed by memory. Unlike a plain tmpfs
/// it is seen by `docker cp`; it ends with its container.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a plan must say all of it; a new field is a new decision"
)]
pub struct TmpfsVolume {
    /// Where it is mounted.
    pub path: ContainerPath,
    /// Its size in bytes.
    pub bytes: u64,
    /// The most files and directories that it holds.
    pub inodes: u64,
    /// User and group id of its root directory; the engine's root if `None`.
    pub owner: Option<(u32, u32)>,
    /// Permissions of its root directory, such as `0o700`.
    pub mode: u32,
    /// Labels of the volume, so that nothing is without an owner.
    pub labels: Vec<Label>,
}

impl Mount {
    /// A named volume, writable. The engine creates it, empty, when it does
    /// not exist.
    pub fn volume(name: VolumeName, path: ContainerPath) -> Self {
        Self::local_volume(Some(name), path)
    }

    /// An anonymous volume on the engine's disk, writable. It outlives a stop
    /// of its container, and ends when the last container that has it is
    /// removed, also when that one got it by
    /// [`volumes_from`](super::RunOptions::volumes_from).
    pub fn anonymous_volume(path: ContainerPath) -> Self {
        Self::local_volume(None, path)
    }

    /// An anonymous volume in memory.
    pub fn tmpfs_volume(volume: TmpfsVolume) -> Self {
        Self(Kind::TmpfsVolume(volume))
    }

    /// A tmpfs of the container: executable, without devices and setuid, of
    /// this size in bytes, with these permissions. Docker refuses a path with
    /// a colon here.
    pub fn tmpfs(path: ContainerPath, bytes: u64, mode: u32) -> Self {
        Self(Kind::Tmpfs { path, bytes, mode })
    }

    fn local_volume(name: Option<VolumeName>, path: ContainerPath) -> Self {
        Self(Kind::Volume {
            name,
            path,
            read_only: false,
            labels: Vec::new(),
        })
    }

    /// The same volume with these labels, which count when the engine creates
    /// it because it does not exist; they change nothing on one that does.
    #[must_use]
    pub fn labelled(mut self, added: impl IntoIterator<Item = Label>) -> Self {
        match &mut self.0 {
            Kind::Volume { labels, .. } => labels.extend(added),
            Kind::TmpfsVolume(volume) => volume.labels.extend(added),
            Kind::Tmpfs { .. } => {}
        }
        self
    }

    /// The same volume, read-only. A tmpfs stays writable: it has no use
    /// otherwise.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        if let Kind::Volume { read_only, .. } = &mut self.0 {
            *read_only = true;
        }
        self
    }

    /// The option that asks for it, and its value.
    pub(super) fn option(&self) -> (&'static str, String) {
        match &self.0 {
            Kind::Volume {
                name,
                path,
                read_only,
                labels,
            } => {
                let mut fields = vec!["type=volume".to_owned()];
                fields.extend(name.as_ref().map(|name| format!("source={name}")));
                fields.push(format!("destination={path}"));
                fields.push("volume-nocopy=true".to_owned());
                if *read_only {
                    fields.push("readonly=true".to_owned());
                }
                fields.extend(volume_labels(labels));
                ("mount", quote::csv(&fields))
            }
            Kind::TmpfsVolume(volume) => ("mount", quote::csv(&volume.fields())),
            Kind::Tmpfs { path, bytes, mode } => {
                let options = format!("rw,exec,nosuid,nodev,size={bytes},mode={mode:o}");
                ("tmpfs", format!("{path}:{options}"))
            }
        }
    }
}

fn volume_labels(labels: &[Label]) -> impl Iterator<Item = String> + '_ {
    labels.iter().map(|label| format!("volume-label={label}"))
}

impl TmpfsVolume {
    fn fields(&self) -> Vec<String> {
        let mut options = format!(
            "size={},nr_inodes={},mode={:o},nosuid,nodev",
            self.bytes, self.inodes, self.mode
        );
        if let Some((uid, gid)) = self.owner {
            // Writing to a string cannot fail.
            let _ = fmt::Write::write_fmt(&mut options, format_args!(",uid={uid},gid={gid}"));
        }
        let mut fields = vec![
            "type=volume".to_owned(),
            format!("destination={}", self.path),
            "volume-nocopy=true".to_owned(),
            "volume-driver=local".to_owned(),
            "volume-opt=type=tmpfs".to_owned(),
            "volume-opt=device=tmpfs".to_owned(),
            format!("volume-opt=o={options}"),
        ];
        fields.extend(volume_labels(&self.labels));
        fields
    }
}
