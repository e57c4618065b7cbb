//! Changes: they run to their end whoever waits, and are undone when nobody
//! does.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Client, Request, Slot};
use crate::bounds::Bounds;
use crate::error::{Aftermath, CallError, CallErrorKind, Called};
use crate::process::Fate;
use crate::undo::{FailedUndo, Undo};
use crate::verb::{Effect, Exit, Mutation};

impl Client {
    /// Changes. When this future is dropped or gives up, the change goes on,
    /// and is undone once it has been made.
    pub(crate) async fn mutate<V: Mutation>(
        &self,
        bounds: &Bounds,
        verb: V,
    ) -> Result<V::Answer, CallError> {
        let request = self.request(&verb);
        let call = Called::new(V::NAME, &request.argv);
        let slot = self.slot(bounds, &call).await?;
        let pending = Aftermath::Pending(verb.undo(Effect::Unknown));
        let (deliver, delivery) = oneshot::channel();
        let (client, called) = (self.clone(), call.clone());
        self.spawn(async move {
            let delivery = client.change(verb, request, slot, &called).await;
            // Without a receiver it is dropped here; with one that goes
            // before it has looked, there.
            let _ = deliver.send(delivery);
        });
        match bounds.limit(delivery).await {
            Ok(delivery) => match delivery.ok().and_then(Delivery::accept) {
                Some(result) => result,
                None => Err(call.failed(CallErrorKind::Closed).with_aftermath(pending)),
            },
            Err(kind) => Err(call.failed(kind).with_aftermath(pending)),
        }
    }

    /// Runs a change to its end. One that fails has been undone when this
    /// returns.
    async fn change<V: Mutation>(
        &self,
        verb: V,
        request: Request,
        slot: Slot,
        call: &Called,
    ) -> Delivery<V::Answer> {
        let never = CancellationToken::new();
        let done = match self.run(request, slot, Fate::GoesOn, never).await {
            Ok(done) => done,
            Err(error) => return Delivery::of(self, Err(call.not_started(error)), Undo::Nothing),
        };
        let made = done.made.container.clone();
        match self.conclude(&Bounds::patient(), &verb, done, call).await {
            Ok(answer) => {
                let undo = verb.undo(Effect::Done(&answer));
                Delivery::of(self, Ok(answer), undo)
            }
            Err(error) => {
                let effect = match &made {
                    Some(id) => Effect::Made(id),
                    None if is_known_to_be_none(&error) => Effect::Nothing,
                    None => Effect::Unknown,
                };
                let late = matches!(effect, Effect::Unknown);
                let aftermath = self.take_back(verb.undo(effect), late).await;
                Delivery::of(self, Err(error.with_aftermath(aftermath)), Undo::Nothing)
            }
        }
    }

    async fn take_back(&self, undo: Undo, late: bool) -> Aftermath {
        if !undo.is_needed() {
            return Aftermath::Clean;
        }
        match self.undo(&undo, late).await {
            Ok(true) => Aftermath::Undone(undo),
            Ok(false) => Aftermath::Clean,
            Err(error) => Aftermath::Left {
                undo,
                why: error.to_string(),
            },
        }
    }
}

/// Whether docker itself answered that it did nothing. Not so when we ended
/// it, when something else did, or when the connection was lost.
fn is_known_to_be_none(error: &CallError) -> bool {
    let lost = matches!(
        error.kind(),
        CallErrorKind::TimedOut
            | CallErrorKind::OutputTooLarge
            | CallErrorKind::UnexpectedAnswer
            | CallErrorKind::ConnectionLost
    );
    matches!(error.exit(), Some(Exit::Code(_))) && !lost
}

/// The result of a change on its way to the caller. Dropped on the way, it
/// sees to what the caller would have had to.
struct Delivery<A> {
    client: Client,
    content: Option<(Result<A, CallError>, Undo)>,
}

impl<A> Delivery<A> {
    fn of(client: &Client, result: Result<A, CallError>, undo: Undo) -> Self {
        Self {
            client: client.clone(),
            content: Some((result, undo)),
        }
    }

    /// What the caller gets, for whom it is now to see to.
    fn accept(mut self) -> Option<Result<A, CallError>> {
        self.content.take().map(|(result, _)| result)
    }
}

impl<A> Drop for Delivery<A> {
    fn drop(&mut self) {
        match self.content.take() {
            Some((Ok(_), undo)) if undo.is_needed() => {
                let client = self.client.clone();
                self.client
                    .spawn(async move { client.undo_unattended(undo).await });
            }
            Some((Err(error), _)) => {
                if let Aftermath::Left { undo, why } = error.aftermath() {
                    self.client.record(FailedUndo {
                        undo: undo.clone(),
                        why: why.clone(),
                    });
                }
            }
            _ => {}
        }
    }
}
