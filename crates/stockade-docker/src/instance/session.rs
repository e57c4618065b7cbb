//! One container as this process uses it: its channel, opened at first use
//! and opened again when it ends, and the last resorts when a guest no longer
//! answers.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use docker_driver::{CallErrorKind, StreamControl};
use stockade::error::{LeftBehindKind, Removal};
use stockade::{Call, Error, ErrorKind, LeftBehind, Operation, Phase, Refusal};
use stockade_wire::limits::{HEARTBEAT, KILL_BOUND};
use tokio::time::timeout;

use crate::channel::{Channel, Ended};
use crate::engine::{Engine, lost};
use crate::hold::Running;
use crate::operate::death_of;
use crate::verify::{Expected, differences};

/// How long a fresh relay may take until the hello of PID 1 has arrived. A
/// `docker exec` takes 60 ms; a loaded engine some seconds.
const HELLO: Duration = Duration::from_secs(20);

/// How long PID 1 may take to kill everything: its own bound and some more.
const ANSWER: Duration = KILL_BOUND.saturating_add(Duration::from_secs(3));

/// How often a channel is opened anew, everything in the sandbox being killed
/// before each further try, until the sandbox is given up.
const TRIES: u32 = 3;

/// How long the engine is asked why a container has ended.
const DEATH: Duration = Duration::from_secs(5);

/// A container, shared by every handle of this process.
#[derive(Debug)]
pub(crate) struct Session {
    engine: Engine,
    /// The engine's full id.
    id: String,
    name: String,
    expected: Expected,
    work_dir_can_move: bool,
    /// How often PID 1 hears from us, so that it never takes us for dead.
    heartbeat: Duration,
    slot: tokio::sync::Mutex<Slot>,
    /// Why the sandbox is of no use any more.
    dead: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Slot {
    channel: Option<Channel>,
    /// The count of kills in the last hello, to see that one took place.
    kills: u64,
}

/// Why there is no channel.
enum NotOpened {
    /// Somebody has paused the container.
    Paused,
    /// The relay, or the sandbox, ended or says nothing.
    Ended(String),
}

impl Session {
    pub(crate) fn new(
        engine: Engine,
        id: String,
        name: String,
        expected: Expected,
        idle_limit: Duration,
        work_dir_can_move: bool,
    ) -> Self {
        Self {
            engine,
            id,
            name,
            expected,
            work_dir_can_move,
            // Three may be late before the fourth is missed.
            heartbeat: HEARTBEAT.min(idle_limit / 4),
            slot: tokio::sync::Mutex::default(),
            dead: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The engine's full id of the container.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether the guest could move a directory above the work directory's
    /// mount.
    pub(crate) fn work_dir_can_move(&self) -> bool {
        self.work_dir_can_move
    }

    /// User and group of everything in it, as they were planned and verified.
    pub(crate) fn owner(&self) -> (u32, u32) {
        (self.expected.uid, self.expected.gid)
    }

    /// Whether the container was removed or given up by this process.
    pub(crate) fn is_dead(&self) -> bool {
        self.lock_dead().is_some()
    }

    /// Takes note that the container is gone, or is about to be.
    pub(crate) fn bury(&self, why: impl Into<String>) {
        self.lock_dead().get_or_insert(why.into());
    }

    /// The open channel, or a new one. The first hello is compared with the
    /// plan before any guest code runs; a sandbox that is not what was asked
    /// for is removed and refused.
    ///
    /// Cancel safe: a channel that is half open is closed.
    pub(crate) async fn channel(&self, call: &Call) -> Result<Channel, Error> {
        let mut slot = self.slot(call).await?;
        self.check_alive()?;
        if let Some(channel) = slot.live() {
            return Ok(channel);
        }
        slot.channel = None;
        let _phase = call.enter(Phase::Channel);
        let mut last = String::new();
        let mut running = self.running(call).await?;
        let mut tries = 0;
        while tries < TRIES {
            if tries > 0 {
                self.kill(call).await?;
            }
            match self.open(call).await? {
                Ok(channel) => return self.accept(&mut slot, channel).await,
                Err(NotOpened::Paused) => {}
                Err(NotOpened::Ended(why)) => {
                    last = why;
                    // A relay that ended may mean that the whole sandbox did.
                    self.check_running(call).await?;
                    tries += 1;
                }
            }
            // A guest that is frozen answers nobody, and must not be killed
            // for that.
            if running
                .settle(&self.engine, call, Operation::Exec, &self.id)
                .await?
            {
                tries = 0;
            }
        }
        let why = format!("its guest runtime did not answer: {last}");
        Err(self.give_up(&why).await)
    }

    /// Kills every process of the sandbox: over the channel if it answers,
    /// and otherwise from outside, which works even when no exec can be
    /// started, and is proved on a fresh channel. After an error the sandbox
    /// has been given up.
    pub(crate) async fn kill_everything(&self, call: &Call) -> Result<(), Error> {
        let mut slot = self.slot(call).await?;
        self.check_alive()?;
        if let Some(channel) = slot.live() {
            let killed = timeout(ANSWER, channel.kill_all()).await;
            if matches!(killed, Ok(Ok(killed)) if killed.left == 0) {
                return Ok(());
            }
        }
        self.kill_outside(call, &mut slot).await
    }

    /// The same from outside at once, for when the channel has proved that it
    /// does not answer.
    pub(crate) async fn kill_from_outside(&self, call: &Call) -> Result<(), Error> {
        let mut slot = self.slot(call).await?;
        self.check_alive()?;
        self.kill_outside(call, &mut slot).await
    }

    async fn kill_outside(&self, call: &Call, slot: &mut Slot) -> Result<(), Error> {
        let before = slot.kills;
        slot.channel = None;
        let mut running = self.running(call).await?;
        let mut tries = 0;
        while tries < TRIES {
            self.kill(call).await?;
            match self.open(call).await? {
                Ok(channel) => {
                    let hello = channel.hello();
                    let proved = hello.kill_generation > before && hello.live_runs == 0;
                    slot.kills = hello.kill_generation;
                    slot.channel = Some(channel);
                    if proved {
                        return Ok(());
                    }
                    tries += 1;
                }
                Err(NotOpened::Paused) => {}
                Err(NotOpened::Ended(_)) => {
                    self.check_running(call).await?;
                    tries += 1;
                }
            }
            if running
                .settle(&self.engine, call, Operation::Exec, &self.id)
                .await?
            {
                tries = 0;
            }
        }
        Err(self.give_up("not everything in it could be killed").await)
    }

    /// Removes the container because nothing can be promised about it any
    /// more, and says so.
    pub(crate) async fn give_up(&self, why: &str) -> Error {
        self.bury(why);
        let error = Error::new(ErrorKind::Lost, Operation::Exec)
            .message(format!(
                "sandbox {} was given up: {why}; acquire it again",
                self.name
            ))
            .phase(Phase::Channel);
        if self.engine.discard(&self.id).await {
            return error.build();
        }
        let (kind, name) = (LeftBehindKind::Container, &self.name);
        error
            .left_behind(LeftBehind::new(kind, name, Removal::Scheduled))
            .build()
    }

    /// The slot, once whoever opens or kills is done with it.
    async fn slot(&self, call: &Call) -> Result<tokio::sync::MutexGuard<'_, Slot>, Error> {
        let slot = call.bound(self.slot.lock()).await;
        slot.map_err(|why| {
            Error::interrupted(Operation::Exec, why)
                .phase(Phase::Channel)
                .build()
        })
    }

    /// Keeps it from being paused by anybody on this host.
    async fn running(&self, call: &Call) -> Result<Running, Error> {
        Running::claim(&self.engine, call, Operation::Exec, &self.id).await
    }

    /// A new relay and its hello; or why there is none, with what the relay
    /// wrote to its standard error.
    async fn open(&self, call: &Call) -> Result<Result<Channel, NotOpened>, Error> {
        let relay = self.engine.attach(call, &self.id).await?;
        let opened = timeout(
            HELLO,
            Channel::open(relay.from, relay.to, relay.keep, self.heartbeat),
        );
        let opened = call.bound(opened).await.map_err(|why| {
            Error::interrupted(Operation::Exec, why)
                .phase(Phase::Channel)
                .build()
        })?;
        Ok(match opened {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err((ended, relay))) => Err(last_words(ended, relay).await),
            Err(_) => Err(NotOpened::Ended(Ended::Silent.to_string())),
        })
    }

    async fn accept(&self, slot: &mut Slot, channel: Channel) -> Result<Channel, Error> {
        let hello = channel.hello();
        let found = differences(&self.expected, hello);
        if !found.is_empty() {
            let error = self.give_up("it is not what was asked for").await;
            let refusal = Refusal::NotAsPlanned { differences: found };
            return Err(Error::refused(Operation::Acquire, refusal)
                .reopen()
                .source(error)
                .build());
        }
        slot.kills = hello.kill_generation;
        slot.channel = Some(channel.clone());
        Ok(channel)
    }

    /// Has PID 1 kill everything else.
    async fn kill(&self, call: &Call) -> Result<(), Error> {
        if self.engine.kill_everything(call, &self.id).await? {
            return Ok(());
        }
        self.has_ended(call).await
    }

    /// An error when the engine says that the container does not run.
    async fn check_running(&self, call: &Call) -> Result<(), Error> {
        if self.engine.is_running(call, &self.id).await? {
            return Ok(());
        }
        self.has_ended(call).await
    }

    /// Takes note of its end, and says why it ended as far as the engine
    /// remembers.
    async fn has_ended(&self, call: &Call) -> Result<(), Error> {
        let asking = call.child(DEATH);
        let death = death_of(&self.engine, &asking, Operation::Exec, &self.id).await;
        self.bury(match death {
            Ok(Some(death)) => format!("its container has ended: {death}"),
            // The engine remembers little, and may be busy with its restart.
            _ => "its container has ended".to_owned(),
        });
        self.check_alive()
    }

    /// Waits until it runs, if it is paused: nothing that it did not do
    /// meanwhile counts against it. True when it was.
    pub(crate) async fn thawed(&self, call: &Call) -> Result<bool, Error> {
        if !self.engine.is_paused(call, &self.id).await? {
            return Ok(false);
        }
        let mut running = self.running(call).await?;
        running
            .settle(&self.engine, call, Operation::Exec, &self.id)
            .await?;
        Ok(true)
    }

    fn check_alive(&self) -> Result<(), Error> {
        match &*self.lock_dead() {
            None => Ok(()),
            Some(why) => Err(lost(&self.name, why)),
        }
    }

    fn lock_dead(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn live(&self) -> Option<Channel> {
        self.channel
            .clone()
            .filter(|channel| channel.ended().is_none())
    }
}

/// Why a channel was not opened, by what its relay wrote to its standard
/// error, shortened.
async fn last_words(ended: Ended, mut relay: StreamControl) -> NotOpened {
    relay.kill();
    let end = relay.wait().await;
    if end.complaint() == Some(CallErrorKind::Paused) {
        return NotOpened::Paused;
    }
    let said = String::from_utf8_lossy(&end.stderr);
    let said: String = said.trim().chars().take(300).collect();
    NotOpened::Ended(format!(
        "{ended}; the relay ended with {}: {said}",
        end.exit
    ))
}
