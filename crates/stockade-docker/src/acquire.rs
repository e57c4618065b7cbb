//! Acquire: create first, and look only when the name is taken.

use std::sync::Arc;
use std::time::Duration;

use docker_driver::{ContainerName, CreationMark, Label};
use stockade::error::{LeftBehindKind, Removal};
use stockade::{
    Call, Error, ErrorKind, InstanceId, LeftBehind, Operation, Phase, Refusal, Result, Sandbox,
    SandboxKey, SandboxSpec,
};
use tokio::time::Instant;

use crate::backend::Inner;
use crate::decide::{Decision, Desired, Observed, UNSTARTED, decide};
use crate::engine::{CreateFailed, Created};
use crate::instance::{DockerInstance, Session};
use crate::names::{self, label};
use crate::plan::{self, Plan};
use crate::retire::{Retirement, retire};

/// How often a create is tried again after what was in its way is gone.
const ATTEMPTS: u32 = 8;

/// Between two looks at a container that is being made, removed or restarted.
const SETTLE: Duration = Duration::from_millis(250);

/// How long such a container is looked at.
const PATIENCE: Duration = UNSTARTED.saturating_add(Duration::from_secs(5));

/// One acquire, and the names that it uses.
struct Acquire<'a> {
    inner: &'a Arc<Inner>,
    call: &'a Call,
    spec: &'a Arc<SandboxSpec>,
    plan: Plan,
    name: String,
    key: String,
    agent: String,
    conversation: String,
}

/// Why there is no sandbox.
enum Failure {
    /// What this process remembers of the engine is not so any more.
    Outdated(Error),
    Error(Error),
}

/// The sandbox of the key, made if there is none.
pub(crate) async fn acquire(
    inner: &Arc<Inner>,
    call: &Call,
    key: &SandboxKey,
    spec: &Arc<SandboxSpec>,
) -> Result<Sandbox> {
    let refuse = |refusal| Error::refused(Operation::Acquire, refusal);
    {
        let _phase = call.enter(Phase::Admit);
        stockade::admit(&inner.declarations, spec).map_err(refuse)?;
        stockade::admit_key(spec, key).map_err(refuse)?;
    }
    inner.kinds.note(spec.kind());
    // Somebody else may prune the engine, or another one may stand at its
    // address: what is remembered is then learnt anew, once.
    let first = match Acquire::prepare(inner, call, key, spec).await {
        // It went between two looks.
        Err(error) if error.kind() == ErrorKind::NotFound && error.refusal().is_none() => {
            Acquire::prepare(inner, call, key, spec).await?
        }
        first => first?,
    };
    match first.run().await {
        Ok(sandbox) => Ok(sandbox),
        Err(Failure::Error(error)) => Err(error),
        Err(Failure::Outdated(_)) => {
            inner.images.forget(&first.plan.image_id);
            let second = Acquire::prepare(inner, call, key, spec).await?;
            second.run().await.map_err(|failure| match failure {
                Failure::Outdated(error) | Failure::Error(error) => error,
            })
        }
    }
}

/// The protocol that this build speaks, as a label value.
fn protocol() -> String {
    stockade_wire::PROTOCOL.max.to_string()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl<'a> Acquire<'a> {
    /// What is to be made, by what is known of the image.
    async fn prepare(
        inner: &'a Arc<Inner>,
        call: &'a Call,
        key: &SandboxKey,
        spec: &'a Arc<SandboxSpec>,
    ) -> Result<Self> {
        let engine = &inner.engine;
        let image = inner
            .images
            .facts(
                call,
                engine,
                &inner.runtime,
                spec.image(),
                plan::paths(spec),
            )
            .await?;
        let plan = inner
            .runtime
            .at(|runtime| plan::plan(spec, &image, &engine.facts().into(), runtime));
        Ok(Self {
            inner,
            call,
            spec,
            plan: plan.map_err(|refusal| Error::refused(Operation::Acquire, refusal))?,
            name: names::container(engine.owner(), key, spec.kind()),
            key: names::key_label(key),
            agent: names::agent_label(key),
            conversation: names::conversation_label(&key.scope, &key.thread_id),
        })
    }
}

impl Acquire<'_> {
    async fn run(&self) -> Result<Sandbox, Failure> {
        // What this process knows already costs one look.
        let looks = self.inner.knows(&self.name) || self.is_there().await?;
        if looks && let Some(sandbox) = self.settle(None).await? {
            return Ok(sandbox);
        }
        for _ in 0..ATTEMPTS {
            let nonce = names::nonce()?;
            let failed = match self.create(&nonce).await? {
                Created::Made(id) => return Ok(self.sandbox(id, true)?),
                Created::Failed(failed) => failed,
            };
            if let Some(sandbox) = self.settle(Some((failed, &nonce))).await? {
                return Ok(sandbox);
            }
        }
        Err(self.busy().into())
    }

    /// Whether it pays to look first, and there is something to see.
    async fn is_there(&self) -> Result<bool> {
        if !self.plan.is_looked_for() {
            return Ok(false);
        }
        let _phase = self.call.enter(Phase::Observe);
        self.inner.engine.has(self.call, &self.name).await
    }

    async fn create(&self, nonce: &str) -> Result<Created> {
        let _phase = self.call.enter(Phase::Create);
        let unfit = |error: docker_driver::InvalidName| {
            Error::new(ErrorKind::InvalidRequest, Operation::Acquire)
                .message(error.to_string())
                .phase(Phase::Create)
                .build()
        };
        let mark = CreationMark::new(Label::new(label::NONCE, nonce).map_err(unfit)?);
        let name = ContainerName::new(&self.name).map_err(unfit)?;
        let labels = self.labels().map_err(unfit)?;
        let holder = names::work_holder(&self.name, nonce);
        let holder = ContainerName::new(holder).map_err(unfit)?;
        let holder = self.plan.holder(holder, mark.clone(), &labels);
        let holder = holder.map_err(unfit)?;
        let options = self.plan.options(name, mark, labels).map_err(unfit)?;
        let engine = &self.inner.engine;
        match holder {
            Some(holder) => engine.create_on_disk(self.call, holder, options).await,
            None => engine.create(self.call, options).await,
        }
    }

    fn labels(&self) -> Result<Vec<Label>, docker_driver::InvalidName> {
        let engine = &self.inner.engine;
        let protocol = protocol();
        let created = names::now_millis().to_string();
        let ours = [
            (label::OWNER, engine.owner()),
            (label::RUN, engine.run()),
            (label::KEY, &self.key),
            (label::AGENT, &self.agent),
            (label::CONVERSATION, &self.conversation),
            (label::KIND, self.spec.kind().as_str()),
            (label::ROLE, "guest"),
            (label::CREATED, &created),
            (label::DIGEST, &self.plan.definition.digest()),
            (label::DEFINITION, &self.plan.definition.label()),
            (label::PROTOCOL, &protocol),
        ];
        let ours = ours.into_iter().map(|(key, value)| Label::new(key, value));
        let callers = self
            .spec
            .labels()
            .iter()
            .map(|(key, value)| Label::new(format!("{}{key}", label::CALLERS), value));
        ours.chain(callers).collect()
    }

    /// Settles what has the name, which made the create fail if there was
    /// one. `None`: the name is free.
    async fn settle(
        &self,
        failed: Option<(CreateFailed, &str)>,
    ) -> Result<Option<Sandbox>, Failure> {
        let (failed, nonce) = failed.map_or((None, ""), |(failed, nonce)| (Some(failed), nonce));
        // A conflict says nothing but that the name was taken, by what may
        // have gone since.
        let failed = failed.filter(|failed| !failed.is_conflict);
        let mut since = Instant::now();
        let mut last = None;
        while since.elapsed() < PATIENCE {
            let Some(observed) = self.observe().await? else {
                return self.or_explained(failed, None).await;
            };
            if last.as_ref() != Some(&observed.id) {
                since = Instant::now();
                last = Some(observed.id.clone());
            }
            match self.decide(&observed, nonce, since.elapsed()) {
                Decision::Adopt => {
                    return self.or_explained(failed, Some(observed.id)).await;
                }
                Decision::Start => {
                    if failed.is_some() || self.start(&observed).await? {
                        return self.or_explained(failed, Some(observed.id)).await;
                    }
                }
                Decision::RemoveOurs => return self.undo(failed, &observed).await,
                Decision::Replace => {
                    if self.remove_ended(&observed).await? {
                        return Ok(None);
                    }
                }
                Decision::Retire { fields } => {
                    if self.retire(&observed, fields).await? {
                        return Ok(None);
                    }
                }
                Decision::Wait => {
                    let waited = self.call.bound(tokio::time::sleep(SETTLE)).await;
                    waited.map_err(|why| Error::interrupted(Operation::Acquire, why).build())?;
                }
                Decision::Refuse(refusal) => {
                    return Err(Error::refused(Operation::Acquire, refusal).into());
                }
            }
        }
        Err(self.busy().into())
    }

    /// The sandbox that was found, unless the create failed by itself.
    async fn or_explained(
        &self,
        failed: Option<CreateFailed>,
        found: Option<String>,
    ) -> Result<Option<Sandbox>, Failure> {
        match failed {
            Some(failed) => Err(self.explain(failed).await),
            None => Ok(found.map(|id| self.sandbox(id, false)).transpose()?),
        }
    }

    /// Removes what the create left that failed. The create's error stands,
    /// also when that fails as well; what is left is named in it.
    async fn undo(
        &self,
        failed: Option<CreateFailed>,
        observed: &Observed,
    ) -> Result<Option<Sandbox>, Failure> {
        let Err(removal) = self.remove(observed).await else {
            return self.or_explained(failed, None).await;
        };
        let left = LeftBehind::new(
            LeftBehindKind::Container,
            format!("{} ({removal})", self.name),
            Removal::ByReap,
        );
        let error = failed.map_or(removal, |failed| failed.error);
        Err(error.reopen().left_behind(left).build().into())
    }

    async fn start(&self, observed: &Observed) -> Result<bool> {
        let _phase = self.call.enter(Phase::Create);
        self.inner.engine.start(self.call, &observed.id).await
    }

    async fn observe(&self) -> Result<Option<Observed>> {
        let _phase = self.call.enter(Phase::Observe);
        self.inner.engine.observe(self.call, &self.name).await
    }

    fn decide(&self, observed: &Observed, nonce: &str, watched: Duration) -> Decision {
        let desired = Desired {
            name: &self.name,
            owner: self.inner.engine.owner(),
            key: &self.key,
            kind: self.spec.kind().as_str(),
            nonce,
            definition: &self.plan.definition,
            protocol: &protocol(),
            replaces: self.inner.engine.config().replace_drifted,
            watched,
        };
        decide(observed, desired)
    }

    async fn remove(&self, observed: &Observed) -> Result<()> {
        let _phase = self.call.enter(Phase::Undo);
        self.inner.bury(&observed.id, "it was replaced");
        let engine = &self.inner.engine;
        engine
            .remove(self.call, Operation::Acquire, &observed.id)
            .await
    }

    /// Removes one that has ended; false when it runs by now.
    async fn remove_ended(&self, observed: &Observed) -> Result<bool> {
        let _phase = self.call.enter(Phase::Undo);
        let engine = &self.inner.engine;
        let gone = engine
            .remove_ended(self.call, Operation::Acquire, &observed.id)
            .await?;
        if gone {
            self.inner.bury(&observed.id, "it was replaced");
        }
        Ok(gone)
    }

    /// Has it end and go, unless somebody uses it; false when somebody has
    /// started it again meanwhile.
    async fn retire(&self, observed: &Observed, fields: Vec<String>) -> Result<bool> {
        let _phase = self.call.enter(Phase::Observe);
        let engine = &self.inner.engine;
        let asked = retire(
            engine,
            self.call,
            Operation::Acquire,
            &observed.id,
            Duration::ZERO,
        );
        match asked.await? {
            Retirement::Ended => {
                let id = &observed.id;
                let gone = engine.remove_retired(self.call, Operation::Acquire, id);
                let gone = gone.await?;
                if gone {
                    self.inner.bury(id, "it was replaced");
                }
                Ok(gone)
            }
            // A guest that says nothing may be in use.
            Retirement::Busy | Retirement::Silent(_) => Err(Error::refused(
                Operation::Acquire,
                Refusal::Drifted { fields },
            )),
        }
    }

    /// The create's own failure, as precisely as a second question can tell.
    async fn explain(&self, failed: CreateFailed) -> Failure {
        let image = &self.plan.image_id;
        if failed.is_outdated {
            return Failure::Outdated(failed.error);
        }
        match self.inner.engine.image(self.call, image).await {
            Ok(None) => Failure::Outdated(failed.error),
            _ => Failure::Error(failed.error),
        }
    }

    fn sandbox(&self, id: String, freshly_created: bool) -> Result<Sandbox> {
        let engine = &self.inner.engine;
        // What was to go before is somebody's again.
        self.inner.ledger.forget(&id);
        let session = self.inner.session(&id, || {
            Session::new(
                engine.clone(),
                id.clone(),
                self.name.clone(),
                self.plan.expected.clone(),
                self.plan.idle_limit,
                self.plan.work_dir_can_move,
            )
        });
        let id = InstanceId::new(id).map_err(|error| {
            Error::new(ErrorKind::Internal, Operation::Acquire)
                .message(error.to_string())
                .build()
        })?;
        let environment = self.plan.environment.clone();
        let spec = Arc::clone(self.spec);
        let instance = DockerInstance::new(id, session, spec, environment, freshly_created);
        Ok(Sandbox::new(Arc::new(instance)))
    }

    fn busy(&self) -> Error {
        Error::new(ErrorKind::Conflict, Operation::Acquire)
            .message(format!(
                "the name {} was taken again each of {ATTEMPTS} times it was free; others make and remove this sandbox at the same time, try again later",
                self.name
            ))
            .phase(Phase::Create)
            .build()
    }
}
