//! Builds a spec, and reports everything that is wrong with it at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::parts::{AfterAbort, DeclaredOutput, Hardening, HostTools, IdentityBounds, Service};
use super::{Egress, Image, SandboxSpec, Storage, WorkDir, check};
use crate::fault::{Fault, SpecErrors};
use crate::key::Kind;
use crate::limits::{ResourceLimits, TransferLimits};
use crate::vocabulary::{Capabilities, Capability, Cleanup, Isolation, IsolationScope, OsFamily};

/// How long a sandbox outlives the last word of its hosts, by default.
pub const IDLE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The same for a sandbox of one call.
pub const IDLE_LIMIT_OF_CALL: Duration = Duration::from_secs(5 * 60);

/// The age at which a sandbox ends, by default.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The highest age that can be asked for.
pub const MAX_AGE_CEILING: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Builds a [`SandboxSpec`]; see its getters for what each field means.
///
/// Setters replace, they never add. Nothing is checked before
/// [`SpecBuilder::build`], which reports every fault at once.
///
/// ```
/// use stockade::{Image, SandboxSpec};
///
/// let broken = SandboxSpec::builder("python")
///     .image(Image::reference("python:3.13-slim"))
///     .work_dir("/tmp/work")
///     .env([("PATH=", "/bin")])
///     .build();
/// let faults = broken.map(drop).map_err(|errors| errors.faults().len());
/// assert_eq!(faults, Err(2));
/// ```
#[derive(Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct SpecBuilder {
    pub(super) kind: String,
    pub(super) image: Option<Image>,
    pub(super) egress: Egress,
    pub(super) work_dir: Option<String>,
    pub(super) storage: Storage,
    pub(super) hardening: Hardening,
    pub(super) limits: ResourceLimits,
    pub(super) env: Vec<(String, String)>,
    pub(super) idle_limit: Option<Duration>,
    pub(super) max_age: Duration,
    pub(super) files_in: TransferLimits,
    pub(super) files_out: TransferLimits,
    pub(super) declared_outputs: Vec<DeclaredOutput>,
    pub(super) outputs_named_at_call_time: bool,
    pub(super) requires: Capabilities,
    pub(super) min_isolation: Option<Isolation>,
    pub(super) isolation_scope: IsolationScope,
    pub(super) min_cleanup: Option<Cleanup>,
    pub(super) exclusive_admission: bool,
    pub(super) os_family: Option<OsFamily>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) execution_contract: Option<String>,
    pub(super) host_tools: Option<HostTools>,
    pub(super) services: Vec<Service>,
    pub(super) after_abort: AfterAbort,
    pub(super) identity_bounds: Option<IdentityBounds>,
    pub(super) confined_to_guest_call_path: bool,
}

impl SpecBuilder {
    pub(super) fn new(kind: String) -> Self {
        Self {
            kind,
            image: None,
            egress: Egress::Closed,
            work_dir: None,
            storage: Storage::default(),
            hardening: Hardening::default(),
            limits: ResourceLimits::default(),
            env: Vec::new(),
            idle_limit: None,
            max_age: MAX_AGE,
            files_in: TransferLimits::default(),
            files_out: TransferLimits::default(),
            declared_outputs: Vec::new(),
            outputs_named_at_call_time: false,
            requires: Capabilities::from([Capability::Exec]),
            min_isolation: None,
            isolation_scope: IsolationScope::Conversation,
            min_cleanup: None,
            exclusive_admission: false,
            os_family: None,
            labels: Vec::new(),
            execution_contract: None,
            host_tools: None,
            services: Vec::new(),
            after_abort: AfterAbort::default(),
            identity_bounds: None,
            confined_to_guest_call_path: false,
        }
    }

    /// The image; required.
    pub fn image(mut self, image: Image) -> Self {
        self.image = Some(image);
        self
    }

    /// What may be reached on the network; nothing by default.
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// The work directory; `/work` by default.
    pub fn work_dir(mut self, work_dir: impl Into<String>) -> Self {
        self.work_dir = Some(work_dir.into());
        self
    }

    /// Where the work directory is kept; in memory by default.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// The hardening; strict by default.
    pub fn hardening(mut self, hardening: Hardening) -> Self {
        self.hardening = hardening;
        self
    }

    /// What it may use; see [`ResourceLimits`] for the defaults.
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Variables of every command; none by default. The last of a name counts.
    pub fn env<N: Into<String>, V: Into<String>>(
        mut self,
        env: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.env = pairs(env);
        self
    }

    /// How long it outlives the last word of its hosts; 30 minutes by
    /// default, 5 for a call's own sandbox. Never above the maximum age.
    pub fn idle_limit(mut self, idle_limit: Duration) -> Self {
        self.idle_limit = Some(idle_limit);
        self
    }

    /// The age at which it ends; 24 hours by default, 7 days at most.
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// What one call may write into it.
    pub fn files_in(mut self, limits: TransferLimits) -> Self {
        self.files_in = limits;
        self
    }

    /// What one call may read from it.
    pub fn files_out(mut self, limits: TransferLimits) -> Self {
        self.files_out = limits;
        self
    }

    /// Files that commands are expected to leave behind; none by default.
    pub fn declared_outputs(mut self, outputs: impl IntoIterator<Item = DeclaredOutput>) -> Self {
        self.declared_outputs = outputs.into_iter().collect();
        self
    }

    /// Whether a call may name outputs besides the declared ones; not by default.
    pub fn outputs_named_at_call_time(mut self, named: bool) -> Self {
        self.outputs_named_at_call_time = named;
        self
    }

    /// The capabilities that are needed; [`Capability::Exec`] by default.
    ///
    /// The default is less than the reference system's (which adds
    /// [`Capability::FilesIn`]): ask for what is used, so that a backend
    /// without files can serve commands.
    pub fn requires(mut self, capabilities: impl IntoIterator<Item = Capability>) -> Self {
        self.requires = capabilities.into_iter().collect();
        self
    }

    /// The weakest isolation that will do; it can only raise the host's floor.
    pub fn min_isolation(mut self, isolation: Isolation) -> Self {
        self.min_isolation = Some(isolation);
        self
    }

    /// How much of a conversation one sandbox serves; all of it by default.
    pub fn isolation_scope(mut self, scope: IsolationScope) -> Self {
        self.isolation_scope = scope;
        self
    }

    /// The weakest cleanup that will do after a call.
    pub fn min_cleanup(mut self, cleanup: Cleanup) -> Self {
        self.min_cleanup = Some(cleanup);
        self
    }

    /// Whether calls must have the sandbox for themselves; not by default.
    pub fn exclusive_admission(mut self, exclusive: bool) -> Self {
        self.exclusive_admission = exclusive;
        self
    }

    /// The family of operating system that it must have.
    pub fn os_family(mut self, family: OsFamily) -> Self {
        self.os_family = Some(family);
        self
    }

    /// The host's labels; none by default. At most 64, with names of letters,
    /// digits, `.`, `_`, `-` and `/` and values of at most 4096 bytes.
    pub fn labels<N: Into<String>, V: Into<String>>(
        mut self,
        labels: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.labels = pairs(labels);
        self
    }

    /// An opaque string, not blank, that a reused sandbox must have been made with.
    pub fn execution_contract(mut self, contract: impl Into<String>) -> Self {
        self.execution_contract = Some(contract.into());
        self
    }

    /// The host's tools that guest code may call; needs
    /// [`Capability::HostTools`] among the required ones.
    pub fn host_tools(mut self, tools: HostTools) -> Self {
        self.host_tools = Some(tools);
        self
    }

    /// Services beside it; none by default.
    pub fn services(mut self, services: impl IntoIterator<Item = Service>) -> Self {
        self.services = services.into_iter().collect();
        self
    }

    /// What happens to it after a command was ended early; it stays by default.
    pub fn after_abort(mut self, after_abort: AfterAbort) -> Self {
        self.after_abort = after_abort;
        self
    }

    /// How far an attached credential may reach; needed exactly when
    /// [`Capability::AttachedIdentity`] is required.
    pub fn identity_bounds(mut self, bounds: IdentityBounds) -> Self {
        self.identity_bounds = Some(bounds);
        self
    }

    /// Promises to write under the call's own directory only.
    pub fn confined_to_guest_call_path(mut self, confined: bool) -> Self {
        self.confined_to_guest_call_path = confined;
        self
    }

    /// The spec.
    ///
    /// # Errors
    ///
    /// [`SpecErrors`] with every fault of every field.
    pub fn build(self) -> Result<Arc<SandboxSpec>, SpecErrors> {
        let mut faults = Vec::new();
        let kind = self.parsed_kind(&mut faults);
        let work_dir = self.parsed_work_dir(&mut faults);
        if self.image.is_none() {
            faults.push(Fault::new(
                "image",
                "",
                "no image is named",
                "name one with `Image::reference` or `Image::build`",
            ));
        }
        check::all(&self, &work_dir, &mut faults);
        match (kind, self.image.clone()) {
            (Some(kind), Some(image)) => {
                SpecErrors::or(faults, || Arc::new(self.into_spec(kind, image, work_dir)))
            }
            _ => Err(SpecErrors::of(faults)),
        }
    }

    fn parsed_kind(&self, faults: &mut Vec<Fault>) -> Option<Kind> {
        let kind = Kind::new(self.kind.as_str());
        if kind.is_err() {
            faults.push(Fault::new(
                "kind",
                &self.kind,
                "it is empty, longer than 128 bytes, surrounded by spaces or has control characters",
                "give a short name, like `python`",
            ));
        }
        kind.ok()
    }

    fn parsed_work_dir(&self, faults: &mut Vec<Fault>) -> WorkDir {
        let Some(text) = &self.work_dir else {
            return WorkDir::default();
        };
        WorkDir::parse(text).unwrap_or_else(|(wrong, remedy)| {
            faults.push(Fault::new("work_dir", text, wrong, remedy));
            WorkDir::default()
        })
    }

    /// The idle limit: as asked, or the default of the scope, cut to the maximum age.
    pub(super) fn effective_idle_limit(&self) -> Duration {
        self.idle_limit.unwrap_or_else(|| {
            let default = match self.isolation_scope {
                IsolationScope::Call => IDLE_LIMIT_OF_CALL,
                IsolationScope::Conversation => IDLE_LIMIT,
            };
            default.min(self.max_age)
        })
    }

    fn into_spec(self, kind: Kind, image: Image, work_dir: WorkDir) -> SandboxSpec {
        SandboxSpec {
            idle_limit: self.effective_idle_limit(),
            kind,
            image,
            egress: self.egress,
            work_dir,
            storage: self.storage,
            hardening: self.hardening,
            limits: self.limits,
            env: self.env.into_iter().collect::<BTreeMap<_, _>>(),
            max_age: self.max_age,
            files_in: self.files_in,
            files_out: self.files_out,
            declared_outputs: self.declared_outputs,
            outputs_named_at_call_time: self.outputs_named_at_call_time,
            requires: self.requires,
            min_isolation: self.min_isolation,
            isolation_scope: self.isolation_scope,
            min_cleanup: self.min_cleanup,
            exclusive_admission: self.exclusive_admission,
            os_family: self.os_family,
            labels: self.labels.into_iter().collect::<BTreeMap<_, _>>(),
            execution_contract: self.execution_contract,
            host_tools: self.host_tools,
            services: self.services,
            after_abort: self.after_abort,
            identity_bounds: self.identity_bounds,
            confined_to_guest_call_path: self.confined_to_guest_call_path,
        }
    }
}

fn pairs<N: Into<String>, V: Into<String>>(
    items: impl IntoIterator<Item = (N, V)>,
) -> Vec<(String, String)> {
    let items = items.into_iter();
    items
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}
