//! Images and the guest runtime's volume.

use std::time::Duration;

use bytes::Bytes;
use docker_driver::{
    CallErrorKind, ContainerName, ContainerPath, CopyIn, CreateContainer, CreationMark,
    ForegroundOutput, ImageFacts, ImageRef, InspectImage, Label, LineSink, Pull, RunForeground,
    RunOptions, User,
};
use stockade::spec::Platform;
use stockade::{Call, Error, ErrorKind, Operation, Phase, Refusal, Result};
use stockade_wire::limits::FACTS;
use stockade_wire::message::Facts;

use super::{Asked, Engine, Unclaimed, unfit};
use crate::names::{self, label};
use crate::plan::{self, RUNTIME_DIR};

/// Memory and processes of a probe: our own program and nothing else runs.
const PROBE_MEMORY: u64 = 64 * 1024 * 1024;
const PROBE_PIDS: u64 = 16;

/// How often a probe whose answer was lost is run.
const TRIES: u32 = 3;

/// Far longer than a fill takes, which is bounded by two docker commands.
const STALE: Duration = Duration::from_secs(150);

/// What an image is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe<'a> {
    pub(crate) image_id: &'a str,
    /// As the image names it.
    pub(crate) user: &'a str,
    pub(crate) paths: &'a [String],
}

impl Engine {
    /// What the engine says of an image; `None` when it does not have it.
    pub(crate) async fn image(&self, call: &Call, reference: &str) -> Result<Option<ImageFacts>> {
        let image = image_ref(reference)?;
        let found = self.query(call, InspectImage::new(image)).await;
        found.or_error(Operation::Acquire, Phase::Image)
    }

    /// Pulls an image, and tells each line of the client's report.
    pub(crate) async fn pull(
        &self,
        call: &Call,
        reference: &str,
        platform: Option<&Platform>,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<()> {
        let mut pull = Pull::new(image_ref(reference)?).tell(LineSink::new(tell));
        if let Some(platform) = platform {
            let platform = docker_driver::Platform::new(platform.to_string()).map_err(unfit)?;
            pull = pull.platform(platform);
        }
        // Builds may be given more time than pulls, and the driver has one bound
        // for both.
        let limit = self.config().pull_timeout;
        match self.query_within(call, limit, pull).await {
            Asked::Interrupted(_) if call.interruption().is_none() => {
                Err(Error::new(ErrorKind::Unavailable, Operation::Acquire)
                    .message(format!(
                        "the pull of {reference} took longer than {} s; give it more with `DockerConfig::pull_timeout`, or pull it ahead",
                        limit.as_secs()
                    ))
                    .phase(Phase::Pull)
                    .build())
            }
            Asked::Failed(error) if is_refusal(error.kind()) => {
                let reference = reference.to_owned();
                let detail = said(&error);
                let refusal = Refusal::ImageNotFound { reference, detail };
                Err(Error::refused(Operation::Acquire, refusal))
            }
            Asked::Failed(error) if error.kind() == CallErrorKind::RegistryUnreachable => {
                Err(Error::new(ErrorKind::Unavailable, Operation::Acquire)
                    .message(format!(
                        "the image {reference} cannot be pulled, since its registry cannot be reached from the engine; check the name, or bring the image there with `docker load`"
                    ))
                    .phase(Phase::Pull)
                    .detail(error.detail())
                    .source(error)
                    .build())
            }
            pulled => pulled.or_error(Operation::Acquire, Phase::Pull).map(drop),
        }
    }

    /// Runs `guest facts` in an image. `None` when the volume does not hold a
    /// guest runtime that answers.
    pub(crate) async fn image_facts(
        &self,
        call: &Call,
        volume: &str,
        probe: Probe<'_>,
    ) -> Result<Option<Facts>> {
        for _ in 0..TRIES {
            let output = match self.run_facts(call, volume, probe).await? {
                Some(output) => output,
                None => return Ok(None),
            };
            if let Ok(facts) = serde_json::from_slice(&output.stdout) {
                return Ok(Some(facts));
            }
            if output.code != 0 {
                return Err(Error::new(ErrorKind::Unavailable, Operation::Acquire)
                    .message(format!(
                        "the guest runtime does not run in the image (code {}); see the detail, and try another image to tell whether the engine or the image is at fault",
                        output.code
                    ))
                    .phase(Phase::Image)
                    .detail(String::from_utf8_lossy(&output.stderr))
                    .build());
            }
            // The program ended well and its output did not arrive, or not
            // whole: a loaded engine sometimes loses what a container of
            // some milliseconds wrote. It only looks, so it can look again.
        }
        Err(Error::new(ErrorKind::Unavailable, Operation::Acquire)
            .message(format!(
                "what the guest runtime found in the image did not arrive in {TRIES} tries; the engine loses output of short programs, try again when it is less loaded"
            ))
            .phase(Phase::Image)
            .build())
    }

    async fn run_facts(
        &self,
        call: &Call,
        volume: &str,
        probe: Probe<'_>,
    ) -> Result<Option<ForegroundOutput>> {
        let mut words = vec!["facts".to_owned(), format!("--runtime-dir={RUNTIME_DIR}")];
        words.push(format!("--user={}", probe.user));
        words.extend(probe.paths.iter().map(|path| format!("--path={path}")));
        let name = names::facts_probe(&names::nonce()?);
        let options = self.probe(&name, probe.image_id, words)?;
        let options = options
            .mounts([runtime_mount(volume)?.read_only()])
            .read_only();
        match self.mutate(call, RunForeground::new(options, FACTS)).await {
            // Docker's own words for a program that is not there: the volume
            // is new, or was never filled.
            Asked::Failed(error) if error.kind() == CallErrorKind::ProgramNotFound => Ok(None),
            ran => ran.or_error(Operation::Acquire, Phase::Image).map(Some),
        }
    }

    /// Brings the guest runtime into a volume, through a container of the
    /// caller's own image that never runs. `false` when another host is at it.
    pub(crate) async fn fill(
        &self,
        call: &Call,
        volume: &str,
        image_id: &str,
        digest: &str,
        binary: &[u8],
    ) -> Result<bool> {
        let tar = Bytes::from(archive(digest, binary)?);
        // One that a host left when it died is as old as no fill ever gets.
        let name = names::filling_probe(volume);
        self.remove_stale(call, &name).await?;
        let options = self.probe(&name, image_id, vec!["version".to_owned()])?;
        let options = options.mounts([runtime_mount(volume)?]);
        let made = self.mutate(call, CreateContainer(options)).await;
        let id = match made {
            Asked::Failed(error) if error.kind() == CallErrorKind::NameConflict => {
                return Ok(false);
            }
            made => made.or_error(Operation::Acquire, Phase::Runtime)?,
        };
        let filler = Unclaimed::new(self, id.as_str());
        let root = ContainerPath::new("/").map_err(unfit)?;
        let copied = self.mutate(call, CopyIn::new(&id, root, tar)).await;
        let copied = copied.or_error(Operation::Acquire, Phase::Runtime);
        // Its name is what others wait for.
        self.discard(&filler.claim()).await;
        copied.map(|_| true)
    }

    /// Removes a filling container that nobody can be at any more.
    async fn remove_stale(&self, call: &Call, name: &str) -> Result<()> {
        let reference = ContainerName::new(name).map_err(unfit)?;
        let Some(facts) = self.look(call, Operation::Acquire, reference).await? else {
            return Ok(());
        };
        let is_probe = facts.labels.get(label::ROLE).map(String::as_str) == Some("probe");
        if !is_probe || facts.state.running {
            return Ok(());
        }
        // By the engine's own clock: hosts need not agree about the time.
        let now = self.now(call, Operation::Acquire).await?;
        let age = facts.created.map(|created| now.duration_since(created));
        let stale = matches!(age, Some(Ok(age)) if age > STALE);
        if stale {
            self.remove(call, Operation::Acquire, facts.id.as_str())
                .await
        } else {
            Ok(())
        }
    }

    /// Root without a single capability: it can read what everybody can, and
    /// no program but our own is run.
    fn probe(&self, name: &str, image_id: &str, words: Vec<String>) -> Result<RunOptions> {
        let mark = CreationMark::new(Label::new(label::NONCE, names::nonce()?).map_err(unfit)?);
        let name = ContainerName::new(name).map_err(unfit)?;
        let created = names::now_millis().to_string();
        let labels = [
            (label::OWNER, self.owner()),
            (label::RUN, self.run()),
            (label::ROLE, "probe"),
            (label::CREATED, &created),
        ];
        let labels = labels
            .into_iter()
            .map(|(key, value)| Label::new(key, value));
        let labels: Vec<_> = labels
            .collect::<std::result::Result<_, _>>()
            .map_err(unfit)?;
        Ok(plan::base(name, mark, image_id, words)
            .map_err(unfit)?
            .labels(labels)
            .user(User { uid: 0, gid: 0 })
            .memory_without_swap(PROBE_MEMORY)
            .pids(PROBE_PIDS)
            .remove_at_end())
    }
}

fn runtime_mount(volume: &str) -> Result<docker_driver::Mount> {
    plan::runtime_volume(volume).map_err(|refusal| Error::refused(Operation::Acquire, refusal))
}

/// A reference that is no single word is none that any engine could have.
fn image_ref(reference: &str) -> Result<ImageRef> {
    ImageRef::new(reference).map_err(|error| {
        let refusal = Refusal::ImageNotFound {
            reference: reference.to_owned(),
            detail: error.to_string(),
        };
        Error::refused(Operation::Acquire, refusal)
    })
}

fn is_refusal(kind: CallErrorKind) -> bool {
    matches!(
        kind,
        CallErrorKind::NotInRegistry
            | CallErrorKind::RegistryDenied
            | CallErrorKind::NoSuchImage
            | CallErrorKind::PlatformMismatch
    )
}

/// What the registry said, as the driver understands it.
pub(super) fn said(error: &docker_driver::CallError) -> String {
    let why = match error.kind() {
        CallErrorKind::RegistryDenied => {
            "the registry demands other credentials; log in with `docker login`"
        }
        CallErrorKind::PlatformMismatch => "the registry has it for other platforms only",
        _ => "the registry does not have it; check the name and the tag",
    };
    why.to_owned()
}

/// The binary first and the marker last: a volume that holds the marker is
/// whole. Mode 0111, so that whoever runs it cannot be traced or read.
fn archive(digest: &str, binary: &[u8]) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::with_capacity(binary.len() + 8192));
    let folder = RUNTIME_DIR.trim_start_matches('/');
    let entries = [
        ("guest", 0o111, binary),
        ("digest", 0o444, digest.as_bytes()),
    ];
    for (name, mode, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        tar.append_data(&mut header, format!("{folder}/{name}"), content)
            .map_err(packing)?;
    }
    tar.into_inner().map_err(packing)
}

fn packing(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, Operation::Acquire)
        .message("the guest runtime cannot be packed")
        .source(error)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_comes_after_the_binary_it_vouches_for() {
        let packed = archive("abc", b"program").unwrap();
        let mut tar = tar::Archive::new(&packed[..]);
        let names: Vec<_> = tar
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = entry.path().unwrap().into_owned();
                (path, entry.header().mode().unwrap())
            })
            .collect();
        let expected = [
            (".stockade/guest".into(), 0o111),
            (".stockade/digest".into(), 0o444),
        ];
        assert_eq!(names, expected);
    }
}
