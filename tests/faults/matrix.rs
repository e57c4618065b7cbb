//! Every fault of every verb of a scenario: its cells, and what must hold in
//! each.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use stockade::disposal::RemovalFailure;
use stockade::vocabulary::DisposalCode;
use stockade::{Backend as _, Call, Error, Refusal};
use stockade_tests::client::{At, Fault, Plan, Rule};
use tokio::time::timeout;

use crate::act::{Acted, Finding};
use crate::expected::{Class, class_of, codes, kinds};
use crate::scenario::{ONE_OF_EACH, Scenario};
use crate::state::IN_THE_REGISTRY;
use crate::world::{IMPATIENT, PATIENCE, PATIENT, Thing, World};

/// No operation takes longer, whatever goes wrong.
const BOUND: Duration = Duration::from_secs(60);

/// How long a call may take in which a relay hangs; and where that was too
/// short to come to it.
const SHORT: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(30)];

/// Cells whose time is that of waiting run beside each other.
const LANES_OF_HANGS: usize = 6;

/// One fault at one place of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    scenario: Scenario,
    verb: String,
    at: At,
    fault: Fault,
}

/// Runs every cell of some scenarios, and fails with all that broke a rule.
pub(crate) async fn run(scenarios: &[Scenario]) {
    warm_up().await;
    let mut findings = Vec::new();
    for scenario in scenarios {
        match cells(*scenario).await {
            Ok(cells) => {
                let (hangs, others): (Vec<_>, Vec<_>) =
                    cells.into_iter().partition(|cell| cell.fault.hangs());
                let lanes = LANES_OF_HANGS.min(hangs.len());
                let mut lanes: Vec<_> = (0..lanes)
                    .map(|lane| hangs.iter().skip(lane).step_by(lanes).cloned().collect())
                    .map(|cells: Vec<_>| lane(*scenario, cells, IMPATIENT))
                    .collect();
                lanes.push(lane(*scenario, others, PATIENT));
                findings.extend(join_all(lanes).await.into_iter().flatten());
            }
            Err(finding) => findings.push(format!("{scenario:?}, nothing wrong: {finding}")),
        }
    }
    assert!(
        findings.is_empty(),
        "{} rules are broken:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// Brings the guest runtime to the engine, which is the business of one
/// scenario only.
pub(crate) async fn warm_up() {
    let mut world = Scenario::Exec.world(PATIENT).await;
    world.works().await.expect("a sandbox works");
    world.finish().await.expect("nothing is left");
}

/// The verbs of a scenario in their order, when nothing goes wrong but what it
/// is about.
pub(crate) async fn trace(scenario: Scenario) -> Result<Vec<String>, Finding> {
    let mut world = scenario.world(PATIENT).await;
    scenario.prepare(&mut world).await?;
    let (acted, seen) = act(scenario, &mut world, Vec::new(), BOUND).await?;
    match acted {
        Acted::Done => {}
        _ => return Err(format!("it does not work: {acted:?}")),
    }
    after(scenario, &mut world, &acted).await?;
    world.finish().await?;
    Ok(seen)
}

/// Prepares a scenario; again where the engine was too slow for the patience
/// that its cells have.
async fn prepare(scenario: Scenario, world: &mut World) -> Result<(), Finding> {
    let mut prepared = scenario.prepare(world).await;
    for _ in 0..PATIENCE {
        if prepared.is_ok() {
            break;
        }
        prepared = scenario.prepare(world).await;
    }
    prepared
}

/// Does a scenario, with these rules before its own.
async fn act(
    scenario: Scenario,
    world: &mut World,
    rules: Vec<Rule>,
    deadline: Duration,
) -> Result<(Acted, Vec<String>), Finding> {
    // The first rule that fits counts.
    let rules = rules.into_iter().chain(scenario.base()).collect();
    let pulls = (scenario == Scenario::AcquireWithPull).then(|| IN_THE_REGISTRY.to_owned());
    world.client.arm(Plan {
        rules,
        pulls,
        ..Plan::default()
    });
    let call = Call::with_timeout(deadline);
    let acted = timeout(BOUND, scenario.act(world, &call)).await;
    let seen = world.client.seen();
    let acted =
        acted.map_err(|_| format!("it is not over after {BOUND:?}; docker was {seen:?}"))?;
    Ok((acted?, seen))
}

/// What comes next works, and what a scenario made anew is cleared away.
async fn after(scenario: Scenario, world: &mut World, acted: &Acted) -> Result<(), Finding> {
    world.client.disarm();
    match acted {
        _ if scenario == Scenario::Bind => {}
        // The next removal; the next cell begins with the next acquire.
        _ if scenario.removes() || scenario == Scenario::Close => world.clear().await?,
        _ if scenario.acquires() => {
            match acted {
                Acted::Done => world.works().await?,
                _ => scenario.acquired_at_last(world).await?,
            }
            world.clear().await?;
        }
        // The sandbox is that of the next cell.
        _ => world.works().await?,
    }
    scenario.tidy(world);
    Ok(())
}

/// The cells of a scenario, from its own trace.
async fn cells(scenario: Scenario) -> Result<Vec<Cell>, Finding> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for verb in trace(scenario).await? {
        *counts.entry(verb).or_default() += 1;
    }
    let mut cells = Vec::new();
    for (verb, count) in counts {
        if !scenario.is_about(&verb) {
            continue;
        }
        for fault in scenario.faults(&verb) {
            let mut at = vec![At::Nth(1)];
            // It does the same once more, or what undoes the first.
            if count > 1 && !scenario.varies() && ONE_OF_EACH.contains(&fault) {
                at.push(At::Nth(count));
            }
            // What is tried again must be given up for it to be seen.
            if fault == Fault::Fails {
                at.push(At::Always);
            }
            cells.extend(at.into_iter().map(|at| Cell {
                scenario,
                verb: verb.clone(),
                at,
                fault,
            }));
        }
    }
    Ok(cells)
}

/// Runs cells one after another on one host.
async fn lane(scenario: Scenario, cells: Vec<Cell>, patience: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut world = scenario.world(patience).await;
    for cell in cells {
        let begun = tokio::time::Instant::now();
        let ran = cell.run(&mut world).await;
        println!("{:6} ms {cell}", begun.elapsed().as_millis());
        if let Err(finding) = ran {
            findings.push(format!("{cell}: {finding}"));
            // What is wrong with it is told once.
            let broken = std::mem::replace(&mut world, scenario.world(patience).await);
            let _ = broken.finish().await;
        }
    }
    if let Err(finding) = world.finish().await {
        findings.push(format!("{scenario:?}, at its end: {finding}"));
    }
    findings
}

impl Cell {
    async fn run(&self, world: &mut World) -> Result<(), Finding> {
        let scenario = self.scenario;
        let rule = Rule {
            verb: self.verb.clone(),
            at: self.at,
            fault: self.fault,
        };
        let relays = matches!(class_of(&self.verb), Class::Relays | Class::Watches);
        let deadlines: &[_] = match self.fault.hangs() && relays {
            true => &SHORT,
            // What comes before it may be too slow for the patience of the cell.
            false => &[BOUND, BOUND],
        };
        let acted = 'met: {
            let mut seen = Vec::new();
            for deadline in deadlines {
                prepare(scenario, world).await?;
                let (acted, verbs) = act(scenario, world, vec![rule.clone()], *deadline).await?;
                // How often an engine is asked again depends on its haste; the
                // first time is always met.
                let may_be_unmet = matches!(self.at, At::Nth(2..)) && matches!(acted, Acted::Done);
                if world.client.struck() > 0 || may_be_unmet {
                    break 'met acted;
                }
                seen = verbs;
            }
            return Err(format!("the fault was never met; docker was {seen:?}"));
        };
        let mut named = self.judge(&acted)?;
        if matches!(acted, Acted::Done) {
            // What was done may have left what it needed no more, which the
            // close says.
            named.extend(closed(world).await?);
        }
        world.client.disarm();
        leaves(scenario, world, &acted, &named).await?;
        after(scenario, world, &acted).await?;
        world.client.release();
        // What could not be undone was named before, and is gone by now.
        closed(world).await.map(drop)
    }

    /// Whether it ended as such a fault may; and what it says to be left.
    fn judge(&self, acted: &Acted) -> Result<Vec<String>, Finding> {
        match acted {
            Acted::Done => Ok(Vec::new()),
            Acted::CutShort if kinds(self.fault, &self.verb).is_empty() => {
                Err("the command was cut short".to_owned())
            }
            Acted::CutShort => Ok(Vec::new()),
            Acted::Partly(failures) => {
                let wrong = failures
                    .iter()
                    .find(|failure| !codes(self.fault, &self.verb).contains(&failure.code));
                if let Some(failure) = wrong {
                    return Err(format!("the code {:?} of {failure:?}", failure.code));
                }
                Ok(failures
                    .iter()
                    .map(|failure| failure.what.clone())
                    .collect())
            }
            Acted::Failed(error) => {
                self.judge_error(error)?;
                Ok(error
                    .left_behind()
                    .iter()
                    .map(|left| left.name.clone())
                    .collect())
            }
        }
    }

    fn asks_the_guest(&self) -> bool {
        class_of(&self.verb) == Class::Relays && self.fault != Fault::Late
    }

    fn judge_error(&self, error: &Error) -> Result<(), Finding> {
        let is_drift = matches!(error.refusal(), Some(Refusal::Drifted { .. }));
        if is_drift && self.scenario == Scenario::AcquireWhatHasDrifted && self.asks_the_guest() {
            // Nobody can tell whether it is in use, so it stays.
            return Ok(());
        }
        let kinds = kinds(self.fault, &self.verb);
        if !kinds.contains(&error.kind()) {
            return Err(format!(
                "the kind is {:?} and not of {kinds:?}: {error:?}",
                error.kind()
            ));
        }
        if !self.scenario.operations().contains(&error.operation()) {
            return Err(format!(
                "the operation is {:?}: {error:?}",
                error.operation()
            ));
        }
        match error.phase() {
            Some(phase) if self.scenario.phases().contains(&phase) => {}
            phase => return Err(format!("the phase is {phase:?}: {error:?}")),
        }
        if error.to_string().is_empty() || error.to_string().contains('\n') {
            return Err(format!(
                "it does not say in one line what is wrong: {error:?}"
            ));
        }
        Ok(())
    }
}

/// What a close names as not removed.
async fn closed(world: &World) -> Result<Vec<String>, Finding> {
    // What hangs is not waited for.
    let call = Call::with_timeout(Duration::from_secs(10));
    match world.backend.close(&call).await {
        Ok(closed) => Ok(closed
            .failures
            .into_iter()
            .map(|failure| failure.what)
            .collect()),
        Err(error) => Err(format!("the close after it: {error:?}")),
    }
}

/// Whether what is left is what may be: the sandbox that there was before, or
/// that was acquired, with its volumes; and what is named.
async fn leaves(
    scenario: Scenario,
    world: &World,
    acted: &Acted,
    named: &[String],
) -> Result<(), Finding> {
    let is_unlisted = |failure: &RemovalFailure| failure.code == DisposalCode::Unlisted;
    let kept = match acted {
        // What there is was not known, and that is what it says.
        Acted::Partly(failures) if failures.iter().any(is_unlisted) => Some(world.id()),
        Acted::Done | Acted::Partly(_) if scenario.removes() => None,
        Acted::Done if scenario.acquires() => Some(world.sandbox().id().as_str().to_owned()),
        _ if scenario.has_sandbox() => Some(world.id()),
        _ => None,
    };
    let may_be = |thing: &Thing| {
        // The volumes of a container are its own, and go with it.
        let is_whole = thing.is_volume() && (kept.is_some() || !named.is_empty());
        is_whole
            || kept.as_ref() == Some(&thing.id)
            || named.iter().any(|name| thing.is_named_in(name))
    };
    let left = world.left_beyond(may_be).await;
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "left behind and not named: {left:?}; it was {acted:?}"
        )),
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenario,
            verb,
            at,
            fault,
        } = self;
        write!(f, "{scenario:?}, {verb:?} {at:?} {fault:?}")
    }
}
