//! Acquire: create first, and look only when the name is taken.

use std::sync::Arc;
use std::time::Duration;

use docker_driver::{ContainerName, CreationMark, Label};
use stockade::{
    Call, Error, ErrorKind, InstanceId, Operation, Phase, Refusal, Result, Sandbox, SandboxKey,
    SandboxSpec,
};

use crate::backend::Inner;
use crate::decide::{Decision, Desired, Observed, decide};
use crate::engine::{CreateFailed, Created};
use crate::instance::{DockerInstance, Session};
use crate::names::{self, label};
use crate::plan::{self, Plan};

/// How often a create is tried again after what was in its way is gone.
const ATTEMPTS: u32 = 8;

/// Between two looks at a container that is being removed or restarted.
const SETTLE: Duration = Duration::from_millis(250);

/// One acquire, and the names that it uses.
struct Acquire<'a> {
    inner: &'a Arc<Inner>,
    call: &'a Call,
    spec: &'a Arc<SandboxSpec>,
    plan: Plan,
    name: String,
    key: String,
    conversation: String,
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
    let work_dir = spec.work_dir().as_str();
    let engine = &inner.engine;
    let image = inner
        .images
        .facts(call, engine, &inner.runtime, spec.image(), work_dir)
        .await?;
    let plan = inner
        .runtime
        .at(|runtime| plan::plan(spec, &image, &engine.facts().into(), runtime));
    let owner = engine.owner();
    let acquire = Acquire {
        inner,
        call,
        spec,
        plan: plan.map_err(refuse)?,
        name: names::container(owner, key, spec.kind()),
        key: names::key_label(key),
        conversation: names::conversation_label(&key.scope, &key.thread_id),
    };
    acquire.run().await
}

impl Acquire<'_> {
    async fn run(&self) -> Result<Sandbox> {
        if self.inner.knows(&self.name)
            && let Some(sandbox) = self.adopt_known().await?
        {
            return Ok(sandbox);
        }
        for _ in 0..ATTEMPTS {
            let nonce = names::nonce()?;
            let failed = match self.create(&nonce).await? {
                Created::Made(id) => return self.sandbox(id, true),
                Created::Failed(failed) => failed,
            };
            if let Some(sandbox) = self.conflict(failed, &nonce).await? {
                return Ok(sandbox);
            }
        }
        Err(self.busy())
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
        let options = self.plan.options(name, mark, labels).map_err(unfit)?;
        self.inner.engine.create(self.call, options).await
    }

    fn labels(&self) -> Result<Vec<Label>, docker_driver::InvalidName> {
        let engine = &self.inner.engine;
        let protocol = stockade_wire::PROTOCOL.max.to_string();
        let created = names::now_millis().to_string();
        let ours = [
            (label::OWNER, engine.owner()),
            (label::RUN, engine.run()),
            (label::KEY, &self.key),
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

    /// What this process knows already costs one look.
    async fn adopt_known(&self) -> Result<Option<Sandbox>> {
        let Some(observed) = self.observe().await? else {
            return Ok(None);
        };
        match self.decide(&observed, "") {
            Decision::Adopt => self.sandbox(observed.id, false).map(Some),
            Decision::Refuse(refusal) => Err(Error::refused(Operation::Acquire, refusal)),
            _ => Ok(None),
        }
    }

    /// Settles a failed create. `None`: try again.
    async fn conflict(&self, failed: CreateFailed, nonce: &str) -> Result<Option<Sandbox>> {
        let Some(observed) = self.observe().await? else {
            // Nothing has the name: the failure is the create's own, unless
            // what was in its way has just gone.
            return if failed.is_conflict {
                Ok(None)
            } else {
                Err(self.explain(failed).await)
            };
        };
        match self.decide(&observed, nonce) {
            Decision::Adopt if failed.is_conflict => self.sandbox(observed.id, false).map(Some),
            Decision::Adopt => Err(self.explain(failed).await),
            Decision::RemoveOurs => {
                self.remove(&observed).await?;
                Err(self.explain(failed).await)
            }
            Decision::Replace => {
                self.remove(&observed).await?;
                Ok(None)
            }
            Decision::Wait => {
                let waited = self.call.bound(tokio::time::sleep(SETTLE)).await;
                waited.map_err(|why| Error::interrupted(Operation::Acquire, why).build())?;
                Ok(None)
            }
            Decision::Refuse(refusal) => Err(Error::refused(Operation::Acquire, refusal)),
        }
    }

    async fn observe(&self) -> Result<Option<Observed>> {
        let _phase = self.call.enter(Phase::Observe);
        self.inner.engine.observe(self.call, &self.name).await
    }

    fn decide(&self, observed: &Observed, nonce: &str) -> Decision {
        let desired = Desired {
            name: &self.name,
            owner: self.inner.engine.owner(),
            key: &self.key,
            kind: self.spec.kind().as_str(),
            nonce,
            definition: &self.plan.definition,
        };
        decide(observed, desired)
    }

    async fn remove(&self, observed: &Observed) -> Result<()> {
        let _phase = self.call.enter(Phase::Undo);
        self.inner.bury(&observed.id, "it was replaced");
        self.inner.engine.remove(self.call, &observed.id).await
    }

    /// The create's own failure, as precisely as a second question can tell.
    async fn explain(&self, failed: CreateFailed) -> Error {
        let image = &self.plan.image_id;
        if let Ok(None) = self.inner.engine.image(self.call, image).await {
            self.inner.images.forget(image);
            let reference = self.spec.image().name().unwrap_or(image).to_owned();
            let detail = "it was removed from the engine while it was in use".to_owned();
            return Error::refused(
                Operation::Acquire,
                Refusal::ImageNotFound { reference, detail },
            );
        }
        failed.error
    }

    fn sandbox(&self, id: String, freshly_created: bool) -> Result<Sandbox> {
        let engine = &self.inner.engine;
        let session = self.inner.session(&id, || {
            Session::new(
                engine.clone(),
                id.clone(),
                self.name.clone(),
                self.plan.expected.clone(),
                self.plan.idle_limit,
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
