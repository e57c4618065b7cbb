//! Every fault of every kind of frame: its cells, and what must hold in each.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use stockade::{Backend as _, Call, ErrorKind, Phase};
use stockade_docker::FilePlane;
use stockade_tests::client::Plan;
use stockade_tests::engine::{PYTHON, call, spec};
use stockade_tests::frames::{FrameFault, FrameRule, Place, Sender, name};
use stockade_wire::Kind;
use tokio::time::timeout;

use crate::act::{Acted, Finding};
use crate::coverage::BESIDE_THE_CHANNEL;
use crate::matrix::warm_up;
use crate::talk::Talk;
use crate::world::{Configure, PATIENT, World};

/// No talk takes longer, whatever goes wrong.
const BOUND: Duration = Duration::from_secs(60);

/// How long a command may run, and a call wait, that is waited for in vain; and
/// how long where that was too short to come to the fault.
const TIMES: [(Duration, Duration); 2] = [
    (Duration::from_secs(2), Duration::from_secs(5)),
    (Duration::from_secs(15), Duration::from_secs(30)),
];

/// Cells run beside each other, since most of their time is that of waiting.
const LANES: usize = 8;

/// One fault at one frame of a talk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    talk: Talk,
    place: Place,
    fault: FrameFault,
}

/// Runs every cell of some talks, and fails with all that broke a rule.
pub(crate) async fn run(talks: &[Talk]) {
    warm_up().await;
    let mut cells = Vec::new();
    for talk in talks {
        let seen = trace(*talk)
            .await
            .unwrap_or_else(|finding| panic!("{talk:?}: {finding}"));
        let places = places(*talk, &seen);
        for kind in talk.kinds() {
            let passes = places.iter().any(|place| place.kind == name(*kind));
            assert!(passes, "{talk:?}: no {kind:?} frame passes in it: {seen:?}");
        }
        let beside = BESIDE_THE_CHANNEL.iter().find(|(kind, _)| {
            let senders = [Sender::Host, Sender::Guest];
            senders.iter().any(|from| seen.contains(&from.line(*kind)))
        });
        assert_eq!(beside, None, "{talk:?}: it does pass a channel");
        for place in places {
            cells.extend(FrameFault::ALL.into_iter().map(|fault| Cell {
                talk: *talk,
                place: place.clone(),
                fault,
            }));
        }
    }
    let lanes = LANES.min(cells.len());
    let lanes = (0..lanes).map(|lane| cells.iter().skip(lane).step_by(lanes).cloned().collect());
    let lanes: Vec<_> = lanes.map(self::lane).collect();
    let findings: Vec<Finding> = join_all(lanes).await.into_iter().flatten().collect();
    assert!(
        findings.is_empty(),
        "{} rules are broken:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// The frames of a talk in their order, when nothing goes wrong but what it is
/// about.
pub(crate) async fn trace(talk: Talk) -> Result<Vec<String>, Finding> {
    let mut world = world().await;
    let acted = hold(&mut world, talk, Vec::new(), PATIENT, BOUND).await?;
    if !matches!(acted, Acted::Done) {
        return Err(format!("it does not work: {acted:?}"));
    }
    let seen = world.client.frames();
    world.finish().await?;
    Ok(seen)
}

/// The places of the frames that a talk is about: the first of each kind and
/// sender, and the last of those whose number is always the same.
fn places(talk: Talk, seen: &[String]) -> Vec<Place> {
    let mut places = Vec::new();
    for kind in talk.kinds() {
        for from in [Sender::Host, Sender::Guest] {
            let line = from.line(*kind);
            let count = seen.iter().filter(|other| **other == line).count();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let counted = matches!(kind, Kind::FileRequest | Kind::FileAnswer);
            let mut numbers = Vec::new();
            if count > 0 {
                numbers.push(1);
            }
            if count > 1 && counted {
                numbers.push(count);
            }
            places.extend(numbers.into_iter().map(|number| Place {
                from,
                kind: name(*kind),
                number,
            }));
        }
    }
    places
}

async fn world() -> World {
    let configure: Configure = Arc::new(|config| config.file_plane(FilePlane::Guest));
    let mut world = World::new(spec(PYTHON), configure).await;
    world.key = world.key.with_call("1");
    world
}

/// Holds a talk on a channel of its own, with these rules before its own.
async fn hold(
    world: &mut World,
    talk: Talk,
    rules: Vec<FrameRule>,
    command: Duration,
    deadline: Duration,
) -> Result<Acted, Finding> {
    let ready = world.with_sandbox().await;
    ready.map_err(|error| format!("there is no sandbox: {error:?}"))?;
    world.client.arm(Plan {
        frames: Some(rules.into_iter().chain(talk.base()).collect()),
        ..Plan::default()
    });
    let call = Call::with_timeout(deadline);
    let acted = timeout(BOUND, talk.hold(world, &call, command)).await;
    acted.map_err(|_| format!("it is not over after {BOUND:?}"))?
}

async fn lane(cells: Vec<Cell>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut world = self::world().await;
    for cell in cells {
        let begun = tokio::time::Instant::now();
        let ran = cell.run(&mut world).await;
        println!("{:6} ms {cell}", begun.elapsed().as_millis());
        if let Err(finding) = ran {
            findings.push(format!("{cell}: {finding}"));
            let broken = std::mem::replace(&mut world, self::world().await);
            let _ = broken.finish().await;
        }
    }
    if let Err(finding) = world.finish().await {
        findings.push(format!("at the end: {finding}"));
    }
    findings
}

impl Cell {
    async fn run(&self, world: &mut World) -> Result<(), Finding> {
        let rule = FrameRule {
            place: self.place.clone(),
            fault: self.fault,
        };
        let times: &[_] = match self.fault {
            FrameFault::Late => &[(PATIENT, BOUND)],
            _ => &TIMES,
        };
        let mut acted = Ok(Acted::Done);
        for (command, deadline) in times {
            let rules = vec![rule.clone()];
            acted = hold(world, self.talk, rules, *command, *deadline).await;
            if world.client.struck() > 0 {
                break;
            }
        }
        if world.client.struck() == 0 {
            let seen = world.client.frames();
            return Err(format!("the fault was never met; {acted:?} after {seen:?}"));
        }
        match acted {
            Ok(acted) => self.judge(&acted)?,
            Err(_) if self.is_vouched_for() => {}
            Err(finding) => return Err(finding),
        }
        world.client.disarm();
        let id = world.id();
        // It is the sandbox of before, or it was given up and is gone.
        let left = world
            .left_beyond(|thing| thing.id == id || thing.is_volume())
            .await;
        if !left.is_empty() {
            return Err(format!("left behind: {left:?}"));
        }
        if self.fault == FrameFault::Stalled {
            // Half a channel is given up when nothing was heard for the
            // silence limit, which is longer than a test can wait: the next
            // operation is that of a new handle. It may begin before the
            // command of before is killed from outside, with all that runs,
            // and then it says so.
            world.sandbox = None;
            let _ = world.works().await;
        }
        world.works().await?;
        world.client.release();
        match world.backend.close(&call()).await {
            Ok(closed) if closed.is_clean() => Ok(()),
            other => Err(format!("the close after it: {other:?}")),
        }
    }

    /// Whether only the transport vouches for it: what a program writes has no
    /// form, and none of it is lost, doubled or changed between two ends of a
    /// pipe. What becomes of the command is still told right.
    fn is_vouched_for(&self) -> bool {
        let raw = [Kind::Stdin, Kind::Stdout, Kind::Stderr, Kind::FileData];
        raw.into_iter().any(|kind| self.place.kind == name(kind))
            && matches!(
                self.fault,
                FrameFault::Dropped | FrameFault::Duplicated | FrameFault::GarbagePayload
            )
    }

    fn judge(&self, acted: &Acted) -> Result<(), Finding> {
        let error = match acted {
            Acted::Done => return Ok(()),
            _ if self.fault == FrameFault::Late => {
                return Err(format!("what is late is no fault: {acted:?}"));
            }
            Acted::CutShort => return Ok(()),
            Acted::Partly(failures) => return Err(format!("nothing is removed: {failures:?}")),
            Acted::Failed(error) => error,
        };
        let kinds = [ErrorKind::Unavailable, ErrorKind::Lost, ErrorKind::TimedOut];
        if !kinds.contains(&error.kind()) {
            return Err(format!("the kind is {:?}: {error:?}", error.kind()));
        }
        let phases = [
            Phase::Queue,
            Phase::Channel,
            Phase::Start,
            Phase::Run,
            Phase::Transfer,
        ];
        match error.phase() {
            Some(phase) if phases.contains(&phase) => Ok(()),
            phase => Err(format!("the phase is {phase:?}: {error:?}")),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { from, kind, number } = &self.place;
        write!(
            f,
            "{:?}, {kind} {number} from the {from:?} {:?}",
            self.talk, self.fault
        )
    }
}
