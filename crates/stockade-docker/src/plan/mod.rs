//! From a spec to the options of one `docker run`, or to a refusal. Pure.

mod engine;
mod environment;
mod mounts;
mod user;

use std::time::Duration;

use docker_driver::{
    ContainerName, ContainerPath, CreationMark, ImageRef, InvalidName, Label, Mount, RunOptions,
};
use stockade::spec::{Hardening, Storage};
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
    /// The work directory's, whose labels are the sandbox's own.
    work: Option<Mount>,
    mounts: Vec<Mount>,
    pub(crate) environment: Environment,
    pub(crate) memory: u64,
    pub(crate) pids: u64,
    pub(crate) milli_cpus: u64,
    pub(crate) shm: u64,
    pub(crate) open_files: (u64, u64),
    pub(crate) work_dir: String,
    pub(crate) idle_limit: Duration,
    pub(crate) max_age: Duration,
    pub(crate) definition: Definition,
    pub(crate) expected: Expected,
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
    mounts::check_work_dir(spec, image)?;
    let tmpfs = mounts::sizes(spec, &volumes);
    let work = mounts::work(spec, &user, host)?;
    let mounts = mounts::others(spec, &volumes, runtime)?;
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
        tmpfs,
        runtime_dir: RUNTIME_DIR.to_owned(),
    };
    let definition = definition(spec, image, &user, &environment, runtime);
    Ok(Plan {
        image_id: image.id.clone(),
        read_only_root,
        work,
        mounts,
        environment,
        memory: pages_down(limits.memory),
        pids: limits.pids,
        milli_cpus: limits.milli_cpus,
        shm: pages_up(limits.shm_bytes),
        open_files: (limits.open_files_soft, limits.open_files_hard),
        work_dir: spec.work_dir().as_str().to_owned(),
        idle_limit: spec.idle_limit(),
        max_age: spec.max_age(),
        user,
        definition,
        expected,
    })
}

impl Plan {
    /// The options of the one `docker run` that makes it.
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
        let work = self.work.clone().map(|work| {
            // The same labels but for the role: what is left of a sandbox is
            // found by its owner and its key, whatever it is.
            let labels = labels
                .iter()
                .filter(|label| label.key() != label::ROLE)
                .cloned();
            work.labelled(labels.chain(Label::new(label::ROLE, "work")))
        });
        let options = base(name, mark, &self.image_id, init)?
            .labels(labels)
            .user(docker_driver::User {
                uid: self.user.uid,
                gid: self.user.gid,
            })
            .groups(self.user.groups.iter().copied())
            .mounts(self.mounts.iter().cloned().chain(work))
            .memory_without_swap(self.memory)
            .milli_cpus(self.milli_cpus)
            .pids(self.pids)
            .shm_bytes(self.shm)
            .open_files(self.open_files.0, self.open_files.1);
        Ok(if self.read_only_root {
            options.read_only()
        } else {
            options
        })
    }
}

/// What every container of ours has in common: our own program, which ends
/// with the container, and no core dump.
pub(crate) fn base(
    name: ContainerName,
    mark: CreationMark,
    image_id: &str,
    words: impl IntoIterator<Item = String>,
) -> Result<RunOptions, InvalidName> {
    Ok(RunOptions::new(name, mark, ImageRef::new(image_id)?)
        .program(GUEST, words)
        .work_dir(ContainerPath::new("/")?)
        .core_bytes(0)
        .remove_at_end())
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
    let storage = match spec.storage() {
        Storage::Root => "root",
        Storage::Disk => "disk",
        _ => "tmpfs",
    };
    let mut definition = Definition::default();
    definition.part("image", [image.id.as_str()]);
    definition.part("user", [user.to_string().as_str()]);
    definition.part("hardening", [spec.hardening().as_str()]);
    definition.part("limits", [format!("{limits:?}").as_str()]);
    let pairs = environment.pairs();
    definition.part("env", pairs.flat_map(|(name, value)| [name, value]));
    definition.part("work_dir", [spec.work_dir().as_str(), storage]);
    definition.part("egress", [spec.egress().mode().as_str()]);
    definition.part("runtime", [runtime.digest]);
    let lifetimes = format!("{:?} {:?}", spec.idle_limit(), spec.max_age());
    definition.part("lifetimes", [lifetimes.as_str()]);
    definition.part("execution_contract", spec.execution_contract());
    definition
}

#[cfg(test)]
mod tests;
