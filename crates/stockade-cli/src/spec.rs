//! From the command line to a spec. Every fault is reported, not the first only.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stockade::spec::{Digest, Hardening, Platform, PullPolicy, Storage};
use stockade::{Capability, Image, IsolationScope, ResourceLimits, SandboxSpec, TransferLimits};

use crate::advice;
use crate::args::{HardeningName, Pull, SandboxOptions, StorageName};

/// Everything that defines a sandbox of this program, as it is noted for a
/// sandbox that stays.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Recipe {
    /// A name or an id; not used while there is something to build.
    image: String,
    /// What the image is built from, for whoever makes the sandbox. A note
    /// names the image that came of it.
    #[serde(skip)]
    build: Option<PathBuf>,
    digest: Option<String>,
    platform: Option<String>,
    hardening: HardeningName,
    storage: StorageName,
    work_dir: String,
    memory: u64,
    milli_cpus: u64,
    pids: u64,
    work_bytes: u64,
    work_inodes: u64,
    tmp_bytes: u64,
    idle_limit_ms: u64,
    max_age_ms: u64,
}

impl Recipe {
    /// The recipe, or what is wrong with it.
    pub(crate) fn of(
        options: &SandboxOptions,
        idle: Duration,
        age: Duration,
    ) -> Result<Self, String> {
        let milli_cpus = milli_cpus(options.cpus).ok_or_else(|| {
            format!(
                "--cpus: {} is no number of CPUs; give one from 0.001 on, such as 0.5",
                options.cpus
            )
        })?;
        let image = match (&options.image, &options.build) {
            (Some(image), _) => image.clone(),
            (None, Some(_)) => String::new(),
            (None, None) => environment_image()?,
        };
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            image,
            build: options.build.clone(),
            digest: options.digest.clone(),
            platform: options.platform.clone(),
            hardening: options.hardening,
            storage: options.storage,
            work_dir: options.work_dir.clone(),
            memory: options.memory.as_u64(),
            milli_cpus,
            pids: options.pids,
            work_bytes: options.work_size.as_u64(),
            work_inodes: options.work_files,
            tmp_bytes: options.tmp_size.as_u64(),
            idle_limit_ms: millis(idle),
            max_age_ms: millis(age),
        })
    }

    /// The spec, or everything that is wrong with it.
    ///
    /// Its transfer limits are the highest that there are, since they bind
    /// nobody but the person who gives the command.
    pub(crate) fn spec(
        &self,
        kind: &str,
        scope: IsolationScope,
        pull: PullPolicy,
        requires: impl IntoIterator<Item = Capability>,
    ) -> Result<Arc<SandboxSpec>, Vec<String>> {
        let mut faults = Vec::new();
        let image = self.image(pull, &mut faults);
        let built = SandboxSpec::builder(kind)
            .image(image)
            .hardening(match self.hardening {
                HardeningName::Strict => Hardening::Strict,
                HardeningName::AsImage => Hardening::AsImage,
            })
            .storage(match self.storage {
                StorageName::Tmpfs => Storage::Tmpfs,
                StorageName::Root => Storage::Root,
                StorageName::Disk => Storage::Disk,
            })
            .work_dir(&self.work_dir)
            .limits(self.limits())
            .idle_limit(Duration::from_millis(self.idle_limit_ms))
            .max_age(Duration::from_millis(self.max_age_ms))
            .files_in(TransferLimits::CEILING)
            .files_out(TransferLimits::CEILING)
            .isolation_scope(scope)
            .requires(requires)
            .build();
        match built {
            Ok(spec) if faults.is_empty() => Ok(spec),
            Ok(_) => Err(faults),
            Err(errors) => {
                faults.extend(errors.faults().iter().map(advice::fault));
                Err(faults)
            }
        }
    }

    /// The image, or what it is built from, for people.
    pub(crate) fn image_name(&self) -> String {
        match &self.build {
            Some(directory) => directory.display().to_string(),
            None => self.image.clone(),
        }
    }

    /// The recipe of the same on this very image, which is not built again and
    /// is the same whatever its name comes to mean.
    pub(crate) fn of_image(mut self, id: &str) -> Self {
        self.build = None;
        id.clone_into(&mut self.image);
        self
    }

    fn image(&self, pull: PullPolicy, faults: &mut Vec<String>) -> Image {
        let image = match &self.build {
            Some(directory) => Image::build(directory),
            None => Image::reference(&self.image),
        };
        let mut image = image.with_pull(pull);
        if let Some(digest) = &self.digest {
            match digest.parse::<Digest>() {
                Ok(digest) => image = image.with_digest(digest),
                Err(error) => faults.push(format!("--digest: {error}")),
            }
        }
        if let Some(platform) = &self.platform {
            match platform.parse::<Platform>() {
                Ok(platform) => image = image.with_platform(platform),
                Err(error) => faults.push(format!("--platform: {error}")),
            }
        }
        image
    }

    fn limits(&self) -> ResourceLimits {
        let mut limits = ResourceLimits::default();
        limits.memory = self.memory;
        limits.milli_cpus = self.milli_cpus;
        limits.pids = self.pids;
        limits.work_bytes = self.work_bytes;
        limits.work_inodes = self.work_inodes;
        limits.tmp_bytes = self.tmp_bytes;
        limits
    }
}

/// The image that the environment names.
pub(crate) fn environment_image() -> Result<String, String> {
    let named = std::env::var_os("STOCKADE_IMAGE").filter(|image| !image.is_empty());
    let named = named.ok_or_else(|| {
        "no image is named; give --image or --build, or set STOCKADE_IMAGE".to_owned()
    })?;
    named
        .into_string()
        .map_err(|_| "STOCKADE_IMAGE: a name of an image is UTF-8".to_owned())
}

/// When the image is pulled.
pub(crate) fn pull(pull: Pull) -> PullPolicy {
    match pull {
        Pull::Never => PullPolicy::Never,
        Pull::Missing => PullPolicy::Missing,
        Pull::Always => PullPolicy::Always,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is checked to be positive and below a million"
)]
fn milli_cpus(cpus: f64) -> Option<u64> {
    let milli = (cpus * 1000.0).round();
    (1.0..1e9).contains(&milli).then_some(milli as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_in_thousandths_and_nonsense_is_refused() {
        assert_eq!(milli_cpus(0.5), Some(500));
        assert_eq!(milli_cpus(2.0), Some(2000));
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 0.0001] {
            assert_eq!(milli_cpus(nonsense), None, "{nonsense}");
        }
    }
}
