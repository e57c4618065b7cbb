//! The state before each operation, and what is cleared away after it.

use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stockade::ExecRequest;
use stockade::spec::{Image, PullPolicy};
use stockade_docker::{Progress, RuntimeSource};
use stockade_tests::engine::{PYTHON, call, docker, docker_ok, unique};

use crate::act::Finding;
use crate::scenario::Scenario;
use crate::world::World;

impl Scenario {
    /// Brings about the state before it; nothing goes wrong yet.
    pub(crate) async fn prepare(self, world: &mut World) -> Result<(), Finding> {
        match self {
            Self::Bind | Self::AcquireOnDisk | Self::AcquireAnother | Self::Close => {}
            Self::AcquireOnNewEngine => {
                with_new_runtime(world);
                next_process(world).await?;
            }
            Self::Acquire | Self::AcquireWithoutUndo => next_process(world).await?,
            Self::AcquireWithPull => {
                let image = Image::reference(format!("{}:1", unique("stockade-test/pulled")));
                let image = image.with_pull(PullPolicy::Missing);
                world.spec = self.spec().image(image).build().expect("the spec is valid");
            }
            Self::AcquireWithBuild => with_recipe(self, world),
            Self::Prune => {
                with_recipe(self, world);
                sandbox(world).await?;
                world.clear().await?;
            }
            Self::AcquireWhatIsThere => {
                sandbox(world).await?;
                world.sandbox = None;
            }
            Self::AcquireWhatHasEnded => {
                sandbox(world).await?;
                sh(world, "echo content > kept").await?;
                let id = world.id();
                docker_ok(["kill", &id]);
                docker_ok(["wait", &id]);
                world.sandbox = None;
            }
            Self::AcquireWhatHasDrifted => {
                world.spec = self.spec().build().expect("the spec is valid");
                sandbox(world).await?;
                world.sandbox = None;
                let other = self.spec().env([("OTHER", "definition")]);
                world.spec = other.build().expect("the spec is valid");
            }
            Self::Exec | Self::ExecBesideDeadRelay | Self::Stat | Self::FilesOfGuest => {
                sandbox(world).await?;
            }
            Self::ExecWhilePaused => {
                sandbox(world).await?;
                docker_ok(["pause", &world.id()]);
            }
            Self::WriteTar | Self::ReadTar => {
                if world.sandbox.is_none() {
                    sandbox(world).await?;
                }
                // The channel is open then, and what is read is there.
                sh(world, "mkdir -p out && echo content > out/file").await?;
            }
            Self::Dispose
            | Self::DisposeKind
            | Self::DisposeInstance
            | Self::DisposeWithCalls
            | Self::DisposeScope
            | Self::Reap
            | Self::ReapUnused
            | Self::List
            | Self::Activity
            | Self::History
            | Self::Usage => {
                sandbox(world).await?;
            }
            Self::DisposeOfVolume | Self::ReapOfVolume => {
                sandbox(world).await?;
                docker_ok(["rm", "--force", &world.id()]);
                world.sandbox = None;
            }
        }
        Ok(())
    }

    /// After an acquire that failed: the next one does not, and has what there
    /// was before.
    pub(crate) async fn acquired_at_last(self, world: &mut World) -> Result<(), Finding> {
        sandbox(world).await?;
        match self {
            Self::AcquireWhatHasEnded => sh(world, "test \"$(cat kept)\" = content").await,
            _ => Ok(()),
        }
    }

    /// Clears away what is of no owner.
    pub(crate) fn tidy(self, world: &World) {
        match self {
            Self::AcquireWithPull => {
                let image = world.spec.image().name().expect("it has a name");
                // Where the pull failed there is none.
                let _ = docker(["rmi", image]);
            }
            Self::AcquireWithBuild | Self::Prune => {
                let filter = format!("label=dev.stockade.owner={}", world.owner);
                let images = docker_ok(["image", "ls", "--quiet", "--filter", &filter]);
                for image in images.lines() {
                    let _ = docker(["rmi", "--force", image]);
                }
            }
            Self::AcquireOnNewEngine => {
                for volume in world.filled() {
                    let _ = docker(["volume", "rm", &volume]);
                }
            }
            _ => {}
        }
    }
}

/// A build directory that nobody has built yet.
fn with_recipe(scenario: Scenario, world: &mut World) {
    let folder = world.client.path().with_file_name("recipe");
    fs::create_dir_all(&folder).expect("it can be made");
    let steps = format!("FROM {PYTHON}\nLABEL of={}\n", unique("build"));
    fs::write(folder.join("Dockerfile"), steps).expect("it can be written");
    let spec = scenario.spec().image(Image::build(folder));
    world.spec = spec.build().expect("the spec is valid");
}

async fn next_process(world: &mut World) -> Result<(), Finding> {
    world.backend = world.connect().await.map_err(unprepared)?;
    Ok(())
}

async fn sandbox(world: &mut World) -> Result<(), Finding> {
    world.with_sandbox().await.map_err(unprepared)
}

async fn sh(world: &World, line: &str) -> Result<(), Finding> {
    let request = ExecRequest::shell(line).build().map_err(unprepared)?;
    let sandbox = world.sandbox.as_ref().expect("it was acquired");
    let outcome = sandbox.exec(&call(), request).await.map_err(unprepared)?;
    match outcome.success() {
        true => Ok(()),
        false => Err(unprepared(outcome)),
    }
}

fn unprepared(why: impl fmt::Debug) -> Finding {
    format!("its state did not come about: {why:?}")
}

/// A guest runtime that no engine has yet: the carried one, and some bytes
/// after its end, which nothing reads.
fn with_new_runtime(world: &mut World) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let carried = stockade_runtime::for_platform(std::env::consts::OS, architecture());
    let mut binary = carried.expect("the runtime is carried").bytes.to_vec();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    binary.extend_from_slice(format!("{} {number}", world.owner).as_bytes());
    let path = world.client.path().with_file_name("runtime");
    fs::write(&path, binary).expect("it can be written");
    let filled = Arc::clone(&world.filled);
    let before = Arc::clone(&world.first);
    world.configure = Arc::new(move |config| {
        let filled = Arc::clone(&filled);
        before(config)
            .runtime(RuntimeSource::File(path.clone()))
            .on_progress(move |progress| {
                if let Progress::FillRuntime { volume } = progress {
                    filled.lock().expect("nobody panics").insert(volume);
                }
            })
    });
}

/// In docker's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The image that stands for what a registry has.
pub(crate) const IN_THE_REGISTRY: &str = PYTHON;
