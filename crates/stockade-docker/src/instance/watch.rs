//! Watches over one command from its start to the proof that it is over,
//! whoever waits for it.

use std::sync::Arc;
use std::time::Duration;

use stockade::exec::{EndReason, ProcessExit};
use stockade::{Call, Error, ErrorKind, ExecStatus, Operation};
use stockade_wire::limits::KILL_BOUND;
use stockade_wire::message::{Exit, Started};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::convert;
use super::session::Session;
use crate::channel::{Ended, RunControl};

/// Added to the guest's own bounds before the host acts: a loaded machine
/// delays frames, and acting early would cost the sandbox.
const SLACK: Duration = Duration::from_secs(3);

/// How long the last resorts may take.
const RECOVERY: Duration = Duration::from_secs(60);

/// What the watcher is told while the command runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    /// The caller asked for the end; the frame has been sent.
    Ended(EndReason),
    /// Nobody waits any more, and the command goes on.
    Detached,
}

/// One command and what is known of it.
pub(super) struct Watch {
    pub(super) session: Arc<Session>,
    pub(super) started: oneshot::Receiver<Started>,
    pub(super) exit: oneshot::Receiver<Result<Exit, Ended>>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) control: RunControl,
    /// The program's own timeout.
    pub(super) timeout: Duration,
    pub(super) background: bool,
    /// Whether the sandbox ends with a command that was ended.
    pub(super) discard_after_abort: bool,
}

/// What came first.
enum Event {
    Started(Option<Started>),
    Exit(Result<Exit, Ended>),
    Order(Option<Order>),
    Overdue,
}

impl Watch {
    /// Runs to the end of the command. `started` hears when it runs; it is
    /// dropped when it never does.
    pub(super) async fn run(
        mut self,
        started: oneshot::Sender<Started>,
    ) -> Result<ProcessExit, Error> {
        let mut announce = Some(started);
        let mut queued = Duration::ZERO;
        let mut deadline: Option<Instant> = None;
        let mut ended: Option<EndReason> = None;
        let mut orders_open = true;
        loop {
            match self.next(announce.is_some(), orders_open, deadline).await {
                Event::Started(Some(begun)) => {
                    queued = Duration::from_millis(begun.waited_ms);
                    deadline =
                        earlier(deadline, Instant::now() + self.timeout + KILL_BOUND + SLACK);
                    if let Some(announce) = announce.take() {
                        let _ = announce.send(begun);
                    }
                }
                Event::Started(None) => announce = None,
                Event::Order(Some(Order::Ended(reason))) => {
                    ended.get_or_insert(reason);
                    deadline = earlier(deadline, Instant::now() + KILL_BOUND + SLACK);
                }
                Event::Order(Some(Order::Detached)) => return Err(detached()),
                Event::Order(None) => orders_open = false,
                Event::Exit(Ok(exit)) => return self.finish(exit, queued).await,
                Event::Exit(Err(_)) => return self.channel_lost(ended, queued).await,
                Event::Overdue if self.was_paused().await => {
                    deadline = Some(Instant::now() + KILL_BOUND + SLACK);
                }
                Event::Overdue => {
                    let reason = ended.unwrap_or(EndReason::TimedOut);
                    return self.overdue(reason, queued).await;
                }
            }
        }
    }

    async fn next(
        &mut self,
        starting: bool,
        orders_open: bool,
        deadline: Option<Instant>,
    ) -> Event {
        let overdue = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            started = &mut self.started, if starting => Event::Started(started.ok()),
            exit = &mut self.exit => Event::Exit(exit.unwrap_or(Err(Ended::Closed))),
            order = self.orders.recv(), if orders_open => Event::Order(order),
            () = overdue => Event::Overdue,
        }
    }

    async fn finish(&self, exit: Exit, queued: Duration) -> Result<ProcessExit, Error> {
        let mut exit = convert::exit(exit, queued);
        if !exit.tree_ended && !self.background {
            self.session
                .kill_everything(&Call::with_timeout(RECOVERY))
                .await?;
            exit.tree_ended = true;
            exit.left_running = 0;
        }
        self.after_abort(&exit.status).await;
        Ok(exit)
    }

    /// The relay died, or the engine dropped it. PID 1 ends the command on
    /// its side; a fresh channel proves it. Guest code can cause this at
    /// will, so it is an outcome, as long as the sandbox lives.
    async fn channel_lost(
        &self,
        ended: Option<EndReason>,
        queued: Duration,
    ) -> Result<ProcessExit, Error> {
        let call = Call::with_timeout(RECOVERY);
        let channel = self.session.channel(&call).await?;
        if channel.hello().live_runs > 0 && !self.background {
            drop(channel);
            self.session.kill_everything(&call).await?;
        }
        let status = ended.map_or(ExecStatus::SupervisorLost, convert::ended);
        self.after_abort(&status).await;
        Ok(convert::without_report(status, queued))
    }

    /// Whether the guest was frozen, and could not keep its bounds. One that
    /// cannot be asked about was not.
    async fn was_paused(&self) -> bool {
        let call = Call::with_timeout(RECOVERY);
        self.session.thawed(&call).await.unwrap_or_default()
    }

    /// The guest did not keep its own bounds.
    async fn overdue(&self, reason: EndReason, queued: Duration) -> Result<ProcessExit, Error> {
        self.control.end(convert::to_wire(reason));
        self.session
            .kill_from_outside(&Call::with_timeout(RECOVERY))
            .await?;
        let status = convert::ended(reason);
        self.after_abort(&status).await;
        Ok(convert::without_report(status, queued))
    }

    async fn after_abort(&self, status: &ExecStatus) {
        let aborted = matches!(
            status,
            ExecStatus::TimedOut
                | ExecStatus::Cancelled
                | ExecStatus::OutputLimit
                | ExecStatus::SupervisorLost
        );
        if aborted && self.discard_after_abort {
            // The outcome stands whether or not the removal succeeded; what
            // is left ends by itself, and the next acquire replaces it.
            let _ = self
                .session
                .give_up("the spec discards it after an ended command")
                .await;
        }
    }
}

fn earlier(deadline: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(deadline.map_or(other, |deadline| deadline.min(other)))
}

fn detached() -> Error {
    Error::new(ErrorKind::InvalidRequest, Operation::Exec)
        .message("the command was detached, so that nobody waits for it")
        .build()
}
