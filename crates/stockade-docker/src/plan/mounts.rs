//! What is mounted into a sandbox, and what must not be hidden by it.

use docker_driver::{ContainerPath, Label, Mount, TmpfsVolume, VolumeName};
use stockade::spec::Storage;
use stockade::{Refusal, SandboxSpec};
use stockade_wire::message::PathKind;

use super::{Host, RUNTIME_DIR, TMP, User, pages_up};
use crate::image::ImageFacts;
use crate::names::label;

/// Bytes of the tmpfs that stands in for an empty volume which an image
/// declares: the engine would make one on its disk, without a bound or a label.
const DECLARED_VOLUME: u64 = 64 * 1024 * 1024;

/// The volumes that the image declares and that need a mount of ours.
pub(super) fn declared_volumes(
    spec: &SandboxSpec,
    image: &ImageFacts,
) -> Result<Vec<String>, Refusal> {
    let mut paths = Vec::new();
    for path in &image.volumes {
        let path = path.trim_end_matches('/');
        if spec.storage() == Storage::Root && path == spec.work_dir().as_str() {
            return Err(Refusal::StorageMismatch {
                storage: Storage::Root,
                why: format!(
                    "the image declares a volume at {path}, so that it is not in its root"
                ),
            });
        }
        let taken = path == spec.work_dir().as_str() || path == TMP;
        match image.at(path).map(|facts| facts.what) {
            _ if taken => {}
            None | Some(PathKind::Absent | PathKind::EmptyDirectory) => paths.push(path.to_owned()),
            Some(_) => {
                return Err(Refusal::ImageVolume {
                    path: path.to_owned(),
                });
            }
        }
    }
    let volumes = u64::try_from(paths.len()).unwrap_or(u64::MAX);
    memory_rule(spec, volumes.saturating_mul(DECLARED_VOLUME))?;
    Ok(paths)
}

/// A mount never hides what the image has at that path.
pub(super) fn check_work_dir(spec: &SandboxSpec, image: &ImageFacts) -> Result<(), Refusal> {
    let path = spec.work_dir().as_str();
    let found = image.at(path).map_or(PathKind::Other, |facts| facts.what);
    let path = path.to_owned();
    match found {
        PathKind::Absent | PathKind::EmptyDirectory => Ok(()),
        PathKind::Directory => Err(Refusal::WorkDirHidesContent { path }),
        _ => Err(Refusal::WorkDirNotDirectory { path }),
    }
}

/// `/tmp`, and what stands in for volumes that the image declares.
pub(super) fn tmpfs(spec: &SandboxSpec, volumes: &[String]) -> Result<Vec<Mount>, Refusal> {
    let tmp_bytes = pages_up(spec.limits().tmp_bytes);
    let mut mounts = vec![Mount::tmpfs(path(TMP)?, tmp_bytes, 0o1777)];
    for volume in volumes {
        mounts.push(Mount::tmpfs(path(volume)?, DECLARED_VOLUME, 0o1777));
    }
    Ok(mounts)
}

/// The guest runtime, writable, for whoever fills it.
pub(crate) fn runtime_volume(name: &str) -> Result<Mount, Refusal> {
    let name = VolumeName::new(name).map_err(|_| Refusal::Foreign {
        name: name.to_owned(),
    })?;
    let role = Label::new(label::ROLE, "runtime");
    Ok(Mount::volume(name, path(RUNTIME_DIR)?).labelled(role))
}

/// A path that the engine cannot mount at is one that nothing can be kept at.
fn path(text: &str) -> Result<ContainerPath, Refusal> {
    ContainerPath::new(text).map_err(|_| Refusal::WorkDirNotDirectory {
        path: text.to_owned(),
    })
}

/// Each tmpfs and its size in bytes, as the hello must name them.
pub(super) fn sizes(spec: &SandboxSpec, volumes: &[String]) -> Vec<(String, u64)> {
    let limits = spec.limits();
    let mut sizes = vec![(TMP.to_owned(), pages_up(limits.tmp_bytes))];
    if spec.storage() == Storage::Tmpfs {
        sizes.push((
            spec.work_dir().as_str().to_owned(),
            pages_up(limits.work_bytes),
        ));
    }
    sizes.extend(volumes.iter().map(|path| (path.clone(), DECLARED_VOLUME)));
    sizes
}

/// A local volume backed by tmpfs, and not `--tmpfs`: the engine's own copies
/// see into a volume, and not into a tmpfs of the container. It is anonymous,
/// so that it goes with its container whoever ends that.
pub(super) fn work(spec: &SandboxSpec, user: &User, engine: &Host) -> Result<Mount, Refusal> {
    let limits = spec.limits();
    // With remapped user namespaces the mount's ids are the daemon's, so that
    // an owner would be somebody else; everybody may write instead.
    let owner = (!engine.user_namespaces).then_some((user.uid, user.gid));
    Ok(Mount::tmpfs_volume(TmpfsVolume {
        path: path(spec.work_dir().as_str())?,
        bytes: pages_up(limits.work_bytes),
        inodes: limits.work_inodes,
        owner,
        mode: if owner.is_some() { 0o700 } else { 0o1777 },
        labels: Vec::new(),
    }))
}

/// An ordinary local volume. It is anonymous, too: the engine removes it with
/// the last container that has it, whoever removes that.
pub(super) fn disk(spec: &SandboxSpec) -> Result<Mount, Refusal> {
    Ok(Mount::anonymous_volume(path(spec.work_dir().as_str())?))
}

/// The contract checks the rule for what the spec itself asks for; what an
/// image adds is known here only.
fn memory_rule(spec: &SandboxSpec, more: u64) -> Result<(), Refusal> {
    if more == 0 {
        return Ok(());
    }
    let limits = spec.limits();
    let work = if spec.storage() == Storage::Tmpfs {
        limits.work_bytes
    } else {
        0
    };
    let needed = [
        work,
        limits.tmp_bytes,
        limits.shm_bytes,
        more,
        stockade::limits::MEMORY_FLOOR,
    ]
    .into_iter()
    .fold(0_u64, u64::saturating_add);
    if limits.memory < needed {
        return Err(Refusal::MemoryRule {
            memory: limits.memory,
            needed,
        });
    }
    Ok(())
}
