//! From a spec to the options of one `docker run`, or to a refusal. Pure.

mod engine;
mod environment;
mod mounts;
mod root;
mod user;

use std::time::Duration;

use docker_driver::{
    ContainerName, ContainerPath, CreationMark, ImageRef, InvalidName, Label, Mount, RunOptions,
};
use stockade::spec::{Hardening, Storage};
use stockade::vocabulary::IsolationScope;
use stockade::{Refusal, SandboxSpec};

use crate::definition::Definition;
use crate::image::ImageFacts;
use crate::names::label;
use crate::verify::Expected;

pub(crate) use engine::Host;
pub(crate) use environment::Environment;
pub(crate) use mounts::runtime_volume;
pub(crate) use user::User;

/// Where the guest runtime is mounted.
pub(crate) const RUNTIME_DIR: &str = "/.stockade";
/// The guest runtime's binary.
pub(crate) const GUEST: &str = "/.stockade/guest";
/// The one path of an image that is hidden even when it has content.
pub(crate) const TMP: &str = "/tmp";

/// The kernel counts memory in pages of 4 KiB on every platform that is served.
const PAGE: u64 = 4096;

/// A limit, in whole pages and never more than was asked for.
fn pages_down(bytes: u64) -> u64 {
    bytes / PAGE * PAGE
}

/// A capacity, in whole pages and never less than was asked for.
fn pages_up(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE).saturating_mul(PAGE)
}

/// Where the guest runtime is, and which build it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuntimeAt<'a> {
    pub(crate) volume: &'a str,
    pub(crate) digest: &'a str,
}

/// Everything about a container that the spec, the image and the engine decide.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) image_id: String,
    pub(crate) user: User,
    pub(crate) read_only_root: bool,
    work: Work,
    runtime: Mount,
    /// Each tmpfs of the container itself.
    tmpfs: Vec<Mount>,
    /// Whether the container, with what is in it, outlives its own end.
    keeps_content: bool,
    pub(crate) environment: Environment,
    pub(crate) memory: u64,
    pub(crate) pids: u64,
    pub(crate) milli_cpus: u64,
    pub(crate) shm: u64,
    pub(crate) open_files: (u64, u64),
    pub(crate) work_dir: String,
    pub(crate) idle_limit: Duration,
    pub(crate) max_age: Duration,
    /// Whether the guest could move a directory above the work directory's
    /// mount.
    pub(crate) work_dir_can_move: bool,
    pub(crate) definition: Definition,
    pub(crate) expected: Expected,
}

/// Where the work directory comes from. The labels of a volume are the
/// sandbox's own.
#[derive(Debug, Clone)]
enum Work {
    /// The image.
    Root,
    /// A volume in memory, made with the container.
    Tmpfs(Mount),
    /// A volume on disk. It comes into being with a holder, which is where
    /// the engine can be told whose it is, and is shared from there.
    Disk(Mount),
}

/// A container that never runs: it holds the volume of a work directory on
/// disk until the sandbox does.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) options: RunOptions,
    /// Where the volume is in it, and what to make of its root.
    pub(crate) path: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Every path that an image is asked about, so that its spec can be planned;
/// what stands at its declared volumes is asked as well.
pub(crate) fn paths(spec: &SandboxSpec) -> Vec<String> {
    let work_dir = spec.work_dir().as_str();
    let mut paths = vec![work_dir.to_owned(), TMP.to_owned()];
    if spec.storage() == Storage::Root || spec.hardening() == Hardening::AsImage {
        paths.extend(root::ancestors(work_dir).map(str::to_owned));
    }
    paths
}

/// Plans the container of a spec that was admitted.
///
/// # Errors
///
/// The reason why this image on this engine cannot be served as asked.
pub(crate) fn plan(
    spec: &SandboxSpec,
    image: &ImageFacts,
    host: &Host,
    runtime: RuntimeAt<'_>,
) -> Result<Plan, Refusal> {
    engine::check(spec, host)?;
    let user = user::choose(spec.hardening(), image)?;
    let volumes = mounts::declared_volumes(spec, image)?;
    if spec.storage() == Storage::Root {
        root::check(spec.work_dir().as_str(), image, &user)?;
    } else {
        mounts::check_work_dir(spec, image)?;
    }
    let work = match spec.storage() {
        Storage::Root => Work::Root,
        Storage::Disk => Work::Disk(mounts::disk(spec)?),
        _ => Work::Tmpfs(mounts::work(spec, &user, host)?),
    };
    let environment = environment::of(spec, image, &user);
    let limits = spec.limits();
    let read_only_root = spec.hardening() == Hardening::Strict;
    let expected = Expected {
        runtime_digest: runtime.digest.to_owned(),
        uid: user.uid,
        gid: user.gid,
        memory: pages_down(limits.memory),
        pids: limits.pids,
        milli_cpus: limits.milli_cpus,
        open_files_soft: limits.open_files_soft,
        open_files_hard: limits.open_files_hard,
        read_only_root,
        tmpfs: mounts::sizes(spec, &volumes),
        disk: (spec.storage() == Storage::Disk).then(|| spec.work_dir().as_str().to_owned()),
        runtime_dir: RUNTIME_DIR.to_owned(),
    };
    let definition = definition(spec, image, &user, &environment, runtime);
    Ok(Plan {
        image_id: image.id.clone(),
        read_only_root,
        work,
        runtime: mounts::runtime_volume(runtime.volume)?.read_only(),
        tmpfs: mounts::tmpfs(spec, &volumes)?,
        // A call's own sandbox is used once.
        keeps_content: spec.storage() != Storage::Tmpfs
            && spec.isolation_scope() == IsolationScope::Conversation,
        environment,
        memory: pages_down(limits.memory),
        pids: limits.pids,
        milli_cpus: limits.milli_cpus,
        shm: pages_up(limits.shm_bytes),
        open_files: (limits.open_files_soft, limits.open_files_hard),
        work_dir: spec.work_dir().as_str().to_owned(),
        idle_limit: spec.idle_limit(),
        max_age: spec.max_age(),
        work_dir_can_move: !read_only_root
            && spec.storage() != Storage::Root
            && root::can_be_moved(spec.work_dir().as_str(), image, &user),
        user,
        definition,
        expected,
    })
}

impl Plan {
    /// The options of the one `docker run` that makes it. A work directory on
    /// disk is not among them: it comes from its [`Holder`].
    ///
    /// The environment is not among them: it travels with each command, so
    /// that no value of it is kept where everybody who can reach the engine
    /// may read it.
    ///
    /// # Errors
    ///
    /// A name or a label that the engine cannot take.
    pub(crate) fn options(
        &self,
        name: ContainerName,
        mark: CreationMark,
        labels: Vec<Label>,
    ) -> Result<RunOptions, InvalidName> {
        let millis = |time: Duration| time.as_millis().to_string();
        let init = [
            "init".to_owned(),
            format!("--work={}", self.work_dir),
            format!("--idle-limit-ms={}", millis(self.idle_limit)),
            format!("--max-age-ms={}", millis(self.max_age)),
        ];
        let work = match &self.work {
            Work::Tmpfs(mount) => Some(mount.clone().labelled(work_labels(&labels))),
            Work::Root | Work::Disk(_) => None,
        };
        let mounts = std::iter::once(&self.runtime).chain(&self.tmpfs).cloned();
        let mut options = base(name, mark, &self.image_id, init)?
            .labels(labels)
            .user(docker_driver::User {
                uid: self.user.uid,
                gid: self.user.gid,
            })
            .groups(self.user.groups.iter().copied())
            .mounts(mounts.chain(work))
            .memory_without_swap(self.memory)
            .milli_cpus(self.milli_cpus)
            .pids(self.pids)
            .shm_bytes(self.shm)
            .open_files(self.open_files.0, self.open_files.1);
        if self.read_only_root {
            options = options.read_only();
        }
        if !self.keeps_content {
            options = options.remove_at_end();
        }
        Ok(options)
    }

    /// The holder of the work directory, if it is on disk. It has the labels
    /// of the sandbox, since it is a part of it, and a writable root, since
    /// the engine copies nothing into a container with another.
    ///
    /// # Errors
    ///
    /// A name or a label that the engine cannot take.
    pub(crate) fn holder(
        &self,
        name: ContainerName,
        mark: CreationMark,
        labels: &[Label],
    ) -> Result<Option<Holder>, InvalidName> {
        let Work::Disk(mount) = &self.work else {
            return Ok(None);
        };
        let volume = mount.clone().labelled(work_labels(labels));
        // Whatever volumes the image declares are covered as in the sandbox:
        // the engine would make them, and share them as well.
        let mounts = self.tmpfs.iter().cloned().chain([volume]);
        let options = base(name, mark, &self.image_id, ["version".to_owned()])?
            .labels(work_labels(labels))
            .mounts(mounts);
        Ok(Some(Holder {
            options,
            path: self.work_dir.clone(),
            uid: self.user.uid,
            gid: self.user.gid,
        }))
    }

    /// Whether somebody is likely to have the sandbox already, and finding
    /// that out by a create that fails would cost more than a look.
    pub(crate) fn is_looked_for(&self) -> bool {
        matches!(self.work, Work::Disk(_)) && self.keeps_content
    }
}

/// The labels of a sandbox but for the role: what is left of it is found by
/// its owner and its key, whatever it is.
fn work_labels(labels: &[Label]) -> Vec<Label> {
    let others = labels.iter().filter(|label| label.key() != label::ROLE);
    others
        .cloned()
        .chain(Label::new(label::ROLE, "work"))
        .collect()
}

/// What every container of ours has in common: our own program, and no core
/// dump.
pub(crate) fn base(
    name: ContainerName,
    mark: CreationMark,
    image_id: &str,
    words: impl IntoIterator<Item = String>,
) -> Result<RunOptions, InvalidName> {
    Ok(RunOptions::new(name, mark, ImageRef::new(image_id)?)
        .program(GUEST, words)
        .work_dir(ContainerPath::new("/")?)
        .core_bytes(0))
}

/// Labels of the caller are left out: they say what a sandbox is for, not
/// what it is.
fn definition(
    spec: &SandboxSpec,
    image: &ImageFacts,
    user: &User,
    environment: &Environment,
    runtime: RuntimeAt<'_>,
) -> Definition {
    let limits = spec.limits();
    let mut definition = Definition::default();
    definition.part("image", [image.id.as_str()]);
    definition.part("user", [user.to_string().as_str()]);
    definition.part("hardening", [spec.hardening().as_str()]);
    definition.part("limits", [format!("{limits:?}").as_str()]);
    let pairs = environment.pairs();
    definition.part("env", pairs.flat_map(|(name, value)| [name, value]));
    definition.part("work_dir", [spec.work_dir().as_str()]);
    definition.part("storage", [spec.storage().as_str()]);
    definition.part("egress", [spec.egress().mode().as_str()]);
    definition.part("runtime", [runtime.digest]);
    let lifetimes = format!("{:?} {:?}", spec.idle_limit(), spec.max_age());
    definition.part("lifetimes", [lifetimes.as_str()]);
    definition.part("execution_contract", spec.execution_contract());
    definition
}

#[cfg(test)]
mod tests;
