//! A container that is held: paused, and certain to be thawed.

mod copy;
mod events;
mod guard;
mod report;

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::argv::{Argv, ContainerId, ContainerPath};
use crate::bounds::Bounds;
use crate::client::Client;
use crate::error::{Aftermath, CallError, CallErrorKind, Called};
use crate::process::Group;
use crate::registry::Streamed;
use crate::stream::{Ending, Stream};
use crate::undo::Undo;
use crate::verb::Verb as _;
use crate::verbs::{UnpauseContainer, copy_in, copy_out};

pub use self::copy::{TarIn, TarOut};
pub use self::events::{ContainerEvent, Events};
pub(crate) use self::guard::{Guard, Life, Lock, Patience};
pub(crate) use self::report::{Report, Said};

/// Longest time that a container is held, unless the request says less.
const LONGEST: Duration = Duration::from_secs(30);

/// Longest time that a copy may go without progress, unless the request says
/// otherwise.
const NO_PROGRESS: Duration = Duration::from_secs(5);

/// What is to be held, and how long.
#[derive(Debug)]
pub struct HoldRequest {
    pub(crate) container: ContainerId,
    pub(crate) limit: Duration,
    pub(crate) no_progress: Duration,
    pub(crate) lock: Option<Lock>,
}

impl HoldRequest {
    /// Holds this container, for 30 s at most, with copies that make progress
    /// every 5 s.
    pub fn new(container: ContainerId) -> Self {
        Self {
            container,
            limit: LONGEST,
            no_progress: NO_PROGRESS,
            lock: None,
        }
    }

    /// Thaws it after this time, counted from when it is paused, if it is not
    /// released before: the copies are ended then, and the thaw begins a
    /// second later. Whole seconds, rounded down; at least one.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Ends a copy that makes no progress for this time.
    #[must_use]
    pub fn no_progress(mut self, limit: Duration) -> Self {
        self.no_progress = limit;
        self
    }

    /// A file that is locked (`flock`) and open for writing, and its path.
    ///
    /// It stays locked until the hold is over: the guard inherits the open
    /// file, so that the death of this process does not unlock it early. Once
    /// the guard has paused the container it writes `paused` into the file,
    /// and once it has thawed it, it removes it. A file that is unlocked and
    /// holds that word is therefore of a hold that did not end properly, and
    /// whose pause was its own; an empty one is of a hold that never began.
    #[must_use]
    pub fn lock(mut self, file: File, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // The guard has another working directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        self.lock = Some(Lock { file, path });
        self
    }
}

/// A container that is paused.
///
/// It was paused by a process of its own, the guard, which thaws it when this
/// is released or dropped, when its time is over, or when this process ends,
/// however it ends. The guard ends the copies of the hold before it thaws.
///
/// ```no_run
/// use bytes::Bytes;
/// use docker_driver::{Bounds, CallError, ContainerId, ContainerPath, Docker, HoldRequest};
///
/// # async fn example(
/// #     docker: &Docker,
/// #     id: ContainerId,
/// #     directory: ContainerPath,
/// #     archive: Bytes,
/// # ) -> Result<(), CallError> {
/// let hold = docker.hold(&Bounds::patient(), HoldRequest::new(id)).await?;
/// let mut copy = hold.copy_in(&directory).await?;
/// copy.write(archive).await?;
/// copy.finish().await?;
/// hold.release().await
/// # }
/// ```
#[must_use = "dropping it thaws the container"]
pub struct Hold {
    client: Client,
    container: ContainerId,
    no_progress: Duration,
    life: Arc<Life>,
    /// What the guard waits on. Closing it ends the hold.
    line: Option<OwnedWriteHalf>,
    /// How the thaw went.
    over: Option<oneshot::Receiver<Result<(), CallError>>>,
    ending: Arc<Ending>,
}

impl Hold {
    pub(crate) fn new(
        client: Client,
        container: ContainerId,
        no_progress: Duration,
        life: Arc<Life>,
        line: OwnedWriteHalf,
        over: oneshot::Receiver<Result<(), CallError>>,
        ending: Arc<Ending>,
    ) -> Self {
        Self {
            client,
            container,
            no_progress,
            life,
            line: Some(line),
            over: Some(over),
            ending,
        }
    }

    /// Whether the container is certain to be paused still. It costs no docker
    /// call, and takes into account that this process may have been stopped.
    pub fn is_in_force(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How much time is left; zero when the hold is over.
    pub fn remaining(&self) -> Duration {
        self.life.remaining()
    }

    /// Starts unpacking a tar stream into a directory of the container.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`], or that docker could not be started. What
    /// docker says after that comes from the copy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no process.
    pub async fn copy_in(&self, directory: &ContainerPath) -> Result<TarIn<'_>, CallError> {
        let argv = copy_in(&(&self.container).into(), directory);
        let call = Called::new(Streamed::COPY_IN.name(), &argv);
        let stream = self.start(Streamed::COPY_IN, &argv, &call, true).await?;
        Ok(TarIn::new(self, call, stream))
    }

    /// Starts a tar stream of what is at a path of the container, without
    /// following a link at its end.
    ///
    /// # Errors
    ///
    /// [`CallErrorKind::HoldEnded`], or that docker could not be started. What
    /// docker says after that, such as that there is no such path, comes from
    /// the copy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no process.
    pub async fn copy_out(&self, path: &ContainerPath) -> Result<TarOut<'_>, CallError> {
        let argv = copy_out(&(&self.container).into(), path);
        let call = Called::new(Streamed::COPY_OUT.name(), &argv);
        let stream = self.start(Streamed::COPY_OUT, &argv, &call, false).await?;
        Ok(TarOut::new(self, call, stream))
    }

    /// Thaws the container, and waits until it is thawed.
    ///
    /// # Errors
    ///
    /// Docker's words of the last attempt; there are five, with seven seconds
    /// between them in all. Each is ended after a sixth of what an ordinary
    /// verb may take, 10 s by default, and is
    /// [`CallErrorKind::TimedOut`] then. One that is not paused any more is a success. One that is gone
    /// ([`CallErrorKind::NoSuchContainer`]) or has ended
    /// ([`CallErrorKind::NotRunning`]) is an error, but is not frozen.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the container is thawed in the
    /// background, which [`Docker::settle`](crate::Docker::settle) waits for.
    pub async fn release(mut self) -> Result<(), CallError> {
        self.line = None;
        self.ending.ask();
        let Some(over) = self.over.take() else {
            return Err(self.pending(CallErrorKind::Closed));
        };
        match timeout(self.client.patience(), over).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(self.pending(CallErrorKind::Closed)),
            Err(_) => Err(self.pending(CallErrorKind::TimedOut)),
        }
    }

    fn pending(&self, kind: CallErrorKind) -> CallError {
        let verb = UnpauseContainer::new(&self.container);
        let call = Called::new(UnpauseContainer::NAME, &verb.argv());
        call.failed(kind)
            .with_aftermath(Aftermath::Pending(self.undo()))
    }

    pub(crate) fn undo(&self) -> Undo {
        Undo::Unpause((&self.container).into())
    }

    /// Starts a copy in the guard's group, so that the guard ends it.
    ///
    /// A copy takes its place among the processes in flight while it starts,
    /// for two seconds at most, and waits for nothing meanwhile; so holds that
    /// all wait for places for their copies get them.
    async fn start(
        &self,
        verb: Streamed,
        argv: &Argv,
        call: &Called,
        stdin: bool,
    ) -> Result<Stream, CallError> {
        let ended = || call.failed(CallErrorKind::HoldEnded);
        let group = self.life.group().ok_or_else(ended)?;
        let bounds = Bounds {
            deadline: self.life.until(),
            cancel: CancellationToken::new(),
        };
        let started = self
            .client
            .open(&bounds, verb, argv, stdin, Group::Of(group))
            .await;
        // Without a guard the start fails, or there is nobody who ends it.
        if !self.is_in_force() {
            return Err(ended());
        }
        started
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.ending.ask();
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("container", &self.container)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
