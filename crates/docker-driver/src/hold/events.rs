//! What happens to a container, as it happens.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::argv::{Argv, ContainerId, ContainerPath};
use crate::bounds::Bounds;
use crate::client::Client;
use crate::error::{CallError, CallErrorKind, Called};
use crate::process::{Group, Lines};
use crate::registry::Streamed;
use crate::stream::{StreamControl, StreamEnd, StreamInput, StreamOutput};
use crate::verbs::copy_out;

const EVENTS: Streamed = Streamed::EVENTS;

/// What the engine calls them.
const PAUSED: &str = "pause";
const UNPAUSED: &str = "unpause";
const COPIED: &str = "archive-path";

/// How long a copy of ours is looked for in the stream before there is another.
const LOOK: Duration = Duration::from_secs(1);

/// What has happened to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContainerEvent {
    /// It was paused.
    Paused,
    /// It was thawed.
    Unpaused,
}

/// A stream of events of one container, which is live: whatever happens after
/// it was opened is in it.
#[derive(Debug)]
pub struct Events {
    call: Called,
    lines: Lines,
    read: VecDeque<String>,
    _input: StreamInput,
    output: StreamOutput,
    control: StreamControl,
}

impl Events {
    /// Opens a stream and makes sure of it. Docker does not say when it has
    /// begun to listen; so the root directory is copied out of the container,
    /// no further than its first bytes, until that is seen in the stream.
    pub(crate) async fn open(
        client: &Client,
        bounds: &Bounds,
        container: &ContainerId,
    ) -> Result<Self, CallError> {
        let argv = words(container);
        let call = Called::new(EVENTS.name(), &argv);
        let stream = client
            .open(bounds, EVENTS, &argv, false, Group::Own)
            .await?;
        let (input, output, control) = stream.split();
        let mut events = Self {
            call,
            lines: Lines::new(),
            read: VecDeque::new(),
            _input: input,
            output,
            control,
        };
        loop {
            touch(client, bounds, container).await?;
            let seen = async {
                while events.line().await? != COPIED {}
                Ok(())
            };
            match bounds.limit(timeout(LOOK, seen)).await {
                Ok(Ok(Ok(()))) => return Ok(events),
                Ok(Ok(Err(error))) => return Err(error),
                Ok(Err(_)) => {}
                Err(kind) => return Err(events.call.failed(kind)),
            }
        }
    }

    /// The next event, however long it takes.
    ///
    /// # Errors
    ///
    /// The stream has ended, for instance with the engine.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<ContainerEvent, CallError> {
        loop {
            match self.line().await?.as_str() {
                PAUSED => return Ok(ContainerEvent::Paused),
                UNPAUSED => return Ok(ContainerEvent::Unpaused),
                _ => {}
            }
        }
    }

    async fn line(&mut self) -> Result<String, CallError> {
        let mut chunk = [0; 1024];
        loop {
            if let Some(line) = self.read.pop_front() {
                return Ok(line);
            }
            match self.output.read(&mut chunk).await {
                Ok(read @ 1..) => {
                    let read_before = &mut self.read;
                    self.lines.take(&chunk[..read], |line| {
                        read_before.push_back(line.to_owned())
                    });
                }
                _ => {
                    let end = self.control.wait().await;
                    return Err(over(&self.call, &end));
                }
            }
        }
    }
}

fn words(container: &ContainerId) -> Argv {
    Argv::new(&["events"])
        .option("filter", format_args!("container={container}"))
        .options(
            "filter",
            [PAUSED, UNPAUSED, COPIED].map(|event| format!("event={event}")),
        )
        .option("format", "{{.Action}}")
}

/// Does something to a container that changes nothing and is an event.
async fn touch(client: &Client, bounds: &Bounds, container: &ContainerId) -> Result<(), CallError> {
    let argv = copy_out(&container.into(), &ContainerPath::root());
    let call = Called::new(Streamed::COPY_OUT.name(), &argv);
    let stream = client
        .open(bounds, Streamed::COPY_OUT, &argv, false, Group::Own)
        .await?;
    let (_, mut output, mut control) = stream.split();
    let mut some = [0; 512];
    let read = timeout(client.longest(), output.read(&mut some));
    match bounds.limit(read).await {
        Ok(Ok(Ok(1..))) => Ok(()),
        Ok(Ok(_)) => Err(over(&call, &control.wait().await)),
        Ok(Err(_)) => Err(call.failed(CallErrorKind::TimedOut)),
        Err(kind) => Err(call.failed(kind)),
    }
}

/// What it means that a stream ended that has no end of its own.
fn over(call: &Called, end: &StreamEnd) -> CallError {
    let kind = end.complaint().unwrap_or(CallErrorKind::ConnectionLost);
    call.failed(kind).with_output(&end.output())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_asked_for_and_only_its_name() {
        let container = ContainerId::new("a1".repeat(32)).unwrap();
        assert_eq!(
            words(&container).to_string(),
            format!(
                "docker events --filter=container={container} --filter=event=pause \
                 --filter=event=unpause --filter=event=archive-path '--format={{{{.Action}}}}'"
            )
        );
    }
}
