//! The process that pauses and thaws.
//!
//! It is a shell script (`guard.sh`), so that nothing has to be installed: it
//! outlives us, however we end, and thaws because a socket to us closes or
//! because its time is over. What it runs is the same docker with the same
//! pinned settings; the folder of those is kept for it. A docker that hangs it
//! kills after its [`Patience`], and thaws by another.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream as Socket;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::time::Instant;

use crate::argv::ContainerId;
use crate::bind::{FolderLoan, PrivateFolder};
use crate::phrases;
use crate::process::{Process, Program, StartScript, has_ended};

const SCRIPT: &str = include_str!("guard.sh");

/// How long docker may take, as a guard runs it. One that takes longer is
/// killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// To pause.
    pub(crate) pause: Duration,
    /// To thaw, at each attempt.
    pub(crate) thaw: Duration,
}

impl Patience {
    /// What fits a caller who waits for `short`: as long for the pause, and
    /// within it, with the rests between them, for all attempts at the thaw.
    pub(crate) fn within(short: Duration) -> Self {
        Self {
            pause: short,
            thaw: short / 6,
        }
    }
}

/// A guard that was started.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) process: Process,
    /// Its report; our end of it is what it waits for.
    pub(crate) talk: UnixStream,
    pub(crate) life: Arc<Life>,
    pub(crate) folder: FolderLoan,
}

/// A lock that a guard inherits.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

/// How long a guard leaves a container paused.
#[derive(Debug)]
pub(crate) struct Life {
    /// By our clock, which starts before the guard's, so that we stop first.
    /// Both stand still while the machine sleeps.
    until: Instant,
    /// While it has not been reaped and has not said that it thaws.
    guard: Mutex<Option<Pid>>,
}

impl Guard {
    /// Starts one, on the runtime that this is called in.
    pub(crate) fn start(
        program: &Program,
        folder: &Arc<PrivateFolder>,
        container: &ContainerId,
        limit: Duration,
        patience: Patience,
        lock: Option<&Lock>,
    ) -> io::Result<Self> {
        let whole = |time: Duration| time.as_secs().max(1);
        let seconds = whole(limit);
        let (ours, its) = Socket::pair()?;
        ours.set_nonblocking(true)?;
        let talk = UnixStream::from_std(ours)?;
        let mut words: Vec<OsString> = vec![
            container.as_str().into(),
            seconds.to_string().into(),
            lock.map_or_else(OsString::new, |lock| lock.path.clone().into()),
            whole(patience.pause).to_string().into(),
            whole(patience.thaw).to_string().into(),
        ];
        words.extend(phrases::NOT_FROZEN.map(OsString::from));
        let lock = lock.map(|lock| lock.file.try_clone()).transpose()?;
        let (folder, folders_lock) = FolderLoan::of(folder)?;
        let until = Instant::now() + Duration::from_secs(seconds);
        let start = StartScript {
            program,
            script: SCRIPT,
            words: &words,
            talk: its.into(),
            holds: [lock.map(Into::into), Some(folders_lock)],
        };
        let process = match start.spawn() {
            Ok(process) => process,
            Err(error) => {
                folder.give_back();
                return Err(error);
            }
        };
        let guard = Mutex::new(process.pid());
        Ok(Self {
            process,
            talk,
            life: Arc::new(Life { until, guard }),
            folder,
        })
    }
}

impl Life {
    /// How long the container is certain to stay paused.
    pub(crate) fn remaining(&self) -> Duration {
        match self.group() {
            Some(_) => self.until.saturating_duration_since(Instant::now()),
            None => Duration::ZERO,
        }
    }

    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// The guard's group, while the guard lives and holds. Its number is its
    /// own for as long, since it is reaped only after [`end`](Self::end).
    pub(crate) fn group(&self) -> Option<Pid> {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.filter(|guard| !has_ended(*guard))
    }

    /// The guard thaws, or has ended.
    pub(crate) fn end(&self) {
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
